use super::*;
use crate::testing::actor::{Told, delivered};
use crate::testing::link::MSS;
use crate::testing::{acked, hand_over, lost, timed_out};

const RTT: Duration = Duration::from_millis(20);

/// With a window of so many packets.
fn settled(action: f64, packets: u64) -> (Astraea, Arc<Told>) {
    let network = Arc::new(Told { action, ..Told::default() });
    let mut astraea = Astraea::new(&Config::with_mss(MSS, 0), network.clone());
    astraea.take_over(&hand_over(MSS * packets, RTT));
    (astraea, network)
}

fn at(ms: u64) -> Time {
    Time::from_secs(30) + Duration::from_millis(ms)
}

/// One packet acknowledged after 30 ms, delivered at 12 Mbit/s, with 20 packets in flight.
fn ack(ms: u64) -> Ack {
    let (rtt, srtt) = (Duration::from_millis(30), Duration::from_millis(25));
    let ack = acked(at(ms), at(ms) - rtt, MSS, rtt);
    Ack { srtt, min_rtt: RTT, rate: Some(delivered()), inflight: MSS * 20, ..ack }
}

fn packets(astraea: &Astraea) -> u64 {
    astraea.window().get() / MSS.get()
}

/// `map_action()` of `infer.py`: up by a share and rounded up, down by its inverse and rounded down.
#[test]
fn an_action_moves_the_window_by_up_to_a_fortieth() {
    for (window, action, after) in [
        (100.0, 1.0, 103.0),
        (100.0, -1.0, 97.0),
        (100.0, 0.1, 101.0),
        (100.0, 0.0, 100.0),
        (4.0, -1.0, 4.0),
        (1000.0, 9.0, 1025.0),
        (100.0, f64::NAN, 100.0),
    ] {
        assert_eq!(moved(window, action), after, "{window} packets, action {action}");
    }
}

#[test]
fn the_network_acts_every_thirty_milliseconds() {
    let (mut astraea, network) = settled(1.0, 40);
    (0..30).for_each(|ms| astraea.on_ack(&ack(ms)));
    assert_eq!((network.times(), packets(&astraea)), (0, 40));
    astraea.on_ack(&ack(30));
    assert_eq!((network.times(), packets(&astraea)), (1, 41));
    (31..=90).for_each(|ms| astraea.on_ack(&ack(ms)));
    assert_eq!((network.times(), packets(&astraea)), (3, 45));
}

/// `transform_state()`: ten numbers, the newest last; what is not yet seen is zero.
#[test]
fn a_history_has_ten_numbers_of_each_report() {
    let (mut astraea, network) = settled(0.0, 40);
    (0..=29).for_each(|ms| astraea.on_ack(&ack(ms)));
    astraea.on_loss(&Loss { inflight: MSS * 20, ..lost(at(29), at(0)) });
    astraea.on_ack(&ack(30));
    let seen = network.seen.lock().unwrap();
    let (old, new) = seen[0].split_at(VALUES - FEATURES);
    assert!(old.iter().all(|value| *value == 0.0));
    // 1.5 MB/s over 20 ms are 20 packets: 40 are twice that. 40 packets in 25 ms are 2.4 MB/s with
    // 1500 bytes each. A packet lost in 30 ms is 50 kB/s.
    let expected = [
        1.0,
        1.5,
        1.25,
        2.0 * 0.8,
        0.15,
        0.04,
        0.05 / 1.5,
        0.5,
        2.4 / 1.5 * 1500.0 / 1448.0,
        1.0 / 40.0,
    ];
    let close = |(a, b): (&f64, f64)| (a - b).abs() < 1e-6;
    assert!(new.iter().zip(expected).all(close), "{new:?}");
}

/// Before the first acknowledgement (`transform_state()`): half of the rate, and twice the least
/// round-trip time.
#[test]
fn a_silent_interval_has_numbers_of_its_own() {
    let network = Arc::new(Told::default());
    let mut astraea = Astraea::new(&Config::with_mss(MSS, 0), network.clone());
    for ms in [0, 30] {
        let inflight = MSS * 5;
        let sent = Sent { now: at(ms), bytes: MSS, inflight, app_limited: false };
        astraea.on_sent(&sent);
    }
    let seen = network.seen.lock().unwrap();
    let newest = &seen[0][VALUES - FEATURES..];
    assert_eq!(newest, [NO_RATE, NO_RTT, NO_RTT, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0]);
}

/// `astraea_ssthresh()`: recovery ends at the window at which it began.
#[test]
fn a_loss_leaves_the_window_and_voids_actions_until_recovery_ends() {
    let (mut astraea, network) = settled(1.0, 40);
    astraea.on_ack(&ack(0));
    astraea.on_loss(&lost(at(1), at(0)));
    assert_eq!(packets(&astraea), 40);
    (2..=31).for_each(|ms| astraea.on_ack(&Ack { in_recovery: true, ..ack(ms) }));
    assert_eq!((network.times(), packets(&astraea)), (1, 40));
    (32..=60).for_each(|ms| astraea.on_ack(&ack(ms)));
    assert_eq!(packets(&astraea), 41);
    astraea.on_timeout(&timed_out(at(200)));
    assert_eq!(astraea.window(), Config::with_mss(MSS, 0).min_window);
}

#[test]
fn what_the_application_does_not_use_does_not_grow() {
    for (action, after) in [(1.0, 40), (-1.0, 39)] {
        let (mut astraea, _) = settled(action, 40);
        astraea.on_ack(&ack(0));
        let sent = Sent { now: at(1), bytes: MSS, inflight: MSS, app_limited: true };
        astraea.on_sent(&sent);
        (2..=30).for_each(|ms| astraea.on_ack(&ack(ms)));
        assert_eq!(packets(&astraea), after);
    }
}

#[test]
fn no_window_is_larger_than_the_cap() {
    let (mut astraea, _) = settled(1.0, 100);
    crate::set_knob(&mut astraea, "cap", 101.0).unwrap();
    (0..=30).for_each(|ms| astraea.on_ack(&ack(ms)));
    assert_eq!(packets(&astraea), 101);
}
