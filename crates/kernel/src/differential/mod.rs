//! The kernel's algorithms against those of `trimtab_cc`: the same random events, the same answers but for fixed point.
//!
//! Each sequence is a path of random delay, rate and buffer, with jitter, losses, timeouts, pauses,
//! times without enough data and knobs that are turned. The Rust algorithm drives it; both
//! algorithms see every event.

mod bbr;
mod bbr3;
mod bbr3_core;
mod bbr3_socket;
mod bbr_core;
mod bbr_socket;
mod choose;
mod core;
mod cores;
mod cubic;
mod cubic_core;
mod cubic_socket;
mod driver;
mod ledger;
mod muses;
mod muses_core;
mod path;
mod switch;
mod switch_core;
mod tally;
mod vivace;
mod vivace_core;

use self::path::{Outcome, run};

/// Sequences, and events of each.
const SEQUENCES: u64 = 3000;
const EVENTS: u64 = 1500;

/// Two answers agree within 1%, or within a tenth of a packet where windows are small.
///
/// Fixed point alone is a hundred times better. But where the rate is as good as the target, a difference in the last
/// bit turns the window the other way one acknowledgement sooner, and a fast window then starts again from velocity 1:
/// Copa decides by thresholds, so single answers may differ, and come together again. Hence a tolerance, and shares.
const AGREE: f64 = 0.01;

#[test]
fn the_core_agrees_with_the_rust_algorithm_on_thousands_of_random_sequences() {
    let mut all = Outcome::default();
    let mut throughout = 0;
    for seed in 0..SEQUENCES {
        let outcome = run(seed, EVENTS, AGREE);
        throughout += u64::from(outcome.windows == EVENTS);
        all.add(&outcome);
    }
    println!("{all:?}, {throughout} of {SEQUENCES} sequences throughout");
    let share = |part: u64| part as f64 / all.events as f64;
    assert_eq!(all.events, SEQUENCES * EVENTS);
    assert!(throughout * 10 >= SEQUENCES * 9, "only {throughout} sequences agree throughout");
    // The window of CUBIC is whole packets: a difference in the last bit may be one of them.
    assert!(share(all.windows) > 0.99, "windows: {all:?}");
    assert!(share(all.pacing) > 0.989, "pacing rates: {all:?}");
    assert!(share(all.modes) > 0.9999, "slow start and competitive mode: {all:?}");
    // Neither is larger on the whole.
    assert!((all.log_ratio / all.events as f64).abs() < 2e-4, "{all:?}");
    // The sequences do go everywhere.
    assert!(share(all.slow_start) > 0.05 && share(all.competitive) > 0.01, "{all:?}");
}
