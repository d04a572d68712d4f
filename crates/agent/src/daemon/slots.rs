//! Which connections have the slots.

use trimtab_kernel::{Algorithm, Datapath, Stats};
use trimtab_units::Bytes;

use crate::config::Config;
use crate::core::Core;

/// Above this share of the slots, idle connections give up theirs, …
const SHORT: f64 = 15.0 / 16.0;
/// … so many of all at once.
const SHARE: f64 = 1.0 / 8.0;

/// Tells the kernel what connections to come send before they have one. Where applications send
/// `hints`, all have one at once, since a hint is about a connection that has a slot.
pub(super) fn tell(datapath: &Datapath, config: &Config, hints: bool) {
    for algorithm in Algorithm::ALL {
        let after = if hints { Bytes::ZERO } else { config.slot_after(algorithm.name()) };
        datapath.set_slot_after(algorithm, after);
    }
}

/// Whether there are hardly any left.
pub(super) fn are_short(stats: &Stats) -> bool {
    stats.live as f64 >= SHORT * f64::from(stats.slots)
}

/// Takes those of the connections that are idle for longest.
pub(super) fn make_room(core: &mut Core<Datapath>, stats: &Stats) {
    let idle = core.idlest((f64::from(stats.slots) * SHARE).ceil() as usize);
    if !idle.is_empty() {
        let gone = core.datapath().evict(&idle);
        core.gone(&gone);
    }
}
