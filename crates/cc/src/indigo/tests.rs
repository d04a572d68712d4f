use std::sync::{Arc, Mutex};
use std::vec::Vec;

use super::*;
use crate::RateSample;
use crate::testing::link::MSS;
use crate::testing::{acked, timed_out};

/// Does as it was told, and keeps what it saw.
#[derive(Clone, Debug)]
struct Told {
    actions: Vec<Action>,
    seen: Arc<Mutex<Vec<State>>>,
}

impl Network for Told {
    fn decide(&mut self, state: &State) -> Action {
        self.seen.lock().unwrap().push(*state);
        if self.actions.is_empty() { Action::Keep } else { self.actions.remove(0) }
    }

    fn fork(&self) -> Box<dyn Network> {
        Box::new(self.clone())
    }
}

fn told(actions: &[Action]) -> (Indigo, Arc<Mutex<Vec<State>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let network = Told { actions: actions.to_vec(), seen: seen.clone() };
    (Indigo::new(&Config::with_mss(MSS, 0), Box::new(network)), seen)
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn ack(ms: u64, rtt_ms: u64) -> Ack {
    acked(at(ms), at(ms - rtt_ms), MSS, Duration::from_millis(rtt_ms))
}

/// `sender.py`: at an acknowledgement more than 10 ms after the last step's end, not at 10 ms.
#[test]
fn a_step_ends_with_an_acknowledgement_after_more_than_ten_milliseconds() {
    let (mut indigo, seen) = told(&[]);
    let mut steps = Vec::new();
    for ms in [100, 105, 110, 111, 121, 122, 190] {
        indigo.on_ack(&ack(ms, 40));
        steps.push(seen.lock().unwrap().len());
    }
    assert_eq!(steps, [0, 0, 0, 1, 1, 2, 3]);
}

#[test]
fn actions_change_the_window_down_to_two_packets() {
    use Action::{Double, Halve, Keep, Less, More};
    let (mut indigo, _) = told(&[Double, More, Keep, Less, Less, Less, Double, More, Halve]);
    let mut seen = Vec::new();
    for step in 0..10 {
        indigo.on_ack(&ack(100 + 11 * step, 40));
        seen.push(indigo.window().get() / MSS.get());
    }
    assert_eq!(seen, [10, 20, 30, 30, 20, 10, 2, 4, 14, 7]);
    indigo.on_timeout(&timed_out(at(999)));
    assert_eq!(indigo.window(), MSS * 2);
}

/// Averages of an eighth, from the first sample on, and anew with each step.
#[test]
fn a_state_is_that_of_its_step() {
    let (mut indigo, seen) = told(&[]);
    let sample = |packets: u64| {
        let sample = RateSample {
            delivered: MSS * packets,
            interval: Duration::from_millis(20),
            prior_delivered: Bytes::ZERO,
            app_limited: false,
            tx_in_flight: MSS * 20,
            lost: MSS,
        };
        Some(sample)
    };
    indigo.on_ack(&Ack { rate: sample(20), inflight: MSS * 19, ..ack(100, 40) });
    indigo.on_ack(&Ack { rate: sample(10), inflight: MSS * 29, ..ack(111, 48) });
    indigo.on_ack(&ack(122, 56));
    let seen = seen.lock().unwrap();
    // 20 and 10 packets in 20 ms; 20 packets left within 40 and 48 ms.
    let (delivery, sending) = ([12.0, 6.0], [6.0, 5.0]);
    let average = |[first, then]: [f64; 2]| 0.875 * first + 0.125 * then;
    let expected = [1.0, average(delivery), average(sending), 10.0];
    for (got, want) in seen[0].iter().zip(expected) {
        assert!((got - want).abs() < 1e-6, "{:?} for {expected:?}", seen[0]);
    }
    assert_eq!(seen[1], [16.0, 0.0, 0.0, 10.0], "nothing of the step before");
}

#[test]
fn an_unused_window_does_not_grow() {
    let (mut indigo, _) = told(&[Action::Double, Action::Less]);
    for (ms, packets) in [(100, 10), (111, 10), (122, 2)] {
        indigo.on_ack(&Ack { cwnd_limited: false, ..ack(ms, 40) });
        assert_eq!(indigo.window(), MSS * packets);
    }
}
