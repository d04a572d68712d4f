//! Careful Resume over every algorithm, whatever happens (RFC 9959 §3).

use proptest::prelude::*;
use trimtab_cc::resume::{Resume, Resumption, Saved, Stage};
use trimtab_cc::{ALGORITHMS, CongestionControl, Controller};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::support::{MSS, Op, Sender, config};

/// Parameters that some lives confirm, some refute, and some outlive.
fn saved() -> impl Strategy<Value = Option<Saved>> {
    let set = (1..2_000u64, 1..200_000u64, 1..100u64).prop_map(|(packets, us, secs)| Saved {
        window: MSS * packets,
        rtt: Duration::from_micros(us),
        expires: Time::from_secs(secs),
    });
    prop::option::weighted(0.9, set)
}

/// A life with more chance of a jump: what is sent is acknowledged, and the window limits.
fn calm() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..40u8).prop_map(|packets| Op::Send { packets, app_limited: false }),
        6 => (1..12u8).prop_map(|packets| Op::Ack {
            packets,
            newest: false,
            cwnd_limited: true,
            in_recovery: false,
            timed: true,
        }),
        4 => (0..20_000u32).prop_map(|us| Op::Pass { us }),
    ]
}

/// The arrows of Figure 1, and a phase that stays.
fn follows(before: Stage, after: Stage) -> bool {
    use Stage::{Normal, Reconnaissance, SafeRetreat, Unvalidated, Validating};
    before == after
        || match before {
            Reconnaissance => matches!(after, Unvalidated | Normal),
            Unvalidated => matches!(after, Validating | SafeRetreat | Normal),
            Validating => matches!(after, SafeRetreat | Normal),
            SafeRetreat => after == Normal,
            Normal => false,
        }
}

fn wrapped(
    algorithm: &trimtab_cc::Algorithm,
    seed: u64,
    saved: Option<Saved>,
) -> Sender<Resume<Controller>> {
    let config = config(seed);
    let cca = (algorithm.build)(&config);
    let how = Resumption { saved, ..Resumption::default() };
    Sender::with(Resume::new(cca, &config, how), config)
}

/// What must hold of a step from one state to the next.
fn check_step(before: &Resume<Controller>, after: &Resume<Controller>, op: Op, least: Bytes) {
    let (from, to) = (before.state(), after.state());
    let context = format!("{op:?}: {from:?} to {to:?}");
    // An operation can be several events: a loss and what follows it. So two arrows at most.
    let between = [from.stage(), Stage::Unvalidated, Stage::Validating, Stage::SafeRetreat];
    let reached = between.iter().any(|&via| follows(from.stage(), via) && follows(via, to.stage()));
    assert!(reached, "{context}");
    match to.stage() {
        Stage::Unvalidated => {
            let pace = after.pacing_rate().expect("§3.3: a jump is paced");
            assert!(pace > Rate::ZERO && pace < Rate::MAX, "{context}");
            assert_eq!(after.window(), to.jump().max(least), "§3.3: {context}");
        }
        Stage::SafeRetreat => {
            assert!(to.is_refuted(), "§3.5: {context}");
            assert!(after.window() <= (to.pipe_size() / 2).max(least), "§3.5: {context}");
            let resized = matches!(op, Op::Mtu { .. });
            if from.stage() == Stage::SafeRetreat && !resized {
                assert!(after.window() <= before.window(), "§3.5: {context}");
            }
        }
        Stage::Normal if from.stage() == Stage::SafeRetreat => {
            let bound = to.pipe_size().mul_f64(0.5).max(least).max(MSS * 2);
            let ssthresh = after.ssthresh().unwrap_or_default();
            let resized = matches!(op, Op::Mtu { .. });
            assert!(resized || ssthresh <= bound, "§3.5: {ssthresh} > {bound}, {context}");
        }
        Stage::Reconnaissance | Stage::Validating | Stage::Normal => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Phases follow Figure 1, a jump is never above half of what was saved, a retreat never grows,
    /// and a clone lives the same life.
    #[test]
    fn any_order_of_events_keeps_the_rules(
        start in prop::collection::vec(calm(), 0..60),
        life in prop::collection::vec(super::ops(), 1..200),
        saved in saved(),
        seed in any::<u64>(),
    ) {
        for algorithm in ALGORITHMS {
            let mut sender = wrapped(algorithm, seed, saved);
            let mut clone = sender.clone();
            for op in start.iter().chain(&life) {
                let before = sender.cca.clone();
                sender.step(*op);
                check_step(&before, &sender.cca, *op, sender.least_window());
                let jump = sender.cca.state().jump();
                let half = saved.map_or(Bytes::ZERO, |saved| saved.window / 2);
                prop_assert!(jump <= half, "§3.3: {} with {}", jump, algorithm.name);
            }
            for op in start.iter().chain(&life) {
                clone.step(*op);
            }
            prop_assert_eq!(clone.face(), sender.face(), "{}", algorithm.name);
        }
    }

    /// Without anything saved the algorithm is as if it were alone.
    #[test]
    fn a_connection_that_only_observes_is_the_algorithm(
        life in prop::collection::vec(super::ops(), 1..300),
        seed in any::<u64>(),
    ) {
        for algorithm in ALGORITHMS {
            let mut alone = Sender::new(algorithm, seed);
            let mut observing = wrapped(algorithm, seed, None);
            for op in &life {
                alone.step(*op);
                observing.step(*op);
                prop_assert_eq!(alone.face(), observing.face(), "{}", algorithm.name);
            }
        }
    }
}

/// Of four hundred lives, some of every algorithm jump, validate and retreat.
#[test]
fn every_algorithm_jumps_and_validates_and_retreats() {
    use rand::{RngExt, SeedableRng};
    for algorithm in ALGORITHMS {
        let mut reached = [0_u32; 5];
        for seed in 0..400_u64 {
            let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
            let config = trimtab_cc::Config::with_mss(MSS, seed);
            let saved = Saved {
                window: MSS * 120,
                rtt: Duration::from_millis(20),
                expires: Time::from_secs(60),
            };
            let cca = (algorithm.build)(&config);
            let cca = Resume::new(cca, &config, saved.into());
            let mut sender = Sender::with(cca, config);
            sender.step(Op::Send { packets: 10, app_limited: false });
            sender.step(Op::Pass { us: 20_000 });
            for step in 0..60 {
                let (newest, in_recovery) = (false, false);
                let packets = rng.random_range(1..4);
                match rng.random_range(0..12) {
                    0..5 => sender.step(Op::Send { packets: packets * 6, app_limited: false }),
                    5..8 => sender.step(Op::Ack {
                        packets: packets * 4,
                        newest,
                        cwnd_limited: true,
                        in_recovery,
                        timed: true,
                    }),
                    8 if step > 20 && seed % 2 == 0 => sender.step(Op::Lose { packets: 1 }),
                    _ => sender.step(Op::Pass { us: 2_000 }),
                }
                reached[sender.cca.state().stage() as usize] += 1;
            }
        }
        assert!(reached.iter().all(|&n| n > 20), "{}: {reached:?}", algorithm.name);
    }
}
