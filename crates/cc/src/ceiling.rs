//! How algorithms answer congestion marks (ECN) whose documents do not: by a bound on what they keep in flight.
//!
//! RFC 3168 §5 wants the same answer to a mark as to a dropped packet. Copa, Vivace, Muses and BBRv3 hardly answer a
//! single dropped packet, since it may be the noise of a radio. A mark never is: a queue on the path wrote it. So after
//! a mark they keep no more in flight than a flow would that answers every mark as CUBIC does, and grows as CUBIC's
//! Reno-friendly estimate (RFC 9438 §4.3). Below that bound they follow their own rules.

use trimtab_units::{Bytes, Duration, Time};

use crate::{Ack, Marked};

/// What a mark leaves of the window: RFC 9438 §4.6, `beta_cubic` = 0.7.
const KEEP: (u64, u64) = (7, 10);
/// The window grows by a packet for so many times itself acknowledged: the inverse of RFC 9438 §4.3's
/// `alpha_cubic` = 3 (1 - 0.7) / (1 + 0.7) = 9/17.
const PER_PACKET: (u64, u64) = (17, 9);
/// No mark leaves less than so many packets (RFC 9438 §4.6).
const PACKETS_MIN: u64 = 2;
/// A path without a mark for so long, and for so many round trips, has no bound. What a connection knows of its path is
/// as old at most (`migrate::PathView`).
const LASTS: Duration = Duration::from_secs(10);
const LASTS_ROUNDS: u64 = 10;

/// The bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceiling {
    window: Bytes,
    /// Acknowledged bytes that have not yet raised it.
    credit: Bytes,
    /// When the last mark lowered it; `None` while there is no bound.
    lowered_at: Option<Time>,
    /// Nothing that was sent since has arrived: it does not grow.
    held: bool,
}

impl Ceiling {
    /// The bound; the largest value while there is none.
    pub(crate) fn get(&self) -> Bytes {
        if self.is_set() { self.window } else { Bytes::MAX }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.lowered_at.is_some()
    }

    /// A mark arrived while this window was in force. Whether it lowers the bound: one does in a round trip, as with
    /// losses (RFC 9002 §7.3.1).
    pub(crate) fn on_marked(&mut self, marked: &Marked, window: Bytes, mss: Bytes) -> bool {
        if self.lowered_at.is_some_and(|at| marked.newest_sent_at <= at) {
            return false;
        }
        let kept = window.min(self.get()) * KEEP.0 / KEEP.1;
        self.window = kept.max(mss * PACKETS_MIN);
        self.credit = Bytes::ZERO;
        self.lowered_at = Some(marked.now);
        self.held = true;
        true
    }

    /// Packets have another size.
    pub(crate) fn on_mtu(&mut self, mss: Bytes) {
        self.window = self.window.max(mss * PACKETS_MIN);
    }

    /// Grows by what was acknowledged, where the bound limits the sender: a window that is not used
    /// does not grow (RFC 9002 §7.8).
    pub(crate) fn on_ack(&mut self, ack: &Ack, limits: bool, mss: Bytes) {
        let Some(at) = self.lowered_at else { return };
        if ack.now.since(at) > LASTS.max(ack.srtt * LASTS_ROUNDS) {
            self.lowered_at = None;
            return;
        }
        self.held &= ack.newest_sent_at <= at;
        if self.held || !limits {
            return;
        }
        self.credit += ack.acked;
        let price = self.window * PER_PACKET.0 / PER_PACKET.1;
        if self.credit >= price {
            self.credit -= price;
            self.window += mss;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acked;

    const MSS: Bytes = Bytes::new(1500);
    const RTT: Duration = Duration::from_millis(20);

    fn marked(now: Time, newest_sent_at: Time) -> Marked {
        Marked { now, newest_sent_at, inflight: MSS, prior_inflight: MSS }
    }

    fn ack(now: Time, bytes: Bytes) -> Ack {
        acked(now, now - Duration::from_millis(1), bytes, RTT)
    }

    /// RFC 9438 §4.3 and §4.6: 0.7 is left, and 9/17 of a packet comes back in each window.
    #[test]
    fn one_reduction_in_a_round_trip_and_then_additive_increase() {
        let (mut ceiling, mut now) = (Ceiling::default(), Time::from_secs(1));
        assert_eq!(ceiling.get(), Bytes::MAX);
        assert!(ceiling.on_marked(&marked(now, now), MSS * 100, MSS));
        assert_eq!(ceiling.get(), MSS * 70);
        assert!(!ceiling.on_marked(&marked(now + RTT, now), MSS * 70, MSS), "the same round trip");
        ceiling.on_ack(&Ack { newest_sent_at: now, ..ack(now + RTT, MSS * 700) }, true, MSS);
        assert_eq!(ceiling.get(), MSS * 70, "nothing that was sent since has arrived");
        for _ in 0..17 {
            now += RTT;
            for _ in 0..70 {
                ceiling.on_ack(&ack(now + RTT, MSS), true, MSS);
            }
        }
        // Seventeen windows of 70 are 1190 packets, and each raise has the price of the window by then.
        assert_eq!(ceiling.get(), MSS * 78);
        ceiling.on_ack(&ack(now, MSS * 1000), false, MSS);
        assert_eq!(ceiling.get(), MSS * 78, "it is not used");
        // A second mark: of what is in force, whatever the algorithm would like.
        assert!(ceiling.on_marked(&marked(now + RTT, now + RTT), MSS * 100, MSS));
        assert_eq!(ceiling.get(), MSS * 78 * 7 / 10);
    }

    #[test]
    fn two_packets_are_left_and_ten_seconds_end_it() {
        let (mut ceiling, now) = (Ceiling::default(), Time::from_secs(1));
        ceiling.on_marked(&marked(now, now), MSS, MSS);
        assert_eq!(ceiling.get(), MSS * 2);
        ceiling.on_ack(&ack(now + LASTS, MSS), true, MSS);
        assert!(ceiling.is_set());
        let later = now + LASTS + RTT;
        ceiling.on_ack(&Ack { srtt: LASTS, ..ack(later, MSS) }, true, MSS);
        assert!(ceiling.is_set(), "ten round trips");
        ceiling.on_ack(&ack(later, MSS), true, MSS);
        assert_eq!(ceiling.get(), Bytes::MAX);
    }
}
