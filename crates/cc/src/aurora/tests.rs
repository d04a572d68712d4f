use std::sync::Mutex;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::testing::link::MSS;
use crate::testing::{acked, timed_out};

/// Gives the same change each time, and keeps what it saw.
#[derive(Debug, Default)]
struct Told {
    change: f64,
    seen: Mutex<Vec<History>>,
}

impl Network for Told {
    fn change(&self, history: &History) -> f64 {
        self.seen.lock().unwrap().push(*history);
        self.change
    }
}

fn told(change: f64) -> (Aurora, Arc<Told>) {
    let network = Arc::new(Told { change, ..Told::default() });
    (Aurora::new(&Config::with_mss(MSS, 0), network.clone()), network)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn sent(ms: u64, packets: u64) -> Sent {
    Sent { now: at(ms), bytes: MSS * packets, inflight: MSS * packets, app_limited: false }
}

fn ack(ms: u64, rtt_ms: u64, packets: u64) -> Ack {
    acked(at(ms), at(ms - rtt_ms), MSS * packets, Duration::from_millis(rtt_ms))
}

/// `network_sim.py`: a first interval of 1.5 round trips, and then of half the average.
#[test]
fn intervals_follow_the_round_trip_time() {
    let (mut aurora, network) = told(0.0);
    let mut seen = Vec::new();
    for ms in [100, 200, 249, 250, 260, 300, 310, 360] {
        aurora.on_ack(&ack(ms, 100, 1));
        seen.push(network.seen.lock().unwrap().len());
    }
    assert_eq!(seen, [0, 0, 0, 1, 1, 2, 2, 3]);
}

/// §3.1, with the numbers of `sender_obs.py`.
#[test]
fn a_history_has_rise_ratio_and_rates_of_each_interval() {
    let (mut aurora, network) = told(0.0);
    aurora.on_ack(&ack(100, 100, 1));
    aurora.on_sent(&sent(110, 12));
    for (ms, rtt) in [(150, 100), (200, 110), (250, 110)] {
        aurora.on_ack(&ack(ms, rtt, 2));
    }
    let newest = |history: &History| history[VALUES - FEATURES..].to_vec();
    let first = newest(&network.seen.lock().unwrap()[0]);
    // 110 ms after 100 in an interval of 150 ms; 12 packets left, 7 - 1 arrived.
    let expected = [0.010 / 0.150, 1.0, 2.0];
    assert!(first.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{first:?}");
    aurora.on_ack(&ack(310, 210, 1));
    let history = network.seen.lock().unwrap()[1];
    assert_eq!(history[VALUES - 2 * FEATURES..VALUES - FEATURES], first, "the one before");
    assert!((newest(&history)[1] - 2.0).abs() < 1e-9, "twice the least average");
    assert_eq!(history[..FEATURES], [0.0, 1.0, 1.0], "an empty one");
}

/// §3.1: a change of the rate by 1 + step · a, or by its inverse, within the limits.
#[test]
fn a_change_up_is_undone_by_the_same_down() {
    let rate = |change: f64, intervals: u64| {
        let (mut aurora, _) = told(change);
        for i in 0..=intervals {
            aurora.on_ack(&ack(100 + 150 * i, 100, 4));
        }
        aurora.pacing_rate().unwrap().mbps()
    };
    assert!((rate(2.0, 1) - 6.0 * 1.05).abs() < 1e-5);
    assert!((rate(-2.0, 1) - 6.0 / 1.05).abs() < 1e-5);
    assert_eq!((rate(20.0, 400), rate(-20.0, 400)), (300.0, 0.5));
    assert_eq!(rate(f64::NAN, 3), 6.0);
}

#[test]
fn what_the_application_does_not_use_changes_nothing() {
    let (mut aurora, network) = told(4.0);
    aurora.on_ack(&ack(100, 100, 1));
    aurora.on_sent(&Sent { app_limited: true, ..sent(120, 1) });
    aurora.on_ack(&ack(250, 100, 1));
    assert_eq!(network.seen.lock().unwrap().len(), 0);
    aurora.on_ack(&ack(300, 100, 1));
    assert_eq!(network.seen.lock().unwrap().len(), 1);
}

#[test]
fn a_timeout_leads_to_the_least_rate_and_an_empty_history() {
    let (mut aurora, network) = told(0.0);
    for ms in [100, 250, 300] {
        aurora.on_ack(&ack(ms, 100, 1));
    }
    aurora.on_timeout(&timed_out(at(900)));
    assert_eq!(aurora.pacing_rate(), Some(Rate::from_mbps(0.5)));
    aurora.on_ack(&ack(1000, 100, 1));
    aurora.on_ack(&ack(1150, 100, 1));
    let seen = network.seen.lock().unwrap();
    let empty = vec![[0.0, 1.0, 1.0]; INTERVALS - 1].concat();
    assert_eq!(seen.last().unwrap()[..VALUES - FEATURES], empty);
}

#[test]
fn knobs_set_the_first_rate_and_its_limits() {
    let (mut aurora, _) = told(0.0);
    crate::set_knob(&mut aurora, "initial_rate", 2.0).unwrap();
    assert_eq!(aurora.pacing_rate(), Some(Rate::from_mbps(2.0)));
    crate::set_knob(&mut aurora, "rate_max", 1.0).unwrap();
    assert_eq!(aurora.pacing_rate(), Some(Rate::from_mbps(1.0)));
}
