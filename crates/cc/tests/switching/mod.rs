//! Every ordered pair of algorithms: one takes over from the other, whatever happens.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::migrate::{Migrate, Switch, Switcher};
use trimtab_cc::{ALGORITHMS, CongestionControl, Phase, Spec};

use crate::support::{Op, Sender, config};

fn spec(name: &str) -> Spec {
    name.parse().expect("a name of the table")
}

/// The knobs that the running algorithm should have, and those that it has.
fn assert_knobs_as_asked(cca: &Switcher, life: &str) {
    for (index, knob) in cca.knobs().iter().enumerate() {
        assert_eq!(cca.knob(index), Some(knob.default), "{life}: {}", knob.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Nothing panics and no output is out of bounds, with either way of switching; and a full switch
    /// leads into slow start only where losses without a queue may have held the old one back.
    #[test]
    fn any_pair_in_any_order_of_events(
        before in prop::collection::vec(super::ops(), 1..120),
        after in prop::collection::vec(super::ops(), 1..120),
        seed in any::<u64>(),
        full in any::<bool>(),
    ) {
        let how = if full { Switch::Full } else { Switch::Part };
        for old in ALGORITHMS {
            for new in ALGORITHMS {
                let life = format!("{} to {}", old.name, new.name);
                let config = config(seed);
                let mut sender = Sender::with(Switcher::new(spec(old.name), &config), config);
                for op in &before {
                    sender.step(*op);
                }
                let now = sender.now;
                sender.cca.request(spec(new.name), how, now);
                let mut switched = sender.cca.switches();
                for op in &after {
                    let converged = sender.cca.controller().is_converged();
                    let starved = sender.cca.path().lost_without_queue();
                    sender.step(*op);
                    if full && converged && !starved && sender.cca.switches() > switched {
                        prop_assert_ne!(sender.cca.phase(), Phase::SlowStart, "{}", life);
                    }
                    switched = sender.cca.switches();
                }
                prop_assert!(sender.cca.switches() <= 1, "{}", life);
                prop_assert!(old.name != new.name || switched == 0, "{}", life);
            }
        }
    }
}

/// What a transport does whose path neither dies nor pauses.
fn draw(rng: &mut Pcg64Mcg) -> Op {
    let word = rng.next_u32();
    let (a, b) = ((word >> 8) as u8, (word >> 16) as u8);
    match word % 64 {
        0..2 => Op::Lose { packets: a % 3 + 1 },
        2..18 => Op::Pass { us: (word >> 8) % 8_000 },
        18..40 => Op::Send { packets: a % 16 + 1, app_limited: false },
        _ => Op::Ack {
            packets: a % 8 + 1,
            newest: false,
            cwnd_limited: b % 4 != 0,
            in_recovery: false,
            timed: true,
        },
    }
}

/// migration.md §8.2 and §8.7: through every ordered pair, no slow start after the first convergence,
/// thresholds known, knobs as asked for; and every switch is made.
#[test]
fn no_slow_start_after_the_first_convergence() {
    for (i, old) in ALGORITHMS.iter().enumerate() {
        for (j, new) in ALGORITHMS.iter().enumerate().filter(|(j, _)| *j != i) {
            let life = format!("{} to {}", old.name, new.name);
            let seed = (i * ALGORITHMS.len() + j) as u64;
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let config = trimtab_cc::Config::default();
            let mut sender = Sender::with(Switcher::new(spec(old.name), &config), config);
            for step in 0..24_000 {
                if step % 6_000 == 3_000 {
                    let next =
                        if sender.cca.spec().algorithm().name == old.name { new } else { old };
                    let now = sender.now;
                    sender.cca.request(spec(next.name), Switch::Full, now);
                }
                sender.step(draw(&mut rng));
                if sender.cca.switches() > 0 {
                    assert_ne!(sender.cca.phase(), Phase::SlowStart, "{life}, step {step}");
                    assert_knobs_as_asked(&sender.cca, &life);
                }
            }
            assert!(sender.cca.switches() >= 3, "{life}: {} switches", sender.cca.switches());
        }
    }
}
