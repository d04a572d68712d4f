use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::testing::link::MSS;
use crate::testing::{acked, timed_out};

const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn ack(ms: u64) -> Ack {
    acked(at(ms), at(ms - 100), MSS, RTT)
}

fn rule(domain: Domain, increment: i32, multiple: f64, pause_ms: f64) -> Whisker {
    Whisker { domain, increment, multiple, pause_ms }
}

/// Below this value of an axis, and from it on.
fn halves(axis: usize, at: f64) -> [Domain; 2] {
    let (mut below, mut above) = (Domain::ALL, Domain::ALL);
    (below.upper[axis], above.lower[axis]) = (at, at);
    [below, above]
}

fn remy(whiskers: Vec<Whisker>) -> Remy {
    let config = Config::with_mss(MSS, 0);
    Remy::new(&config, Arc::new(Table::new(whiskers).unwrap()))
}

/// §4.2: window ← m · window + b for each acknowledged packet, rounded down, from m · 0 + b on.
#[test]
fn each_packet_applies_the_rule() {
    let mut remy = remy(vec![rule(Domain::ALL, 5, 0.9, 2.0)]);
    assert_eq!(remy.window(), MSS * 5);
    let mut seen = Vec::new();
    for ms in [100, 102, 104, 106] {
        remy.on_ack(&ack(ms));
        seen.push(remy.window().get() / MSS.get());
    }
    // 5, 9.5, 13.1, 16.7 and 19.4, each rounded down.
    assert_eq!(seen, [9, 13, 16, 19]);
    assert_eq!(remy.pacing_rate(), Some(MSS / Duration::from_millis(2)));
    remy.on_ack(&Ack { acked: MSS * 3, ..ack(112) });
    assert_eq!(remy.window(), MSS * 26, "three packets: 22, 24, 26");
}

/// §4.1: the averages move by an eighth of each gap, the slow one by 1/256.
#[test]
fn the_memory_is_that_of_the_paper() {
    let mut remy = remy(vec![rule(Domain::ALL, 1, 1.0, 0.0)]);
    remy.on_ack(&ack(100));
    assert_eq!(remy.memory().axes(), &[0.0; AXES], "one packet has no gap");
    let rtt = Duration::from_millis(150);
    remy.on_ack(&acked(at(180), at(30), MSS, rtt));
    let [send, received, ratio, slow, above, queueing] = *remy.memory().axes();
    // 30 ms after the packet before it, 80 ms after its acknowledgement.
    assert_eq!((send, received, slow), (30.0 / 8.0, 10.0, 80.0 / 256.0));
    assert_eq!((ratio, above, queueing), (1.5, 50.0, 10.0));
    remy.on_ack(&acked(at(196), at(46), MSS * 2, rtt));
    let [send, received, ..] = *remy.memory().axes();
    // Two gaps of 8 ms each.
    assert_eq!(send, (30.0 / 8.0) * 49.0 / 64.0 + 7.0 / 8.0 + 1.0);
    assert_eq!(received, 10.0 * 49.0 / 64.0 + 7.0 / 8.0 + 1.0);
}

#[test]
fn the_rule_is_that_of_the_memorys_box() {
    let [short, long] = halves(2, 1.25);
    let mut remy = remy(vec![rule(short, 1, 1.0, 0.0), rule(long, 0, 0.5, 5.0)]);
    for ms in 100..110 {
        remy.on_ack(&ack(ms));
    }
    assert_eq!((remy.window(), remy.pacing_rate()), (MSS * 11, None));
    remy.on_ack(&acked(at(140), at(15), MSS, Duration::from_millis(125)));
    assert_eq!(remy.window(), MSS * 5, "a ratio of 1.25 is in the upper box");
    assert_eq!(remy.pacing_rate(), Some(MSS / Duration::from_millis(5)));
}

#[test]
fn a_timeout_and_a_silence_begin_anew_and_losses_change_nothing() {
    let begun = |remy: &Remy| remy.memory == Memory::default() && remy.window() == MSS * 3;
    let mut remy = remy(vec![rule(Domain::ALL, 3, 1.0, 0.0)]);
    assert!(begun(&remy));
    remy.on_ack(&ack(100));
    remy.on_loss(&crate::testing::lost(at(101), at(1)));
    assert_eq!(remy.window(), MSS * 6);
    remy.on_timeout(&timed_out(at(900)));
    assert!(begun(&remy));
    remy.on_ack(&ack(1000));
    remy.on_idle(&Idle { now: at(3000), idle: RTT * 20, rto: RTT * 3 });
    assert!(begun(&remy));
}

#[test]
fn the_window_stays_between_the_transports_least_and_the_cap() {
    let mut shrinking = remy(vec![rule(Domain::ALL, -1, 1.0, 0.0)]);
    shrinking.on_ack(&ack(100));
    assert_eq!(shrinking.window(), MSS * 2);
    let mut growing = remy(vec![rule(Domain::ALL, 256, 2.0, 0.0)]);
    crate::set_knob(&mut growing, "cap", 500.0).unwrap();
    for ms in 100..140 {
        growing.on_ack(&ack(ms));
    }
    assert_eq!(growing.window(), MSS * 500);
}

/// A box with the upper end of all boxes holds what is beyond.
#[test]
fn no_memory_is_beyond_the_last_box() {
    assert!(Domain::ALL.contains(&[MEMORY_MAX * 2.0; AXES]));
    let [below, above] = halves(4, 7.0);
    let seven = [7.0; AXES];
    assert!(!below.contains(&seven) && above.contains(&seven));
    let both = below.within(&halves(4, 3.0)[1]);
    assert_eq!((both.lower[4], both.upper[4], both.upper[0]), (3.0, 7.0, MEMORY_MAX));
}

#[test]
fn rules_that_are_no_table_are_refused() {
    let why = |whiskers: Vec<Whisker>| Table::new(whiskers).unwrap_err();
    assert_eq!(why(vec![]), TableError::Empty);
    assert_eq!(why(vec![rule(Domain::ALL, 1, f64::NAN, 0.0)]), TableError::Number(1));
    assert_eq!(why(vec![rule(Domain::ALL, 1, 1.0, -0.5)]), TableError::Number(1));
    let mut nothing = Domain::ALL;
    (nothing.lower[0], nothing.upper[0]) = (3.0, 3.0);
    let fine = rule(Domain::ALL, 1, 1.0, 0.0);
    assert_eq!(why(vec![fine, rule(nothing, 1, 1.0, 0.0)]), TableError::Nothing(2));
    assert_eq!(why(vec![rule(halves(1, 9.0)[1], 1, 1.0, 0.0)]), TableError::Begin);
}

proptest! {
    /// Whatever a table says and whatever happens, window and pause are what a transport can keep.
    #[test]
    fn any_table_gives_windows_in_range(
        rules in prop::collection::vec(
            (0usize..AXES, 0.0..400.0, -300i32..300, 0.0..3.0, 0.0..30.0), 1..6),
        acks in prop::collection::vec((1u64..400, 1u64..400, 1u64..5000, 1u64..30), 1..60),
    ) {
        let mut whiskers: Vec<_> = rules.iter().map(|&(axis, end, b, m, pause): &(_, f64, _, _, _)| {
            rule(halves(axis, end.max(0.1))[0], b, m, pause)
        }).collect();
        whiskers.push(rule(Domain::ALL, 1, 1.0, 0.0));
        let mut remy = remy(whiskers);
        let (mut now, mut sent) = (at(10_000), at(0));
        for (gap, sending, rtt, packets) in acks {
            (now, sent) = (now + Duration::from_millis(gap), sent + Duration::from_millis(sending));
            let rtt = Duration::from_millis(rtt);
            remy.on_ack(&acked(now, sent, MSS * packets, rtt));
            prop_assert!(remy.window() >= MSS * 2 && remy.window() <= MSS * 1_000_000);
            prop_assert!(remy.pacing_rate().is_none_or(|rate| rate > Rate::ZERO));
            prop_assert!(remy.memory().axes().iter().all(|x| x.is_finite() && *x >= 0.0));
        }
    }
}
