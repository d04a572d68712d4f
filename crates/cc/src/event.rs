//! What a transport tells a congestion control algorithm.

use trimtab_units::{Bytes, Duration, Rate, Time};

/// A packet left.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Time,
    /// Its size.
    pub bytes: Bytes,
    /// In flight, this packet included.
    pub inflight: Bytes,
    /// Whether the application, not the window, limits the sender now.
    pub app_limited: bool,
}

/// How fast the path delivered, measured on one acknowledged packet
/// (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Bytes delivered over the interval.
    pub delivered: Bytes,
    /// The longer of the send and the acknowledgement interval; never zero.
    pub interval: Duration,
    /// The connection's delivered bytes when the sampled packet was sent (`P.delivered`).
    pub prior_delivered: Bytes,
    /// Whether the sender was limited by the application when the sampled packet was sent.
    pub app_limited: bool,
    /// In flight when the sampled packet was sent, itself included (`P.tx_in_flight`).
    pub tx_in_flight: Bytes,
    /// Bytes declared lost between the sending of the sampled packet and now.
    pub lost: Bytes,
}

impl RateSample {
    /// Delivered bytes over the interval.
    pub fn rate(&self) -> Rate {
        self.delivered / self.interval
    }
}

/// New data was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Bytes newly acknowledged by it.
    pub acked: Bytes,
    /// Round-trip time of the newest packet that it acknowledges; `None` when that is not known
    /// (the newest was acknowledged before).
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298), this sample included.
    pub srtt: Duration,
    /// Lowest round-trip time since the connection began.
    pub min_rtt: Duration,
    /// Bytes in flight after it.
    pub inflight: Bytes,
    /// Bytes in flight before it (and before any losses that it revealed).
    pub prior_inflight: Bytes,
    /// Bytes delivered over the life of the connection, these included.
    pub delivered: Bytes,
    /// When the newest packet that it acknowledges was sent.
    pub newest_sent_at: Time,
    /// The delivery-rate sample that it gives, if it gives one.
    pub rate: Option<RateSample>,
    /// Whether the window limited the sender in the round trip that ends here. An algorithm must
    /// not grow a window that is not used (RFC 9002 §7.8).
    pub cwnd_limited: bool,
    /// Whether the transport is in loss recovery (packets sent before the last reduction are
    /// still outstanding).
    pub in_recovery: bool,
}

/// One packet was declared lost. What was in flight when it was sent tells BBR how much was too
/// much.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// When it was declared lost.
    pub now: Time,
    /// Its size.
    pub bytes: Bytes,
    /// When it was sent.
    pub sent_at: Time,
    /// In flight when it was sent, itself included.
    pub tx_in_flight: Bytes,
    /// Bytes declared lost since it was sent, itself included.
    pub lost_since_sent: Bytes,
    /// Whether the application limited the sender when it was sent.
    pub app_limited: bool,
    /// The connection's delivered bytes when it was sent.
    pub delivered_at_send: Bytes,
    /// Whether the packet just before it in sending order was not lost: the packet opens a new
    /// lost range (BBRv3 counts ranges).
    pub new_range: bool,
}

/// A batch of packets was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When.
    pub now: Time,
    /// Bytes of the batch.
    pub lost: Bytes,
    /// When the newest packet of the batch was sent. Losses of packets sent before the last window
    /// reduction belong to the same episode (RFC 9002 §7.3.2).
    pub newest_sent_at: Time,
    /// Bytes in flight after the batch.
    pub inflight: Bytes,
    /// Bytes in flight before the batch.
    pub prior_inflight: Bytes,
}

impl Loss {
    /// The same batch as the sign of a timeout.
    pub fn timeout(&self) -> Timeout {
        Timeout { now: self.now, prior_inflight: self.prior_inflight, inflight: self.inflight }
    }
}

/// Packets left flight that neither arrived nor were lost: their keys were discarded (RFC 9002
/// §6.4), or a probe repeats their data.
#[derive(Clone, Copy, Debug)]
pub struct Discarded {
    /// When.
    pub now: Time,
    /// Their bytes.
    pub bytes: Bytes,
    /// Bytes in flight after it.
    pub inflight: Bytes,
}

/// An acknowledgement says that the path marked packets with "congestion experienced" (CE) instead
/// of dropping them (ECN, RFC 3168; RFC 9000 §13.4).
#[derive(Clone, Copy, Debug)]
pub struct Marked {
    /// When it arrived.
    pub now: Time,
    /// When the newest packet that it acknowledges was sent; QUIC does not say which packets were
    /// marked (RFC 9002 §B.7). TCP's receiver repeats its echo until it is answered, so a TCP
    /// transport tells of the first in a round trip, with the present time (RFC 3168 §6.1.2). Marks
    /// of packets sent before the last reduction belong to that (RFC 9002 §7.3.1).
    pub newest_sent_at: Time,
    /// Bytes in flight after it.
    pub inflight: Bytes,
    /// Bytes in flight before it.
    pub prior_inflight: Bytes,
}

/// TCP's retransmission timeout or QUIC's persistent congestion.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// When.
    pub now: Time,
    /// Bytes in flight when it was declared, before anything was written off.
    pub prior_inflight: Bytes,
    /// Bytes in flight after everything outstanding was written off.
    pub inflight: Bytes,
}

/// The sender was idle and sends again.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// When it sends again.
    pub now: Time,
    /// For how long nothing was sent.
    pub idle: Duration,
    /// The retransmission timeout.
    pub rto: Duration,
}

/// What a receiver said of one packet (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1, RFC
/// 8888 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it left, by the sender's clock.
    pub sent_at: Time,
    /// When it arrived, by the receiver's clock, whose origin is anywhere; `None`: it has not.
    pub arrived_at: Option<Time>,
    /// Its size.
    pub bytes: Bytes,
    /// The probe of which it is a part, by its [`Probe::id`].
    pub probe: Option<u32>,
    /// Whether it arrived with a congestion mark (CE).
    pub marked: bool,
}

/// A receiver's feedback on packets, one by one: what transports of media give.
#[derive(Clone, Copy, Debug)]
pub struct Feedback<'a> {
    /// When it arrived at the sender.
    pub now: Time,
    /// The packets, in the order in which they left. None of them was in an earlier feedback as
    /// arrived; one that was reported missing may come again.
    pub packets: &'a [Arrival],
    /// Round-trip time of the newest packet that arrived, the receiver's wait excluded where it is
    /// known.
    pub rtt: Option<Duration>,
    /// Bytes in flight after it.
    pub inflight: Bytes,
}

/// Packets that an algorithm wants to leave at once, to see what the path carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its packets come back under this number ([`Arrival::probe`]).
    pub id: u32,
    /// The rate to send them at, whatever the pacing rate is. Padding fills what the application
    /// does not.
    pub rate: Rate,
    /// The least number of packets.
    pub packets: u32,
    /// The least number of bytes.
    pub bytes: Bytes,
}
