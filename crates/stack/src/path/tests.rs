use std::time::Duration as Std;

use super::*;
use crate::tests::{Config, next};

const MTU: u16 = 1200;
/// RFC 9002 §7.2.
const INITIAL: Bytes = Bytes::new(10 * MTU as u64);

/// A path in the hands of a stack that does as noq does, or as quinn does.
struct Sender {
    path: Path,
    epoch: Instant,
}

impl Sender {
    fn new(scheme: &str) -> Self {
        let config = Config::new(scheme).expect("it is a scheme");
        let epoch = Instant::now();
        Self { path: Path::new(&next(&config), 0, epoch, MTU), epoch }
    }

    /// On a stack that goes by windows.
    fn by_window(scheme: &str) -> Self {
        let mut sender = Self::new(scheme);
        sender.path.pacing = Pacing::ByWindow;
        sender
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
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..10);
    sender.ack(40, 0, 3..10);
    sender.lose(40, 0..3, false);
    // RFC 9438 §4.6: 0.7 of the window, which did not grow by seven packets first.
    assert_eq!(sender.path.window(), INITIAL.mul_f64(0.7));
    assert_eq!(sender.path.metrics().inflight, Bytes::ZERO);
    assert_eq!(sender.path.metrics().lost, Bytes::new(3 * 1200));
}

#[test]
fn losses_that_were_none_are_undone() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..10);
    sender.ack(40, 0, 3..10);
    sender.lose(40, 0..3, false);
    assert!(sender.path.window() < INITIAL);
    sender.path.on_spurious_loss();
    assert!(sender.path.window() >= INITIAL);
}

#[test]
fn persistent_congestion_leaves_the_smallest_window() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..5);
    sender.ack(40, 0, 0..5);
    sender.send(100, 5..15);
    sender.send(5000, 15..16);
    sender.ack(5040, 5000, 15..16);
    sender.lose(5040, 5..15, true);
    // RFC 9002 §7.6.2; the acknowledgement may add what it covers.
    assert!(sender.path.window() <= Bytes::new(3 * 1200), "{:?}", sender.path.window());
}

#[test]
fn a_mark_counts_once_in_a_round_trip() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..10);
    sender.ack(40, 0, 0..5);
    let (marked, newest) = (sender.at(40), sender.at(0));
    sender.path.on_marked(marked, newest);
    let after = sender.path.window();
    assert_eq!(after, INITIAL.mul_f64(0.7));
    sender.ack(41, 0, 5..10);
    let marked = sender.at(41);
    sender.path.on_marked(marked, newest);
    assert_eq!((sender.path.window(), sender.path.metrics().marked), (after, 2));
}

/// RFC 9000 §9.4: both stacks report to the new path what the old one did to packets.
#[test]
fn a_mark_of_another_path_says_nothing_of_this_one() {
    let mut sender = Sender::new("cubic");
    let (marked, before) = (sender.at(40), sender.at(0) - Std::from_millis(1));
    sender.send(0, 0..10);
    sender.path.on_marked(marked, before);
    assert_eq!((sender.path.window(), sender.path.metrics().marked), (INITIAL, 0));
}

#[test]
fn records_that_the_stack_never_mentions_again_leave_flight() {
    let mut sender = Sender::new("cubic");
    // Its keys are discarded before anything acknowledges it.
    sender.send(0, 0..1);
    sender.send(10, 1..3);
    sender.ack(50, 10, 1..3);
    assert_eq!(sender.path.metrics().inflight, Bytes::new(1200));
    sender.send(200, 3..4);
    sender.ack(240, 200, 3..4);
    assert!(!sender.path.window().is_zero());
    assert_eq!(sender.path.metrics().inflight, Bytes::ZERO);
}

/// Ten packets leave at once. Some of them, and then others, arrive, and the rest is lost as a sum.
#[test]
fn bytes_are_accounted_for_as_packets_are() {
    let mut sender = Sender::by_window("cubic");
    let (start, end) = (sender.at(0), sender.at(40));
    let packet = Bytes::new(MTU.into());
    sender.path.on_bytes_sent(start, packet * 9 + Bytes::new(300));
    assert_eq!(sender.path.metrics().inflight, packet * 9 + Bytes::new(300));
    for bytes in [packet, packet, Bytes::new(300), packet, packet] {
        sender.path.on_bytes_acked(end, start, bytes, Duration::from_millis(40));
    }
    sender.path.on_end_acks(end, false);
    sender.path.on_bytes_lost(end, start, packet * 5);
    sender.path.on_losses(end, false);
    assert_eq!(sender.path.window(), INITIAL.mul_f64(0.7));
    let metrics = sender.path.metrics();
    assert_eq!((metrics.inflight, metrics.lost), (Bytes::ZERO, packet * 5));
    assert_eq!(metrics.delivered, packet * 4 + Bytes::new(300));
}

/// A probe of the packet size is acknowledged, although it was not reported as sent.
#[test]
fn bytes_that_never_left_are_no_acknowledgement() {
    let mut sender = Sender::by_window("cubic");
    let (start, end) = (sender.at(0), sender.at(40));
    sender.path.on_bytes_sent(start, Bytes::new(1000));
    let probed = sender.at(1);
    sender.path.on_bytes_acked(end, probed, Bytes::new(1452), Duration::from_millis(40));
    sender.path.on_end_acks(end, true);
    sender.path.window();
    assert_eq!(sender.path.metrics().inflight, Bytes::new(1000));
    assert_eq!(sender.path.metrics().srtt, None);
}

/// RFC 9000 §9.4: quinn reports the fate of packets of the path before this one as well.
#[test]
fn bytes_that_left_over_another_path_say_nothing_of_this_one() {
    let mut sender = Sender::by_window("cubic");
    let (start, end) = (sender.at(0), sender.at(40));
    let before = start - Std::from_millis(10);
    sender.path.on_bytes_sent(start, Bytes::new(1000));
    sender.path.on_bytes_acked(end, before, Bytes::new(500), Duration::from_millis(40));
    sender.path.on_end_acks(end, false);
    sender.path.on_bytes_lost(end, before, Bytes::new(500));
    sender.path.on_losses(end, false);
    assert_eq!(sender.path.window(), INITIAL);
    assert_eq!(sender.path.metrics().inflight, Bytes::new(1000));
}

/// Ten packets, of which the last arrives with six others as a sum, and three are lost before.
#[test]
fn a_sum_and_its_newest_packet_stand_for_all_that_was_acknowledged() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..10);
    let (packet, rtt) = (Bytes::new(MTU.into()), Duration::from_millis(40));
    let end = sender.at(40);
    for number in [0, 4, 5] {
        sender.path.on_loss(end, number, packet, false);
    }
    assert_eq!(sender.path.metrics().lost, packet * 3);
    sender.path.on_newest_acked(end, 9, packet * 7, rtt);
    sender.path.on_end_acks(end, false);
    assert_eq!(sender.path.window(), INITIAL.mul_f64(0.7), "one reduction, and no growth first");
    let metrics = sender.path.metrics();
    assert_eq!((metrics.inflight, metrics.delivered), (Bytes::ZERO, packet * 7));
    assert_eq!(metrics.srtt, Some(rtt), "the sample is that of the newest packet");
}

/// Of packets 0 to 9, 9 and 7 arrive first. 8 is taken for acknowledged, and found lost later.
#[test]
fn a_lost_packet_that_was_taken_for_acknowledged_is_counted_all_the_same() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..10);
    let (packet, rtt) = (Bytes::new(MTU.into()), Duration::from_millis(40));
    let end = sender.at(40);
    sender.path.on_newest_acked(end, 9, packet * 2, rtt);
    sender.path.on_end_acks(end, false);
    sender.path.on_loss(sender.epoch + Std::from_millis(41), 8, packet, false);
    assert!(sender.path.window() < INITIAL);
    let metrics = sender.path.metrics();
    assert_eq!((metrics.lost, metrics.delivered), (packet, packet * 2));
    assert_eq!(metrics.inflight, packet * 7);
    // Keys are discarded: the oldest leave flight, and nothing else changes.
    let window = sender.path.window();
    sender.path.on_bytes_discarded(packet * 3);
    assert_eq!((sender.path.metrics().inflight, sender.path.window()), (packet * 4, window));
}

/// quinn reports acknowledgements as sent, and nothing acknowledges them.
#[test]
fn an_end_that_only_receives_keeps_no_records_for_ever() {
    let mut sender = Sender::by_window("bbr3");
    for ms in 0..60_000 {
        let now = sender.at(ms);
        sender.path.on_bytes_sent(now, Bytes::new(40));
    }
    assert!(sender.path.metrics().inflight <= Bytes::new(40 * 10_001));
}

/// 40 ms of a rate, and two packets, where the stack paces by window; else the algorithm's window.
#[test]
fn a_window_makes_the_rate_where_the_stack_paces_by_window() {
    for (mut sender, by_window) in [(Sender::new("bbr3"), false), (Sender::by_window("bbr3"), true)]
    {
        for round in 0..20 {
            sender.send(round * 40, round * 10..round * 10 + 10);
            sender.ack(round * 40 + 40, round * 40, round * 10..round * 10 + 10);
        }
        let window = sender.path.window();
        let metrics = sender.path.metrics();
        let made = metrics.pacing_rate.expect("BBR has one") * metrics.srtt.expect("it is known");
        let made = made + Bytes::new(2 * u64::from(MTU));
        let expected = if by_window { metrics.window.min(made) } else { metrics.window };
        assert_eq!(window, expected);
        assert!(made < metrics.window, "BBR's window is two round trips: {metrics:?}");
    }
    let mut sender = Sender::by_window("cubic");
    sender.send(0, 0..10);
    sender.ack(40, 0, 0..10);
    assert_eq!(sender.path.window(), sender.path.metrics().window, "CUBIC has no rate");
}

#[test]
fn a_larger_packet_raises_the_smallest_window() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..10);
    sender.ack(40, 0, 9..10);
    sender.lose(40, 0..9, true);
    sender.path.on_mtu(9000);
    assert!(sender.path.window() >= Bytes::new(2 * 9000));
}

/// Nothing but packets and acknowledgements drives the steering.
#[test]
fn reports_come_once_an_interval() {
    let mut sender = Sender::new("cubic");
    assert!(sender.path.steering.take_reports().is_empty());
    for round in 0..50 {
        sender.send(round * 40, round * 2..round * 2 + 2);
        sender.ack(round * 40 + 40, round * 40, round * 2..round * 2 + 2);
    }
    // From the first round trip, at 40 ms, to 2 s: each 120 ms, three round trips, is the first
    // callback after 100 ms.
    sender.path.window();
    assert_eq!(sender.path.steering.take_reports().len(), 16);
    assert_eq!(sender.path.steering.last().expect("there is one").srtt, Duration::from_millis(40));
}

/// RFC 9002 §7.2: ten packets, of which no more than 14,720 bytes where packets are large, but two
/// packets in any case.
#[test]
fn the_initial_window_is_limited_where_packets_are_large() {
    for (mtu, window) in [(1200, 12_000), (1472, 14_720), (4000, 14_720), (8972, 17_944)] {
        let config = Config::new("cubic").expect("it is a scheme");
        let mut path = Path::new(&next(&config), 0, Instant::now(), mtu);
        assert_eq!(path.window(), Bytes::new(window), "packets of {mtu} bytes");
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Feedback that reports these packets as arrived so much after `sent_ms`, and the rest as missing.
fn feedback(
    sender: &mut Sender,
    ms: u64,
    all: std::ops::Range<u64>,
    arrived: impl Fn(u64) -> bool,
) {
    let reported: Vec<_> = all
        .map(|number| {
            let at = Some(Std::from_millis(ms + number));
            let fate = match arrived(number) {
                true => ReportedFate::Arrived { at, marked: false },
                false => ReportedFate::Missing,
            };
            Reported { number, fate, probe: None }
        })
        .collect();
    let now = sender.at(ms);
    sender.path.on_feedback(now, &reported);
}

#[test]
fn feedback_acknowledges_and_reveals_losses_at_once() {
    let mut sender = Sender::new("cubic");
    assert_eq!(sender.path.target(), None, "nothing is known of the path");
    sender.send(0, 0..10);
    feedback(&mut sender, 50, 0..10, |number| number >= 3);
    // RFC 9438 §4.6, as with acknowledgements.
    assert_eq!(sender.path.window(), INITIAL.mul_f64(0.7));
    assert_eq!(sender.path.metrics().lost, Bytes::new(3 * 1200));
    assert_eq!((sender.path.inflight(), sender.path.srtt()), (Bytes::ZERO, Some(ms(50))));
    // A window per round trip.
    assert_eq!(sender.path.target(), Some(INITIAL.mul_f64(0.7) / ms(50)));
    assert_eq!(sender.path.metrics().target, sender.path.target());
    feedback(&mut sender, 60, 0..10, |_| true);
    assert_eq!(sender.path.metrics().delivered, Bytes::new(7 * 1200), "once is enough");
}

#[test]
fn a_sender_of_media_grows_while_it_uses_half_of_its_window() {
    for (packets, grows) in [(10, true), (4, false)] {
        let mut sender = Sender::new("newreno");
        sender.send(0, 0..packets);
        feedback(&mut sender, 50, 0..packets, |_| true);
        assert_eq!(sender.path.window() > INITIAL, grows, "{packets} packets");
    }
}

#[test]
fn silence_writes_off_all_that_is_in_flight() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 0..10);
    sender.path.on_silence(sender.at(1000));
    assert_eq!(sender.path.inflight(), Bytes::ZERO);
    assert_eq!(sender.path.metrics().lost, Bytes::new(10 * 1200));
    // RFC 9002 §7.6.2.
    assert_eq!(sender.path.window(), Bytes::new(2 * 1200));
}
