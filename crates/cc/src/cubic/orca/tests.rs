use std::vec::Vec;

use super::*;
use crate::testing::actor::{Told, delivered};
use crate::testing::link::MSS;
use crate::testing::{acked, hand_over, lost};

fn told(action: f64) -> (Orca, Arc<Told>) {
    let network = Arc::new(Told { action, ..Told::default() });
    (Orca::new(&Config::with_mss(MSS, 0), network.clone()), network)
}

const RTT: Duration = Duration::from_millis(20);

/// Past slow start with a window of so many packets.
fn settled(action: f64, packets: u64) -> (Orca, Arc<Told>) {
    let (mut orca, network) = told(action);
    orca.take_over(&hand_over(MSS * packets, RTT));
    (orca, network)
}

fn at(ms: u64) -> Time {
    Time::from_secs(30) + Duration::from_millis(ms)
}

/// One packet acknowledged, delivered at 12 Mbit/s, with a smoothed round-trip time of 25 ms.
fn ack(ms: u64) -> Ack {
    let srtt = Duration::from_millis(25);
    Ack {
        srtt,
        rate: Some(delivered()),
        inflight: MSS * 10,
        ..acked(at(ms), at(ms) - RTT, MSS, RTT)
    }
}

fn packets(orca: &Orca) -> u64 {
    orca.window().get() / MSS.get()
}

/// `map_action()`: 4^a in hundredths, rounded down, and the product as well; at least four packets.
#[test]
fn an_action_multiplies_the_window_by_four_to_its_power() {
    for (window, action, after) in [
        (100.0, 1.0, 400.0),
        (100.0, -1.0, 25.0),
        (101.0, 0.5, 202.0),
        (33.0, 0.1, 37.0), // 1.148… is 114 hundredths, and 37.62 packets are 37.
        (100.0, 0.0, 100.0),
        (10.0, -1.0, 4.0),
        (100.0, 7.0, 400.0),
        (100.0, f64::NAN, 100.0),
    ] {
        assert_eq!(scaled(window, action), after, "{window} packets, action {action}");
    }
}

#[test]
fn the_network_acts_every_twenty_milliseconds_and_cubic_in_between() {
    let (mut orca, network) = settled(0.5, 100);
    let mut windows = Vec::new();
    for ms in 0..=60 {
        orca.on_ack(&ack(ms));
        windows.push((network.times(), packets(&orca)));
    }
    assert_eq!(windows[19], (0, 100));
    assert_eq!((windows[20], windows[40].0, windows[60].0), ((1, 200), 2, 3));
    crate::set_knob(&mut orca, "interval", 50.0).unwrap();
    (61..=109).for_each(|ms| orca.on_ack(&ack(ms)));
    assert_eq!(network.times(), 3);
    orca.on_ack(&ack(110));
    assert_eq!(network.times(), 4);
}

/// `envwrapper.py`: seven numbers, the newest last; what is not yet seen is zero.
#[test]
fn a_history_has_seven_numbers_of_each_report() {
    let (mut orca, network) = settled(0.0, 50);
    (0..=9).for_each(|ms| orca.on_ack(&ack(ms)));
    orca.monitor.on_loss(&lost(at(10), at(0)));
    (10..=20).for_each(|ms| orca.on_ack(&ack(ms)));
    let seen = network.seen.lock().unwrap();
    let (old, new) = seen[0].split_at(VALUES - FEATURES);
    assert!(old.iter().all(|value| *value == 0.0));
    // 12 Mbit/s are 1.5 MB/s; 50 packets in 25 ms are twice that, and 1500 bytes in 20 ms a
    // twentieth, which counts five times.
    let pacing = 2.0 * 1500.0 / 1448.0;
    let expected = [1.0, pacing, 0.25, 21.0 / 50.0, 0.02, 0.8, 1.0];
    let close = |(a, b): (&f64, f64)| (a - b).abs() < 1e-3;
    assert!(new.iter().zip(expected).all(close), "{new:?}");
}

/// A tenth more every 2 ms, until HyStart or a loss gives CUBIC a threshold; then the first report.
#[test]
fn the_first_slow_start_searches_without_the_network() {
    let (mut orca, network) = told(1.0);
    assert_eq!(packets(&orca), 10);
    let mut windows = Vec::new();
    for ms in 0..=6 {
        orca.on_ack(&ack(ms));
        windows.push(packets(&orca));
    }
    // CUBIC adds a packet each time, and every other time a tenth is added, rounded down.
    assert_eq!(windows, [11, 12, 14, 15, 17, 18, 20]);
    orca.on_loss(&lost(at(7), at(6)));
    let reduced = packets(&orca);
    assert_eq!(reduced, 14, "20 · 717/1024");
    (8..=27).for_each(|ms| orca.on_ack(&Ack { in_recovery: true, ..ack(ms) }));
    assert_eq!((network.times(), packets(&orca)), (0, reduced));
    // In recovery the network sees what happens, and its action is void.
    orca.on_ack(&Ack { in_recovery: true, ..ack(28) });
    assert_eq!((network.times(), packets(&orca)), (1, reduced));
    (29..=48).for_each(|ms| orca.on_ack(&ack(ms)));
    assert_eq!((network.times(), packets(&orca)), (2, 4 * (reduced + 1)), "CUBIC adds one before");
}

#[test]
fn what_the_application_does_not_use_does_not_grow() {
    for (action, after) in [(1.0, 100), (-0.5, 50)] {
        let (mut orca, network) = settled(action, 100);
        let sent = Sent { now: at(0), bytes: MSS, inflight: MSS, app_limited: true };
        orca.on_ack(&ack(0));
        orca.on_sent(&sent);
        (1..=20).for_each(|ms| orca.on_ack(&Ack { cwnd_limited: false, ..ack(ms) }));
        assert_eq!((network.times(), packets(&orca)), (1, after));
    }
}

#[test]
fn no_action_leaves_more_than_the_cap() {
    let (mut orca, _) = settled(1.0, 100);
    crate::set_knob(&mut orca, "cap", 150.0).unwrap();
    (0..=20).for_each(|ms| orca.on_ack(&ack(ms)));
    assert_eq!(packets(&orca), 150);
}

/// The pacing has no gain: a window in a smoothed round trip.
#[test]
fn it_is_paced_at_a_window_in_a_round_trip() {
    let (mut orca, _) = settled(0.0, 100);
    orca.on_ack(&ack(0));
    let rate = orca.pacing_rate().unwrap();
    assert_eq!(rate, orca.window() / Duration::from_millis(25));
}
