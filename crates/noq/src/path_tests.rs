use std::time::Duration as Std;

use super::*;
use crate::Config;

const MTU: u16 = 1200;
/// RFC 9002 §7.2.
const INITIAL: Bytes = Bytes::new(10 * MTU as u64);

/// A path in the hands of a stack that does as noq does.
struct Stack {
    path: Path,
    epoch: Instant,
}

impl Stack {
    fn new(scheme: &str) -> Self {
        let config = Config::new(scheme).expect("it is a scheme");
        let epoch = Instant::now();
        let next = Next { config, factors: Factors::new() };
        Self { path: Path::new(&next, 0, epoch, MTU), epoch }
    }

    fn at(&self, ms: u64) -> Instant {
        self.epoch + Std::from_millis(ms)
    }

    fn send(&mut self, ms: u64, numbers: impl Iterator<Item = u64>) {
        let now = self.at(ms);
        numbers.for_each(|number| self.path.on_sent(now, Bytes::new(MTU.into()), number));
    }

    /// An acknowledgement of packets that were sent at that time.
    fn ack(&mut self, ms: u64, sent_ms: u64, numbers: impl Iterator<Item = u64>) {
        let (now, sent, rtt) = (self.at(ms), self.at(sent_ms), Duration::from_millis(40));
        numbers.for_each(|number| self.path.on_acked(now, sent, number, rtt));
        self.path.on_end_acks(now, false);
    }

    fn lose(&mut self, ms: u64, numbers: impl Iterator<Item = u64>, persistent: bool) {
        let now = self.at(ms);
        numbers.for_each(|number| self.path.on_packet_lost(now, number));
        self.path.on_losses(now, persistent);
    }
}

#[test]
fn losses_come_before_the_acknowledgement_that_reveals_them() {
    let mut stack = Stack::new("cubic");
    stack.send(0, 0..10);
    stack.ack(40, 0, 3..10);
    stack.lose(40, 0..3, false);
    // RFC 9438 §4.6: 0.7 of the window, which did not grow by seven packets first.
    assert_eq!(stack.path.window(), INITIAL.mul_f64(0.7));
    assert_eq!(stack.path.metrics().inflight, Bytes::ZERO);
    assert_eq!(stack.path.metrics().lost, Bytes::new(3 * 1200));
}

#[test]
fn losses_that_were_none_are_undone() {
    let mut stack = Stack::new("cubic");
    stack.send(0, 0..10);
    stack.ack(40, 0, 3..10);
    stack.lose(40, 0..3, false);
    assert!(stack.path.window() < INITIAL);
    stack.path.on_spurious_loss();
    assert!(stack.path.window() >= INITIAL);
}

#[test]
fn persistent_congestion_leaves_the_smallest_window() {
    let mut stack = Stack::new("cubic");
    stack.send(0, 0..5);
    stack.ack(40, 0, 0..5);
    stack.send(100, 5..15);
    stack.send(5000, 15..16);
    stack.ack(5040, 5000, 15..16);
    stack.lose(5040, 5..15, true);
    // RFC 9002 §7.6.2; the acknowledgement may add what it covers.
    assert!(stack.path.window() <= Bytes::new(3 * 1200), "{:?}", stack.path.window());
}

#[test]
fn a_mark_counts_once_in_a_round_trip() {
    let mut stack = Stack::new("cubic");
    stack.send(0, 0..10);
    stack.ack(40, 0, 0..5);
    let marked = stack.at(40);
    stack.path.on_marked(marked);
    let after = stack.path.window();
    assert_eq!(after, INITIAL.mul_f64(0.7));
    stack.ack(41, 0, 5..10);
    let marked = stack.at(41);
    stack.path.on_marked(marked);
    assert_eq!(stack.path.window(), after);
}

#[test]
fn records_that_noq_never_mentions_again_leave_flight() {
    let mut stack = Stack::new("cubic");
    // Its keys are discarded before anything acknowledges it.
    stack.send(0, 0..1);
    stack.send(10, 1..3);
    stack.ack(50, 10, 1..3);
    assert_eq!(stack.path.metrics().inflight, Bytes::new(1200));
    stack.send(200, 3..4);
    stack.ack(240, 200, 3..4);
    assert!(!stack.path.window().is_zero());
    assert_eq!(stack.path.metrics().inflight, Bytes::ZERO);
}

#[test]
fn a_larger_packet_raises_the_smallest_window() {
    let mut stack = Stack::new("cubic");
    stack.send(0, 0..10);
    stack.ack(40, 0, 9..10);
    stack.lose(40, 0..9, true);
    stack.path.on_mtu(9000);
    assert!(stack.path.window() >= Bytes::new(2 * 9000));
}

/// Nothing but packets and acknowledgements drives the steering.
#[test]
fn reports_come_once_an_interval() {
    let mut stack = Stack::new("cubic");
    for round in 0..50 {
        stack.send(round * 40, round * 2..round * 2 + 2);
        stack.ack(round * 40 + 40, round * 40, round * 2..round * 2 + 2);
    }
    // From the first round trip, at 40 ms, to 2 s: each 120 ms, three round trips, is the first
    // callback after 100 ms.
    stack.path.window();
    assert_eq!(stack.path.steering.take_reports().len(), 16);
    assert_eq!(stack.path.steering.last().expect("there is one").srtt, Duration::from_millis(40));
}
