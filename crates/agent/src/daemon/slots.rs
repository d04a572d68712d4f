//! Which connections have the slots.

use std::collections::{BTreeMap, BTreeSet};

use trimtab_kernel::{Algorithm, Datapath, Stats};
use trimtab_units::{Bytes, Duration, Time};

use crate::config::Config;
use crate::core::Core;
use crate::doors::table::count;
use crate::kernel::places::cgroup_paths;

/// Above this share of the slots, idle connections give up theirs, …
const SHORT: f64 = 15.0 / 16.0;
/// … so many of all at once, …
const SHARE: f64 = 1.0 / 8.0;
/// … and again after this.
const AGAIN: Duration = Duration::from_secs(10);
/// Cgroups at their share that are named; further ones are counted.
const NAMED: usize = 8;

/// Tells the kernel what connections to come send before they have a slot, and how many those of one
/// cgroup may hold. Where applications send `hints`, all have one at once, since a hint is about a
/// connection that has a slot.
pub(super) fn tell(datapath: &Datapath, config: &Config, hints: bool) {
    for algorithm in Algorithm::ALL {
        let after = if hints { Bytes::ZERO } else { config.slot_after(algorithm.name()) };
        datapath.set_slot_after(algorithm, after);
    }
    datapath.set_cgroup_slots(config.datapath.cgroup_slots());
}

/// Whether of so many slots hardly any are left.
fn is_short(taken: u64, of: u32) -> bool {
    taken as f64 >= SHORT * f64::from(of)
}

fn share_of(slots: u32) -> usize {
    (f64::from(slots) * SHARE).ceil() as usize
}

/// Who has no slot left.
#[derive(Debug)]
pub(super) struct Full {
    /// How many slots there are, where all are taken.
    all: Option<u32>,
    /// How many those of one cgroup may hold, and the cgroups that hold as many.
    of_cgroup: (u32, Vec<u64>),
}

impl Full {
    pub(super) fn of(datapath: &Datapath, stats: &Stats) -> Self {
        let all = (stats.live >= u64::from(stats.slots)).then_some(stats.slots);
        let most = datapath.cgroup_slots();
        let held = if most < stats.slots { datapath.held() } else { Vec::new() };
        let at_share = held.iter().filter(|held| held.slots >= most).map(|held| held.cgroup);
        Self { all, of_cgroup: (most, at_share.collect()) }
    }
}

/// Takes slots from connections that are idle, where others need them.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// When it last looked for some.
    made_at: Option<Time>,
    /// Paths of the cgroups that are at their share, by number; `None` of one that was removed.
    paths: BTreeMap<u64, Option<String>>,
}

impl Room {
    /// Takes slots from the connections that are idle for longest: of each cgroup that holds nearly
    /// its share, and of all where hardly any slot is left.
    pub(super) fn make(&mut self, core: &mut Core<Datapath>, stats: &Stats, now: Time) {
        if self.made_at.is_some_and(|at| now.since(at) < AGAIN) {
            return;
        }
        let most = core.datapath().cgroup_slots();
        let held = if most < stats.slots { core.datapath().held() } else { Vec::new() };
        let short = held.iter().filter(|held| is_short(held.slots.into(), most));
        let mut needed: Vec<(Option<u64>, u32)> =
            short.map(|held| (Some(held.cgroup), most)).collect();
        if is_short(stats.live, stats.slots) {
            needed.push((None, stats.slots));
        }
        if needed.is_empty() {
            return;
        }
        self.made_at = Some(now);
        let idle = needed.iter().flat_map(|(of, slots)| core.idlest(share_of(*slots), *of));
        let idle: BTreeSet<_> = idle.collect();
        if !idle.is_empty() {
            let gone = core.datapath().evict(&idle);
            core.gone(&gone);
        }
    }

    /// What `status` says of those that have no slot left.
    pub(super) fn troubles(&mut self, full: &Full) -> Vec<String> {
        let all = full.all.map(|slots| {
            format!(
                "all {slots} slots are taken, and no connection that has one is idle: further \
                 connections run untuned; raise datapath.slots, and restart the agent"
            )
        });
        let (most, at_share) = &full.of_cgroup;
        let (named, others) = at_share.split_at(at_share.len().min(NAMED));
        self.find_paths(named);
        let cgroups = named.iter().map(|id| match self.paths.get(id) {
            Some(Some(path)) => format!("cgroup {path} holds"),
            _ => format!("cgroup number {id}, which has no path here, holds"),
        });
        let others =
            (!others.is_empty()).then(|| format!("{} more hold", count(others.len(), "cgroup")));
        let of_cgroups = cgroups.chain(others).map(|who| {
            format!(
                "{who} the {} that one cgroup may hold: further connections of it run untuned; \
                 raise datapath.cgroup_share, and restart the agent",
                count(*most as usize, "slot")
            )
        });
        all.into_iter().chain(of_cgroups).collect()
    }

    /// Looks for the paths of those that are new.
    fn find_paths(&mut self, cgroups: &[u64]) {
        self.paths.retain(|id, _| cgroups.contains(id));
        let new = cgroups.iter().copied().filter(|id| !self.paths.contains_key(id));
        let new: BTreeSet<u64> = new.collect();
        if !new.is_empty() {
            let mut found = cgroup_paths(&new);
            self.paths.extend(new.into_iter().map(|id| (id, found.remove(&id))));
        }
    }
}
