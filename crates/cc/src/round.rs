//! Round trips counted by packets.

use trimtab_units::{Bytes, Time};

use crate::Ack;
use crate::migrate::HandOver;

/// A round trip: it ends once something sent after its start is acknowledged.
///
/// Two signs of that are used. Data beyond all that was delivered or in flight at the start was
/// delivered: exact even where many packets leave in the same instant, as long as none is lost. Or
/// the newest acknowledged packet left at a later time: right after losses, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    /// Delivered bytes when everything in flight at the start has arrived.
    end: Bytes,
    /// When it started.
    start: Time,
}

impl Round {
    /// The round that begins with a hand-over: what is in flight is the old algorithm's.
    pub(crate) fn beginning(from: &HandOver) -> Self {
        Self { end: from.delivered + from.inflight, start: from.now }
    }

    /// Whether this acknowledgement ends the round; the next one then starts with it. The first
    /// acknowledgement of a connection does.
    pub(crate) fn ends(&mut self, ack: &Ack) -> bool {
        let over = ack.delivered > self.end || ack.newest_sent_at > self.start;
        if over {
            self.end = ack.delivered + ack.inflight;
            self.start = ack.now;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{acked, hand_over};
    use trimtab_units::Duration;

    const MSS: Bytes = Bytes::new(1500);
    const RTT: Duration = Duration::from_millis(20);

    /// With `delivered` and `inflight` in packets, of a packet sent at `sent` ms.
    fn ack(now: u64, sent: u64, delivered: u64, inflight: u64) -> Ack {
        let (delivered, inflight) = (MSS * delivered, MSS * inflight);
        let ack = acked(Time::from_millis(now), Time::from_millis(sent), MSS, RTT);
        Ack { delivered, inflight, ..ack }
    }

    /// draft-ietf-ccwg-bbr, "Tracking Packet-Timed Round Trips": a round is what was in flight.
    #[test]
    fn a_round_ends_with_the_first_packet_beyond_what_was_in_flight() {
        let mut round = Round::default();
        assert!(round.ends(&ack(20, 0, 1, 9)), "the first acknowledgement");
        for delivered in 2..=10 {
            assert!(!round.ends(&ack(20, 0, delivered, 10)), "{delivered}");
        }
        assert!(round.ends(&ack(40, 20, 11, 9)));
        assert!(!round.ends(&ack(40, 20, 20, 9)), "9 in flight then");
        assert!(round.ends(&ack(60, 40, 21, 9)));
    }

    /// After losses less is delivered than was in flight, but what left later tells.
    #[test]
    fn a_round_ends_with_a_packet_that_left_after_its_start() {
        let mut round = Round::default();
        round.ends(&ack(20, 0, 1, 9));
        assert!(!round.ends(&ack(39, 20, 4, 9)), "sent in the instant in which the round began");
        assert!(round.ends(&ack(41, 21, 5, 9)));
        assert!(!round.ends(&ack(61, 41, 6, 9)));
    }

    #[test]
    fn what_is_in_flight_at_a_hand_over_is_the_first_round() {
        let from = hand_over(MSS * 10, RTT);
        let mut round = Round::beginning(&from);
        let of = |bytes: Bytes, sent: Time| Ack {
            delivered: from.delivered + bytes,
            ..acked(from.now + RTT, sent, MSS, RTT)
        };
        assert!(!round.clone().ends(&of(MSS * 10, from.now)));
        assert!(round.clone().ends(&of(MSS * 10 + Bytes::new(1), from.now)));
        assert!(round.ends(&of(MSS, from.now + Duration::from_nanos(1))));
    }
}
