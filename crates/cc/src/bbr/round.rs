//! Packet-timed round trips: a round ends when a packet sent after its start is acknowledged.

use trimtab_units::Bytes;

/// Counts rounds (draft-ietf-ccwg-bbr, "Tracking Packet-Timed Round Trips").
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Rounds completed.
    pub(super) count: u64,
    /// Whether the acknowledgement being handled began a round.
    pub(super) started: bool,
    /// A packet sent at or after this many delivered bytes ends the round.
    end: Bytes,
}

impl Rounds {
    /// Takes the delivered bytes at the sending of the newest acknowledged packet and now.
    pub(super) fn update(&mut self, prior_delivered: Bytes, delivered: Bytes) {
        self.started = prior_delivered >= self.end;
        if self.started {
            self.count += 1;
            self.end = delivered;
        }
    }

    /// Makes the current round end when something sent from now on is acknowledged.
    pub(super) fn restart(&mut self, delivered: Bytes) {
        self.end = delivered;
    }
}
