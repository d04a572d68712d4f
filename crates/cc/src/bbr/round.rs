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

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-ietf-ccwg-bbr, "Tracking Packet-Timed Round Trips": `next_round_delivered`.
    #[test]
    fn a_round_ends_with_a_packet_sent_after_its_start() {
        let bytes = Bytes::new;
        let mut rounds = Rounds::default();
        rounds.update(Bytes::ZERO, bytes(10));
        assert_eq!((rounds.count, rounds.started), (1, true), "the first packet of all");
        rounds.update(bytes(9), bytes(20));
        assert_eq!((rounds.count, rounds.started), (1, false), "sent before the round");
        rounds.update(bytes(10), bytes(30));
        assert_eq!((rounds.count, rounds.started), (2, true));
        rounds.restart(bytes(50));
        rounds.update(bytes(49), bytes(60));
        assert_eq!((rounds.count, rounds.started), (2, false));
        rounds.update(bytes(50), bytes(70));
        assert_eq!(rounds.count, 3);
    }
}
