//! The trait of s2n-quic, carried out on a path that a [`Handle`](crate::Handle) can reach as well.

use std::mem::take;
use std::time::{Duration as Std, Instant};

use s2n_quic_core::random;
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Publisher};
use s2n_quic_core::time::Timestamp;
use trimtab_stack::units::{Bytes, Duration};

use crate::endpoint::Slot;
use crate::pacer::Pacer;

/// The controller of a path.
#[derive(Clone, Debug)]
pub struct PathController {
    slot: Slot,
    /// Time zero of the path, by both clocks: s2n-quic tells the time with the first packet.
    epoch: Option<(Timestamp, Instant)>,
    /// The size of its packets.
    mtu: u32,
    /// Bytes in flight, by s2n-quic's own account of each packet.
    inflight: u32,
    /// Packets so far; the next one has this number.
    sent: u64,
    /// Whether the application left the window open with the last packet that carried its data.
    app_limited: bool,
    /// Whether the acknowledgement that comes next has marks.
    marked: bool,
    /// The smoothed round-trip time before and after the last sample.
    smoothed: [Duration; 2],
    pacer: Pacer,
}

/// What s2n-quic keeps of a packet: its number, among all of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo(u64);

fn bytes(bytes: usize) -> Bytes {
    Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
}

fn clamp(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}

fn duration(duration: Std) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// From one time to another. `saturating_duration_since` of s2n-quic gives a microsecond for none.
fn since(time: Timestamp, zero: Timestamp) -> Std {
    if time > zero { time - zero } else { Std::ZERO }
}

impl PathController {
    pub(crate) fn new(slot: Slot, mtu: u16) -> Self {
        Self {
            slot,
            epoch: None,
            mtu: mtu.into(),
            inflight: 0,
            sent: 0,
            app_limited: false,
            marked: false,
            smoothed: [Duration::ZERO; 2],
            pacer: Pacer::default(),
        }
    }

    /// A time of s2n-quic by the path's clock.
    fn at(&mut self, time: Timestamp) -> Instant {
        let begin = || (time, self.slot.began());
        let (zero, instant) = *self.epoch.get_or_insert_with(begin);
        instant + since(time, zero)
    }

    /// The time since the path's first packet.
    fn since_begin(&self, time: Timestamp) -> Duration {
        self.epoch.map_or(Duration::ZERO, |(zero, _)| duration(since(time, zero)))
    }

    fn leave(&mut self, bytes: u32) {
        // A packet that left over another path may end on this one.
        self.inflight = self.inflight.saturating_sub(bytes);
    }
}

impl CongestionController for PathController {
    type PacketInfo = PacketInfo;

    fn congestion_window(&self) -> u32 {
        clamp(self.slot.path().window())
    }

    fn bytes_in_flight(&self) -> u32 {
        self.inflight
    }

    fn is_congestion_limited(&self) -> bool {
        self.congestion_window().saturating_sub(self.inflight) < self.mtu
    }

    /// RFC 9002 §7.3.2 allows one more packet when the window is reduced. The simulator and the
    /// other stacks do without.
    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    /// Packets of acknowledgements alone have no bytes here, and no record.
    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) -> PacketInfo {
        let now = self.at(time_sent);
        let number = self.sent;
        self.sent += 1;
        if sent_bytes > 0 {
            let size = bytes(sent_bytes);
            self.inflight = self.inflight.saturating_add(clamp(size));
            self.app_limited = app_limited.unwrap_or(self.app_limited);
            let since = self.since_begin(time_sent);
            let mut path = self.slot.path();
            path.on_sent(now, size, number);
            self.pacer.on_sent(since, size, path.pace(), path.mss());
        }
        PacketInfo(number)
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        _time_sent: Timestamp,
        _now: Timestamp,
        rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        self.smoothed = [self.smoothed[1], duration(rtt_estimator.smoothed_rtt())];
    }

    /// Comes after the losses and marks that the acknowledgement reveals.
    fn on_ack<Pub: Publisher>(
        &mut self,
        _newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: PacketInfo,
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn random::Generator,
        ack_receive_time: Timestamp,
        _publisher: &mut Pub,
    ) {
        let now = self.at(ack_receive_time);
        let acked = bytes(bytes_acknowledged);
        self.leave(clamp(acked));
        let mut path = self.slot.path();
        path.on_newest_acked(now, newest_acked_packet_info.0, acked, self.smoothed[0]);
        if take(&mut self.marked) {
            path.on_marked(now, now);
        }
        path.on_end_acks(now, self.app_limited);
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: PacketInfo,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn random::Generator,
        timestamp: Timestamp,
        _publisher: &mut Pub,
    ) {
        let now = self.at(timestamp);
        self.leave(lost_bytes);
        let lost = Bytes::new(lost_bytes.into());
        self.slot.path().on_loss(now, packet_info.0, lost, persistent_congestion);
    }

    /// Comes before the acknowledgement that has the marks. They wait for it: the newest packet that
    /// it covers tells whether they belong to the last reduction (RFC 9002 §7.3.2). No algorithm of
    /// Trimtab asks for their number.
    fn on_explicit_congestion<Pub: Publisher>(
        &mut self,
        _ce_count: u64,
        _event_time: Timestamp,
        _publisher: &mut Pub,
    ) {
        self.marked = true;
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _publisher: &mut Pub) {
        self.mtu = max_data_size.into();
        self.slot.path().on_mtu(max_data_size);
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut Pub) {
        self.leave(clamp(bytes(bytes_sent)));
        self.slot.path().on_bytes_discarded(bytes(bytes_sent));
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let (zero, _) = self.epoch?;
        let next = self.pacer.next(self.slot.path().pace())?;
        zero.checked_add(Std::from_nanos(next.as_nanos()))
    }

    fn send_quantum(&self) -> Option<usize> {
        self.slot.path().send_quantum().and_then(|most| usize::try_from(most.get()).ok())
    }
}

#[cfg(test)]
mod tests;
