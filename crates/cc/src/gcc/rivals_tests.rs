//! What is taken for others, and what next to them is sent.

use super::*;
use crate::testing::link::MSS;
use trimtab_units::Bytes;

const RTT: Duration = Duration::from_millis(100);

/// Feedback every 50 ms from `from` to `to`, in ms, over a path of 50 ms each way on which
/// packets are queued for so long. What arrives is what is sent. Whether others went.
fn play(rivals: &mut Rivals, from: u64, to: u64, queued: impl FnMut(u64, Rate) -> f64) -> bool {
    play_lossy(rivals, from, to, 0.0, queued)
}

fn play_lossy(
    rivals: &mut Rivals,
    from: u64,
    to: u64,
    loss: f64,
    mut queued: impl FnMut(u64, Rate) -> f64,
) -> bool {
    let (target, mut went) = (Rate::from_mbps(1.0), false);
    for ms in (from..to).step_by(50) {
        let now = Time::from_millis(ms);
        let rate = rivals.rate(target, RTT);
        let queued = Duration::from_millis_f64(queued(ms, rate));
        rivals.on_arrival(now - RTT - queued, now - RTT / 2, now);
        let limits = Config::with_mss(MSS, 0);
        let throughput = Some(rate);
        went |= rivals.look(&Seen { now, srtt: RTT, target, throughput, loss, limits });
    }
    went
}

/// One that has seen the path empty for a second, and then others that keep 200 ms for ten.
fn met() -> Rivals {
    let mut rivals = Rivals::default();
    play(&mut rivals, 1000, 2000, |_, _| 0.0);
    play(&mut rivals, 2000, 12_000, |_, _| 200.0);
    assert!(rivals.compete());
    rivals
}

/// Alone on a link of 1 Mbit/s, what is sent less than that empties it.
#[test]
fn a_queue_that_falls_with_the_rate_is_our_own() {
    let (mut rivals, mut queue, mut cut) = (Rivals::default(), 0.0, 0);
    play(&mut rivals, 1000, 60_000, |ms, rate| {
        // It fills by itself every ten seconds.
        if ms % 10_000 == 0 {
            queue = 200.0;
        }
        cut += u64::from(rate < Rate::from_mbps(0.9));
        queue = f64::max(queue - 50.0 * (1.0 - rate.mbps()), 0.0);
        queue
    });
    assert!(!rivals.compete());
    assert!(cut > 0, "there was no trial");
}

#[test]
fn a_queue_that_stays_is_that_of_others() {
    let mut rivals = Rivals::default();
    play(&mut rivals, 1000, 5000, |_, _| 0.0);
    play(&mut rivals, 5000, 8000, |_, _| 200.0);
    assert!(rivals.are_gone(), "three seconds are too few");
    play(&mut rivals, 8000, 13_000, |_, _| 200.0);
    assert!(rivals.compete());
    // The window that it had: 1 Mbit/s of 100 ms.
    assert_eq!(rivals.rate(Rate::from_mbps(0.1), RTT), Rate::from_mbps(1.0));
}

/// Two thirds of the link are taken at a constant rate: the queue falls by a third of the cut,
/// and stands without one.
#[test]
fn others_at_a_rate_of_their_own_are_left_to_gcc() {
    let (mut rivals, mut queue, mut cut) = (Rivals::default(), 0.0, 0);
    play(&mut rivals, 1000, 2000, |_, _| 0.0);
    play(&mut rivals, 2000, 60_000, |ms, rate| {
        if ms % 10_000 == 2000 {
            queue = 300.0;
        }
        cut += u64::from(rate < Rate::from_mbps(0.9));
        queue -= 50.0 / 3.0 * (1.0 - rate.mbps());
        queue
    });
    assert!(!rivals.compete());
    assert!(cut > 0, "there was no trial");
}

/// Others that lose packets in a trial prove nothing, and there is another one soon.
#[test]
fn a_queue_that_falls_too_fast_proves_nothing() {
    let mut rivals = Rivals::default();
    play(&mut rivals, 1000, 2000, |_, _| 0.0);
    let mut tried = None;
    play(&mut rivals, 2000, 16_000, |ms, rate| {
        if rate < Rate::from_mbps(0.9) {
            tried = tried.or(Some(ms));
        }
        // Half of the queue at once, 800 ms after the first trial began.
        if tried.is_some_and(|at| (at + 800..at + 3000).contains(&ms)) { 150.0 } else { 300.0 }
    });
    assert!(rivals.compete(), "the second trial");
    assert!(rivals.next_trial > Time::from_secs(25), "{:?}", rivals.next_trial);
}

#[test]
fn a_queue_that_stands_and_loses_much_needs_no_trial() {
    for (loss, competes) in [(0.05, false), (0.15, true)] {
        let mut rivals = Rivals::default();
        play(&mut rivals, 1000, 2000, |_, _| 0.0);
        play_lossy(&mut rivals, 2000, 6000, loss, |_, _| 20.0);
        assert_eq!(rivals.compete(), competes, "{loss}");
    }
}

/// An overflow empties a queue for a moment; who fills it is gone when it stays so.
#[test]
fn others_are_gone_when_the_queue_stays_empty() {
    let mut rivals = met();
    let dips = |ms: u64, _: Rate| if ms % 3000 < 1000 { 0.0 } else { 200.0 };
    assert!(!play(&mut rivals, 12_000, 18_000, dips));
    assert!(!play(&mut rivals, 18_000, 19_500, |_, _| 1.0));
    assert!(play(&mut rivals, 19_500, 21_000, |_, _| 1.0));
    assert!(rivals.are_gone());
}

/// Our own window keeps a queue as others do, so that it is tried again: after 16 s.
#[test]
fn it_is_tried_whether_others_are_still_there() {
    let mut rivals = met();
    let mut queue = 200.0;
    let went = play(&mut rivals, 12_000, 40_000, |_, rate| {
        queue = f64::clamp(queue + 50.0 * (rate.mbps() - 1.0), 0.0, 200.0);
        queue
    });
    assert!(went);
}

/// A loss takes 30% as of a CUBIC flow's window, once in a round trip; acknowledgements give
/// it back.
#[test]
fn the_window_is_that_of_a_cubic_flow() {
    let mut rivals = met();
    let rate = |rivals: &Rivals| rivals.rate(Rate::ZERO, RTT).mbps();
    let before = rate(&rivals);
    for ms in [12_000, 12_020] {
        rivals.on_loss(&crate::testing::lost(Time::from_millis(ms), Time::from_millis(11_990)));
    }
    let after = rate(&rivals);
    assert!((0.6..0.71).contains(&(after / before)), "{before} to {after}");
    for ms in (12_200..20_000).step_by(10) {
        let now = Time::from_millis(ms);
        let ack = crate::testing::acked(now, now - RTT, Bytes::new(1250), RTT);
        rivals.on_ack(&ack, Some(Rate::from_mbps(1.0)));
    }
    assert!(rate(&rivals) > before, "{}", rate(&rivals));
}

/// The window after a loss, and acknowledgements of a second before a pause and one after it.
fn after_a_pause(pause: u64) -> f64 {
    let mut rivals = met();
    rivals.on_loss(&crate::testing::lost(Time::from_millis(12_000), Time::from_millis(11_990)));
    for i in 0..200 {
        let before = i < 100;
        let now = Time::from_millis(12_200 + 10 * i + if before { 0 } else { pause });
        let inflight = if i == 100 { MSS } else { MSS * 10 };
        rivals.on_sent(&Sent { now, bytes: MSS, inflight, app_limited: false });
        let ack = crate::testing::acked(now, now - RTT, Bytes::new(1250), RTT);
        rivals.on_ack(&ack, Some(Rate::from_mbps(100.0)));
    }
    rivals.rate(Rate::ZERO, RTT).mbps()
}

/// A call that is muted for a minute comes back with the window that it left with.
#[test]
fn the_clock_of_the_window_stands_still_in_a_pause() {
    let (without, with) = (after_a_pause(0), after_a_pause(60_000));
    assert!((with / without - 1.0).abs() < 0.02, "{without} without a pause, {with} with one");
}
