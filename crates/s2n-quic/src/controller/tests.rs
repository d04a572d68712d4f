use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::path;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo};
use s2n_quic_core::time::{Clock, NoopClock};
use trimtab_stack::Handle;
use trimtab_stack::units::Rate;

use super::*;
use crate::{Config, Controllers};

const MTU: u32 = 1200;

/// Nobody listens.
struct Silent;

impl Publisher for Silent {
    fn on_slow_start_exited(&mut self, _: SlowStartExitCause, _: u32) {}
    fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: num_rational::Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _: BbrState) {}
}

struct Zeros;

impl random::Generator for Zeros {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
    fn private_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
}

/// A path in the hands of an endpoint.
struct Sender {
    controller: PathController,
    handle: Handle,
    start: Timestamp,
    rtt: RttEstimator,
    infos: Vec<PacketInfo>,
}

fn path(controllers: &mut Controllers) -> PathController {
    let address = SocketAddress::default();
    let mut controller = controllers
        .new_congestion_controller(PathInfo::new(&path::mtu::Config::default(), &address));
    controller.on_mtu_update(u16::try_from(MTU).expect("it is small"), &mut Silent);
    controller
}

impl Sender {
    fn new(scheme: &str) -> Self {
        let (mut controllers, mut events) = crate::endpoint(Config::new(scheme).expect("a scheme"));
        let connected = crate::endpoint::tests::connect(&mut events);
        let controller = path(&mut controllers);
        let handle = connected.handle().expect("it has a controller");
        let rtt = RttEstimator::default();
        Self { controller, handle, start: NoopClock.get_time(), rtt, infos: Vec::new() }
    }

    fn at(&self, ms: u64) -> Timestamp {
        self.start + Std::from_millis(ms)
    }

    fn send(&mut self, ms: u64, packets: usize, app_limited: bool) {
        let now = self.at(ms);
        for _ in 0..packets {
            let size = MTU as usize;
            let limited = Some(app_limited);
            let info = self.controller.on_packet_sent(now, size, limited, &self.rtt, &mut Silent);
            self.infos.push(info);
        }
    }

    /// Packets up to this one arrive, so many of them, 40 ms after they left.
    fn ack(&mut self, sent_ms: u64, newest: usize, packets: usize) {
        let (now, sent) = (self.at(sent_ms + 40), self.at(sent_ms));
        let space = s2n_quic_core::packet::number::PacketNumberSpace::ApplicationData;
        self.rtt.update_rtt(Std::ZERO, Std::from_millis(40), now, true, space);
        let (rtt, info) = (&self.rtt, self.infos[newest]);
        self.controller.on_rtt_update(sent, now, rtt, &mut Silent);
        let bytes = packets * MTU as usize;
        self.controller.on_ack(sent, bytes, info, rtt, &mut Zeros, now, &mut Silent);
    }

    fn lose(&mut self, ms: u64, packet: usize, persistent: bool) {
        let (now, info) = (self.at(ms), self.infos[packet]);
        let (random, silent) = (&mut Zeros, &mut Silent);
        self.controller.on_packet_lost(MTU, info, persistent, true, random, now, silent);
    }
}

#[test]
fn losses_come_before_the_acknowledgement_and_reduce_once() {
    let mut sender = Sender::new("cubic");
    let window = sender.controller.congestion_window();
    assert_eq!(window, 10 * MTU, "RFC 9002 §7.2");
    sender.send(0, 10, false);
    assert!(sender.controller.is_congestion_limited());
    sender.lose(40, 0, false);
    sender.lose(40, 4, false);
    sender.ack(0, 9, 7);
    // RFC 9438 §4.6.
    assert_eq!(sender.controller.congestion_window(), window * 7 / 10);
    assert_eq!(sender.controller.bytes_in_flight(), MTU);
    let metrics = sender.handle.metrics().expect("the path lives");
    assert_eq!((metrics.lost, metrics.delivered), (bytes(2400), bytes(8400)));
    assert_eq!(metrics.inflight, bytes(1200));
    assert_eq!(metrics.srtt, Some(Duration::from_millis(40)));
}

#[test]
fn persistent_congestion_leaves_the_smallest_window() {
    let mut sender = Sender::new("cubic");
    sender.send(0, 10, false);
    (0..9).for_each(|packet| sender.lose(2000, packet, true));
    // RFC 9002 §7.6.2.
    assert!(sender.controller.congestion_window() <= 2 * MTU);
}

#[test]
fn marks_reduce_once_in_a_round_trip() {
    let mut sender = Sender::new("cubic");
    let window = sender.controller.congestion_window();
    (0..3).for_each(|ms| sender.send(ms, 3, true));
    sender.ack(0, 2, 3);
    for (ms, newest) in [(1, 5), (2, 8)] {
        // s2n-quic asks whenever it sends, and so between acknowledgements.
        assert!(sender.controller.congestion_window() > 0);
        let now = sender.at(ms + 40);
        sender.controller.on_explicit_congestion(3, now, &mut Silent);
        sender.ack(ms, newest, 3);
        assert_eq!(sender.controller.congestion_window(), window * 7 / 10, "packet {newest}");
    }
    assert_eq!(sender.handle.metrics().expect("it lives").marked, 2);
}

#[test]
fn an_application_that_sends_little_does_not_grow_the_window() {
    for (app_limited, grows) in [(true, false), (false, true)] {
        let mut sender = Sender::new("cubic");
        let window = sender.controller.congestion_window();
        sender.send(0, 10, app_limited);
        sender.ack(0, 9, 10);
        assert_eq!(sender.controller.congestion_window() > window, grows, "{app_limited}");
    }
}

/// RFC 9002 §7.7: CUBIC has no rate, so 5/4 of a window per round trip; 12 KB and what they grew
/// by.
#[test]
fn departures_keep_the_pace_and_a_knob_moves_them_at_once() {
    let mut sender = Sender::new("cubic");
    assert_eq!(sender.controller.earliest_departure_time(), None);
    sender.send(0, 10, false);
    sender.ack(0, 9, 10);
    let window = sender.controller.congestion_window();
    sender.send(1000, 20, false);
    let pace = (bytes(window as usize) / Duration::from_millis(40)).mul_f64(1.25);
    let next = sender.controller.earliest_departure_time().expect("it paces");
    // Of twenty packets the bucket held some, at most ten.
    let wait = next.saturating_duration_since(sender.at(1000));
    assert!(wait >= Std::from_nanos((bytes(10 * 1200) / pace).as_nanos()) - Std::from_micros(1));
    assert!(wait <= Std::from_nanos((bytes(20 * 1200) / pace).as_nanos()));
    assert_eq!(sender.controller.send_quantum(), None);

    let mut sender = Sender::new("bbr3");
    sender.send(0, 10, false);
    sender.ack(0, 9, 10);
    sender.controller.congestion_window();
    let rate = sender.handle.metrics().and_then(|m| m.pacing_rate).expect("it has one");
    assert!(rate > Rate::ZERO && sender.controller.send_quantum().is_some());
}

#[test]
fn keys_and_probes_that_are_discarded_leave_flight_without_a_signal() {
    let mut sender = Sender::new("cubic");
    let window = sender.controller.congestion_window();
    sender.send(0, 4, false);
    sender.controller.on_packet_discarded(3 * MTU as usize, &mut Silent);
    assert_eq!(sender.controller.bytes_in_flight(), MTU);
    assert_eq!(sender.handle.metrics().expect("it lives").inflight, bytes(1200));
    assert_eq!(sender.controller.congestion_window(), window);
}

/// The steering acts at the next callback, without a wait of s2n-quic's.
#[test]
fn a_scheme_and_a_knob_change_a_living_path() {
    let mut sender = Sender::new("copa");
    sender.send(0, 10, false);
    sender.ack(0, 9, 10);
    sender.handle.set_knob("delta", 0.1).expect("Copa has it");
    let knobs = sender.handle.metrics().expect("it lives").knobs;
    assert_eq!(knobs.get("delta"), Some(0.1));
    sender.handle.set_scheme("bbr3").expect("it is a scheme");
    sender.send(41, 1, false);
    sender.ack(41, 10, 1);
    sender.controller.congestion_window();
    let metrics = sender.handle.metrics().expect("it lives");
    assert_eq!(metrics.scheme, "bbr3");
    assert!(metrics.algorithm == "bbr3" || metrics.pending == Some("bbr3"), "{metrics:?}");
}
