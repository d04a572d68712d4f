//! What is kept of each packet until its fate is known.

use trimtab_units::{Bytes, Time};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Not known yet.
    InFlight,
    /// It arrived.
    Acked,
    /// Declared lost.
    Lost,
    /// It left flight without a signal: its keys were discarded (RFC 9002 §6.4), the connection
    /// moved to another path, or a probe repeats its data.
    Discarded,
}

/// The record of a sent packet: its fate, and the snapshot of the connection that a delivery-rate
/// sample needs (draft-cheng-iccrg-delivery-rate-estimation-02 §3.1.2).
///
/// [`Tracker::on_sent`](super::Tracker::on_sent) makes it. The transport stores it with the packet
/// and gives it back to the same tracker.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub(super) number: u64,
    pub(super) sent_at: Time,
    pub(super) delivered: Bytes,
    pub(super) delivered_at: Time,
    pub(super) first_sent_at: Time,
    pub(super) lost: Bytes,
    pub(super) tx_in_flight: Bytes,
    pub(super) size: u32,
    pub(super) fate: Fate,
    pub(super) app_limited: bool,
}

impl Packet {
    /// How many packets the tracker had been told of before this one.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// When it was sent.
    #[inline]
    pub fn sent_at(&self) -> Time {
        self.sent_at
    }

    /// Its size.
    #[inline]
    pub fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }

    /// What became of it.
    #[inline]
    pub fn fate(&self) -> Fate {
        self.fate
    }

    /// The record of `size` bytes that were sent with it, for a stack that acknowledges by bytes:
    /// the stack keeps the record of a batch and gives a part of it to the tracker for each
    /// acknowledgement. Sizes above 4 GiB count as 4 GiB.
    #[must_use]
    #[inline]
    pub fn part(&self, size: Bytes) -> Self {
        Self { size: clamped(size), ..*self }
    }
}

/// The size as a record stores it.
#[inline]
pub(super) fn clamped(size: Bytes) -> u32 {
    u32::try_from(size.get()).unwrap_or(u32::MAX)
}
