//! What every algorithm of the table must keep, whatever happens and in whatever order.

mod resume;
mod support;
mod switching;

use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use support::{Op, Sender};
use trimtab_cc::{ALGORITHMS, Config, CongestionControl, Spec, get_knob};
use trimtab_units::Bytes;

fn ops() -> impl Strategy<Value = Op> {
    let flags = || (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        6 => (1..40u8, any::<bool>())
            .prop_map(|(packets, app_limited)| Op::Send { packets, app_limited }),
        6 => (1..40u8, flags()).prop_map(|(packets, (newest, cwnd_limited, in_recovery, timed))| {
            Op::Ack { packets, newest, cwnd_limited, in_recovery, timed }
        }),
        2 => (1..20u8).prop_map(|packets| Op::Lose { packets }),
        1 => Just(Op::Timeout),
        1 => Just(Op::Spurious),
        1 => Just(Op::Mark),
        1 => any::<u16>().prop_map(|ms| Op::Idle { ms }),
        5 => (0..100_000u32).prop_map(|us| Op::Pass { us }),
        1 => any::<u32>().prop_map(|secs| Op::Jump { secs }),
        1 => any::<(u8, u8)>().prop_map(|(index, at)| Op::Knob { index, at }),
        1 => (1..9000u16).prop_map(|mss| Op::Mtu { mss }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Nothing panics, the outputs stay sane, and a clone lives the same life as its original.
    #[test]
    fn any_order_of_events(life in prop::collection::vec(ops(), 1..300), seed in any::<u64>()) {
        for algorithm in ALGORITHMS {
            let mut sender = Sender::new(algorithm, seed);
            let (before, after) = life.split_at(life.len() / 2);
            for op in before {
                sender.step(*op);
            }
            let mut clone = sender.clone();
            for op in after {
                sender.step(*op);
            }
            for op in after {
                clone.step(*op);
            }
            prop_assert_eq!(clone.face(), sender.face(), "{}", algorithm.name);
        }
    }
}

/// Path MTU discovery finds larger packets in the middle of a life: the window stays, in bytes.
#[test]
fn packets_of_another_size_leave_the_window() {
    let (narrow, wide) =
        (Config::with_mss(Bytes::new(1200), 1), Config::with_mss(Bytes::new(1500), 1));
    for algorithm in ALGORITHMS {
        let mut cca = (algorithm.build)(&narrow);
        let before = cca.window();
        cca.on_mtu(&wide);
        let by_rate = matches!(algorithm.name, "vivace" | "allegro");
        let expected = if by_rate { wide.initial_window } else { before };
        assert_eq!(cca.window(), expected, "{}", algorithm.name);
    }
}

/// RFC 3168 §5 and RFC 9002 §7.3.1: a mark cuts what is in flight, once in a round trip. BBRv1 is Linux's, which
/// does not answer.
#[test]
fn all_but_bbr_answer_a_mark_once_in_a_round_trip() {
    for algorithm in ALGORITHMS {
        let mut sender = Sender::new(algorithm, 1);
        let round = |sender: &mut Sender| {
            sender.step(Op::Send { packets: 40, app_limited: false });
            sender.step(Op::Pass { us: 20_000 });
            let (newest, cwnd_limited, in_recovery, timed) = (true, true, false, true);
            sender.step(Op::Ack { packets: 40, newest, cwnd_limited, in_recovery, timed });
        };
        round(&mut sender);
        round(&mut sender);
        sender.step(Op::Send { packets: 40, app_limited: false });
        sender.step(Op::Pass { us: 20_000 });
        let before = sender.cca.window();
        sender.step(Op::Mark);
        let after = sender.cca.window();
        if algorithm.name == "bbr" {
            assert_eq!(after, before);
            continue;
        }
        // SCReAM's share after a mark is 0.8, which RFC 8511 permits.
        let most = if algorithm.name == "scream" { 0.81 } else { 0.71 };
        assert!(after.ratio(before) <= most, "{}: {after} of {before}", algorithm.name);
        sender.step(Op::Pass { us: 5_000 });
        sender.step(Op::Mark);
        assert_eq!(sender.cca.window(), after, "{}", algorithm.name);
    }
}

/// One random operation, mostly what a working transport does.
fn draw(rng: &mut Pcg64Mcg) -> Op {
    let word = rng.next_u32();
    let (a, b) = ((word >> 8) as u8, (word >> 16) as u8);
    match word % 64 {
        0 => Op::Timeout,
        1 => Op::Spurious,
        2 => Op::Idle { ms: (word >> 12) as u16 },
        3 => Op::Knob { index: a, at: b },
        4 if a == 0 => Op::Jump { secs: rng.next_u32() },
        4..8 => Op::Lose { packets: a % 8 + 1 },
        8..24 => Op::Pass { us: (word >> 8) % 50_000 },
        24..44 => Op::Send { packets: a % 16 + 1, app_limited: b % 8 == 0 },
        _ => Op::Ack {
            packets: a % 8 + 1,
            newest: b % 16 == 0,
            cwnd_limited: b % 4 != 0,
            in_recovery: b % 32 == 1,
            timed: b % 8 != 2,
        },
    }
}

/// Four million operations over all algorithms, in lives long enough to reach every state.
#[test]
fn millions_of_random_operations() {
    const OPERATIONS: u64 = 4_000_000;
    const LIFE: u64 = 5_000;
    let lives = OPERATIONS / LIFE / ALGORITHMS.len() as u64 + 1;
    for algorithm in ALGORITHMS {
        for seed in 0..lives {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let mut sender = Sender::new(algorithm, seed);
            for _ in 0..LIFE {
                sender.step(draw(&mut rng));
            }
        }
    }
}

/// The windows of every algorithm over one scripted life, round trip by round trip: growth, a loss, a
/// longer path, a timeout, a spurious loss, an idle time. A change of behaviour is a diff of the file.
#[test]
fn scripted_life() {
    let mut text = String::new();
    for algorithm in ALGORITHMS {
        text += &format!("{}:", algorithm.name);
        let mut sender = Sender::new(algorithm, 0);
        for round in 0..60 {
            // The application never has more than 150 packets to send.
            let cwnd_limited = sender.cca.window() <= support::MSS * 150;
            sender.step(Op::Send { packets: 150, app_limited: !cwnd_limited });
            match round {
                4 | 24 => sender.step(Op::Lose { packets: 2 }),
                34 => sender.step(Op::Timeout),
                _ => {}
            }
            sender.step(Op::Pass { us: if round < 12 { 20_000 } else { 24_000 } });
            for _ in 0..75 {
                let (newest, in_recovery, timed) = (false, false, true);
                sender.step(Op::Ack { packets: 2, newest, cwnd_limited, in_recovery, timed });
                sender.step(Op::Pass { us: 40 });
            }
            if round == 48 {
                sender.step(Op::Idle { ms: 400 });
            }
            if round == 26 {
                sender.step(Op::Spurious);
            }
            text += &format!(" {}", sender.cca.window().get() / support::MSS.get());
        }
        text += "\n";
    }
    insta::assert_snapshot!(text);
}

#[test]
fn names_and_texts_are_in_order() {
    for (i, a) in ALGORITHMS.iter().enumerate() {
        assert!(ALGORITHMS[..i].iter().all(|b| b.name != a.name), "{} is there twice", a.name);
        assert!(!a.about.is_empty() && !a.source.is_empty(), "{}", a.name);
        // A spec holds as many settings as it has slots; setting all of them must not fail.
        let mut spec = Spec::new(a.name).expect("the table's own name");
        assert_eq!(spec.build(&Config::default()).name(), a.name);
        for (j, knob) in a.knobs.iter().enumerate() {
            assert!(a.knobs[..j].iter().all(|k| k.name != knob.name), "{}: {}", a.name, knob.name);
            assert!(knob.min < knob.max && !knob.about.is_empty(), "{}: {}", a.name, knob.name);
            spec.set(knob.name, knob.max).expect("the highest value is in range");
        }
        for (j, preset) in a.presets.iter().enumerate() {
            assert!(a.presets[..j].iter().all(|p| p.name != preset.name), "{}", preset.name);
            let text = format!("{}:{}", a.name, preset.name);
            let cca =
                text.parse::<Spec>().expect("the table's own preset").build(&Config::default());
            for (knob, value) in preset.knobs {
                assert_eq!(get_knob(&cca, knob), Some(*value), "{text}: {knob}");
            }
        }
    }
}

/// A fresh algorithm has the knobs that it declares, at their defaults, and setting one is seen.
#[test]
fn knobs_start_at_their_defaults_and_take_their_values() {
    for a in ALGORITHMS {
        let mut cca = (a.build)(&Config::default());
        assert_eq!(cca.knobs(), a.knobs, "{}", a.name);
        for (index, knob) in a.knobs.iter().enumerate() {
            assert_eq!(cca.knob(index), Some(knob.default), "{}: {}", a.name, knob.name);
            for value in [knob.min, knob.max, knob.default] {
                cca.apply_knob(index, value);
                assert_eq!(cca.knob(index), Some(value), "{}: {}", a.name, knob.name);
            }
        }
    }
}

/// Knob values of any kind leave an algorithm alone or are within the range afterwards.
#[test]
fn values_out_of_range_are_refused() {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    for a in ALGORITHMS {
        for knob in a.knobs {
            let mut cca = (a.build)(&Config::default());
            let wrong = rng.random_range(1.0..1e9);
            for value in [knob.min - wrong, knob.max + wrong, f64::NAN, f64::INFINITY] {
                assert!(trimtab_cc::set_knob(&mut cca, knob.name, value).is_err());
                assert_eq!(get_knob(&cca, knob.name), Some(knob.default));
            }
        }
    }
}

/// None of these algorithms asks for a timer: a transport that has none may run them.
#[test]
fn no_algorithm_needs_a_timer() {
    for algorithm in ALGORITHMS {
        let mut sender = Sender::new(algorithm, 1);
        let mut rng = Pcg64Mcg::seed_from_u64(3);
        for _ in 0..500 {
            sender.step(draw(&mut rng));
            assert_eq!(sender.cca.next_timer(), None, "{}", algorithm.name);
        }
    }
}
