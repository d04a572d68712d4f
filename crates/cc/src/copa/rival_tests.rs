//! Copa with the window of CUBIC (the knob `competitive` at 2), and the values of its knobs.

use super::*;
use crate::migrate::Migrate as _;
use crate::testing::link::MSS;
use crate::testing::{acked, hand_over, lost, timed_out};
use crate::{KnobError, get_knob, set_knob};

/// So long after all begins, which is at 1 s.
fn at(ms: u64) -> Time {
    Time::from_millis(1000 + ms)
}

/// An acknowledgement of one packet at `now`, after a round trip of so many milliseconds, in which
/// the application limits the sender.
fn idle(now: u64, rtt: u64) -> Ack {
    let rtt = Duration::from_millis(rtt);
    Ack { cwnd_limited: false, ..acked(at(now), at(now) - rtt, MSS, rtt) }
}

/// The same where the window limits it.
fn busy(now: u64, rtt: u64) -> Ack {
    Ack { cwnd_limited: true, ..idle(now, rtt) }
}

/// Past slow start with 100 packets of window on a path of 20 ms, as Mortise sets it but for δ, with
/// which the window grows in any queue here. A second of the common clock ends after 400 ms.
fn beginning(competitive: f64) -> Copa {
    let clock = Duration::from_millis(600);
    let mut copa = Copa::new(&Config { clock, ..Config::with_mss(MSS, 0) });
    for (knob, value) in
        [("delta", 0.01), ("competitive", competitive), ("loss_beta", 0.7), ("loss_tolerance", 0.1)]
    {
        set_knob(&mut copa, knob, value).unwrap();
    }
    copa.window = 100.0 * copa.mss;
    copa.slow_start = false;
    copa.velocity = Velocity::new(copa.window);
    copa.on_ack(&idle(20, 20));
    copa
}

/// The same next to flows that hold a queue of 40 ms, half a second later.
fn crowded(competitive: f64) -> Copa {
    let mut copa = beginning(competitive);
    for now in 21..=500 {
        copa.on_ack(&idle(now, 60));
    }
    assert_eq!((copa.is_competitive(), copa.window()), (competitive > 0.0, MSS * 100));
    copa
}

/// Fills the queue with 40 ms for so long that it stands.
fn fill(copa: &mut Copa, from: u64) {
    for now in from..=from + 40 {
        copa.on_ack(&idle(now, 60));
    }
}

/// One that was never next to others, on a queue of 40 ms that has just been filled.
fn alone(competitive: f64) -> Copa {
    let mut copa = beginning(competitive);
    copa.on_ack(&idle(440, 20));
    fill(&mut copa, 460);
    assert!(!copa.is_competitive());
    copa
}

/// The window after one packet of so many was lost, on a queue of `queueing` ms. The greatest that
/// was seen is 40 ms.
fn after_loss(copa: &Copa, queueing: u64, of: u64) -> Bytes {
    let mut copa = copa.clone();
    copa.on_ack(&idle(501, 20 + queueing));
    copa.tally = [Tally { lost: Bytes::ZERO, acked: MSS * (of - 1) }, Tally::default()];
    copa.on_loss(&lost(at(502), at(490)));
    copa.window()
}

/// Numbers between the values go to the nearest, as those of CUBIC's `hystart` do.
#[test]
fn competitive_has_three_values_and_growth_max_a_share() {
    let mut copa = Copa::new(&Config::with_mss(MSS, 0));
    assert_eq!(get_knob(&copa, "competitive"), Some(1.0));
    for (set, got) in [(0.0, 0.0), (0.4, 0.0), (0.6, 1.0), (1.4, 1.0), (1.6, 2.0), (2.0, 2.0)] {
        set_knob(&mut copa, "competitive", set).unwrap();
        assert_eq!(get_knob(&copa, "competitive"), Some(got), "{set}");
    }
    assert_eq!(get_knob(&copa, "growth_max"), Some(1.0));
    for set in [0.05, 1.0] {
        set_knob(&mut copa, "growth_max", set).unwrap();
        assert_eq!(get_knob(&copa, "growth_max"), Some(set));
    }
    for (knob, value) in [
        ("competitive", -0.01),
        ("competitive", 2.01),
        ("competitive", f64::NAN),
        ("growth_max", 0.049),
        ("growth_max", 1.01),
    ] {
        let refused = set_knob(&mut copa, knob, value);
        assert!(matches!(refused, Err(KnobError::OutOfRange { .. })), "{knob}={value}");
    }
}

/// One acknowledgement moves the window by at most this share of what it acknowledges, either way.
#[test]
fn growth_max_bounds_the_step() {
    let moved = |delta: f64, rtt: u64| {
        let mut copa = beginning(0.0);
        copa.window = 10.0 * copa.mss;
        set_knob(&mut copa, "delta", delta).unwrap();
        set_knob(&mut copa, "standing", 0.0).unwrap();
        set_knob(&mut copa, "growth_max", 0.125).unwrap();
        copa.on_ack(&busy(21, rtt));
        copa.window / copa.mss - 10.0
    };
    assert_eq!(moved(0.002, 20), 0.125, "without it one packet");
    assert_eq!(moved(0.5, 60), -0.125, "without it 1/(0.5 · 10) of one");
    assert!((moved(2.0, 20) - 0.05).abs() < 1e-9, "less stays what it is");
}

/// It has its own 1/δ until others fill the queue, and CUBIC's window from then on: a quarter of
/// what is acknowledged, until the first loss.
#[test]
fn it_keeps_the_window_of_cubic_while_others_fill_the_queue() {
    let mut copa = crowded(2.0);
    assert_eq!(copa.effective_delta(), 0.01, "the knob's, whatever the mode makes of it");
    for now in 501..=508 {
        copa.on_ack(&busy(now, 60));
    }
    assert_eq!(copa.window(), MSS * 102);
    copa.on_ack(&idle(509, 60));
    assert_eq!(copa.window(), MSS * 102, "the application limits it");
    // A packet in flight when the loss was seen does not end recovery, in which nothing grows.
    copa.on_loss(&lost(at(510), at(505)));
    assert_eq!(copa.window(), MSS * 71, "102 · 717/1024");
    copa.on_ack(&busy(511, 60));
    assert_eq!(copa.window(), MSS * 71);
    // δ has no say in it: 1/(0.01 · 71) of a packet each would be 28 of 20 packets.
    for now in 571..=590 {
        copa.on_ack(&busy(now, 60));
    }
    assert!(copa.window() <= MSS * 73, "{:?}", copa.window());
    assert!(copa.is_competitive());
    // The queue empties: others have gone.
    copa.on_ack(&busy(591, 20));
    assert!(!copa.is_competitive());
}

/// A full queue's losses are those of everybody in it, whatever share is lost, and whether others
/// hold the queue or not.
#[test]
fn losses_of_a_full_queue_are_answered_as_cubic_does() {
    let reduced = MSS * 70; // 100 · 717/1024
    assert_eq!(after_loss(&crowded(2.0), 40, 1000), reduced);
    assert_eq!(after_loss(&alone(2.0), 40, 1000), reduced);
    assert_eq!(after_loss(&alone(2.0), 25, 1000), MSS * 100, "below 3/4 of 40 ms");
    for competitive in [0.0, 1.0] {
        let other = alone(competitive);
        assert_eq!(after_loss(&other, 40, 1000), MSS * 100, "within `loss_tolerance`");
    }
}

/// What was in flight while the link stood still shows no full queue, and its losses are none of one.
#[test]
fn losses_of_an_outage_are_not_those_of_a_full_queue() {
    let mut copa = alone(2.0);
    copa.on_ack(&idle(1500, 1000));
    copa.on_loss(&lost(at(1501), at(501)));
    assert_eq!(copa.window(), MSS * 100);
    // Nor did the queue get so long: 40 ms are still a full one.
    fill(&mut copa, 1562);
    copa.on_loss(&lost(at(1603), at(1543)));
    assert_eq!(copa.window(), MSS * 70);
}

/// One acknowledgement that is late shows a delay that no queue had.
#[test]
fn a_late_acknowledgement_makes_no_queue() {
    let mut copa = crowded(2.0);
    copa.on_ack(&idle(501, 200));
    assert_eq!(after_loss(&copa, 40, 1000), MSS * 70);
}

/// While it competes, up to 2% are the link's where the queue is short, not `loss_tolerance`.
#[test]
fn competing_it_takes_two_percent_of_losses_for_those_of_the_link() {
    let copa = crowded(2.0);
    assert_eq!(after_loss(&copa, 25, 50), MSS * 100, "2% of 50 packets");
    assert_eq!(after_loss(&copa, 25, 49), MSS * 70, "more");
    assert_eq!(after_loss(&crowded(1.0), 25, 49), MSS * 100, "not without CUBIC's window");
    assert_eq!(after_loss(&alone(2.0), 25, 49), MSS * 100, "nor where nobody fills the queue");
}

/// Several losses of a flight are one, as CUBIC has it (RFC 9438 §4.6).
#[test]
fn it_answers_one_loss_of_a_flight() {
    let mut copa = crowded(2.0);
    copa.on_loss(&lost(at(501), at(450)));
    copa.on_loss(&lost(at(502), at(460)));
    assert_eq!(copa.window(), MSS * 70);
}

/// After a full queue dropped packets its own window is CUBIC's at most, for three seconds.
#[test]
fn after_a_full_queue_the_window_of_cubic_bounds_its_own() {
    let grown = |competitive: f64, losses: bool, until: u64| {
        let mut copa = beginning(competitive);
        fill(&mut copa, 21);
        if losses {
            copa.on_loss(&lost(at(62), at(42)));
        }
        // The queue is gone, and 1/(0.01 · 70) of a packet each would be 100 of 70 packets.
        for now in (122..until).step_by(2) {
            copa.on_ack(&busy(now, 20));
        }
        copa.window / copa.mss
    };
    let bounded = grown(2.0, true, 322);
    assert!((70.0..75.0).contains(&bounded), "{bounded}");
    assert!(grown(2.0, false, 322) > 150.0 && grown(1.0, true, 322) > 150.0);
    // Forgotten after three seconds, it grows as before.
    let before = grown(2.0, true, 3062);
    assert!(grown(2.0, true, 3162) > before + 40.0, "from {before}");
}

/// The window that did not limit the sender does not grow (RFC 9438 §5.8).
#[test]
fn the_bound_grows_only_where_it_limits() {
    let mut copa = beginning(2.0);
    fill(&mut copa, 21);
    copa.on_loss(&lost(at(62), at(42)));
    copa.window = 60.0 * copa.mss;
    set_knob(&mut copa, "delta", 2.0).unwrap();
    let bound = |copa: &Copa| copa.rival.as_ref().map(Rival::window);
    for now in 122..300 {
        copa.on_ack(&busy(now, 60));
    }
    assert!(copa.window < 60.0 * copa.mss && !copa.is_competitive(), "{copa:?}");
    assert_eq!(bound(&copa), Some(MSS * 70));
    copa.window = 70.0 * copa.mss;
    set_knob(&mut copa, "delta", 0.01).unwrap();
    for now in 300..400 {
        copa.on_ack(&busy(now, 20));
    }
    assert!(bound(&copa) > Some(MSS * 70), "{copa:?}");
}

/// Others' queues hide the minimum round-trip time: it counts eight times as long next to them.
#[test]
fn the_minimum_round_trip_time_counts_longer_next_to_others() {
    let remembered = |competitive: f64, seconds: u64| {
        let mut copa = crowded(competitive);
        for now in (600..seconds * 1000).step_by(20) {
            copa.on_ack(&idle(now, 60));
        }
        copa.rtt_min.get() == Some(Duration::from_millis(20))
    };
    // A sample outlives its window by an eighth at most.
    assert!(remembered(2.0, 79) && !remembered(2.0, 91));
    assert!(remembered(1.0, 9) && !remembered(1.0, 13));
}

/// A pause is none of the curve's time (RFC 9438 §5.8).
#[test]
fn the_clock_of_the_window_stands_still_in_a_pause() {
    let grown = |pause: u64| {
        let mut copa = crowded(2.0);
        copa.on_loss(&lost(at(500), at(450)));
        let see = |copa: &mut Copa, from: u64| {
            for now in from..from + 100 {
                copa.on_ack(&busy(now, 60));
            }
        };
        see(&mut copa, 561);
        let now = 660 + pause;
        let sent = Sent { now: at(now), bytes: MSS, inflight: MSS, app_limited: false };
        copa.on_sent(&sent);
        see(&mut copa, now + 1);
        copa.window()
    };
    // Linux looks at its curve anew after a pause, a packet sooner. Three seconds are 30 of them.
    assert!(grown(3000) <= grown(0) + MSS, "{:?} and {:?}", grown(3000), grown(0));
}

#[test]
fn a_timeout_a_change_and_other_knobs_end_it() {
    let copa = crowded(2.0);
    assert!(copa.rival.is_some());
    let mut stopped = copa.clone();
    stopped.on_timeout(&timed_out(at(600)));
    assert!(stopped.rival.is_none() && !stopped.is_competitive());
    let mut moved = copa.clone();
    moved.take_over(&hand_over(MSS * 150, Duration::from_millis(30)));
    assert!(moved.rival.is_none() && !moved.is_competitive());
    assert_eq!(moved.window(), MSS * 150, "the former bound is none");
    // What the former path lost says nothing of this one.
    let mut lossy = copa.clone();
    lossy.on_ack(&idle(501, 45));
    lossy.blame.on_loss(MSS * 1000);
    lossy.take_over(&hand_over(MSS * 150, Duration::from_millis(30)));
    lossy.on_ack(&idle(30_100, 60));
    assert!(lossy.blame.on_loss(MSS));
    for (competitive, competes) in [(0.0, false), (1.0, true), (2.0, true)] {
        let mut turned = copa.clone();
        set_knob(&mut turned, "competitive", competitive).unwrap();
        assert_eq!(turned.is_competitive(), competes);
        assert_eq!(turned.rival.is_some(), competitive == 2.0);
    }
}

/// The knob that turns to 2 while it competes by δ gives CUBIC's window from the own one on.
#[test]
fn it_goes_over_to_the_window_of_cubic_while_it_competes() {
    let mut copa = crowded(1.0);
    set_knob(&mut copa, "competitive", 2.0).unwrap();
    for now in 501..1500 {
        copa.on_ack(&busy(now, 60));
    }
    let window = copa.window();
    assert!(window > MSS * 100 && window < MSS * 130, "{window:?}");
}

/// Packets of another size: the windows count in them.
#[test]
fn its_window_takes_another_size_of_packets() {
    let mut copa = crowded(2.0);
    copa.on_mtu(&Config::with_mss(MSS * 2, 0));
    copa.on_loss(&lost(at(510), at(505)));
    assert_eq!(copa.window(), MSS * 70, "35 of 50 packets");
    let mut late = beginning(2.0);
    late.on_mtu(&Config::with_mss(MSS * 2, 0));
    late.on_ack(&idle(21, 60));
    late.on_loss(&lost(at(22), at(2)));
    assert_eq!(late.window(), MSS * 70);
}
