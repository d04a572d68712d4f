//! What ProbeRTT waits for: inflight down at its window, then a minimum time and a round there.

use trimtab_units::{Bytes, Duration, Time};

use super::round::Rounds;
use crate::Ack;

/// The wait in ProbeRTT (Linux `bbr_update_min_rtt`, draft-ietf-ccwg-bbr `HandleProbeRTT()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProbeRtt {
    /// When the minimum time is over; `None` until inflight has fallen.
    ends_at: Option<Time>,
    round_done: bool,
}

impl ProbeRtt {
    /// An acknowledgement in ProbeRTT, whose window is `least`. Whether a round has passed there.
    pub(super) fn on_ack(
        &mut self,
        ack: &Ack,
        least: Bytes,
        duration: Duration,
        rounds: &mut Rounds,
    ) -> bool {
        if self.ends_at.is_none() {
            if ack.inflight <= least {
                self.ends_at = Some(ack.now + duration);
                rounds.restart(ack.delivered);
            }
            return false;
        }
        self.round_done |= rounds.started;
        self.round_done
    }

    /// Whether the minimum time is over.
    pub(super) fn time_is_over(&self, now: Time) -> bool {
        self.ends_at.is_some_and(|end| now > end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acked;

    const MSS: Bytes = Bytes::new(1500);
    const LEAST: Bytes = Bytes::new(4 * 1500);
    const RTT: Duration = Duration::from_millis(20);

    /// `bbr_update_min_rtt`: 200 ms from when no more than four packets are in flight, and a round.
    #[test]
    fn the_time_begins_when_inflight_has_fallen() {
        let (mut probe, mut rounds) = (ProbeRtt::default(), Rounds::default());
        let duration = Duration::from_millis(200);
        let ack = |ms: u64, packets: u64| Ack {
            inflight: MSS * packets,
            delivered: MSS * ms,
            ..acked(Time::from_millis(ms), Time::ZERO, MSS, RTT)
        };
        assert!(!probe.on_ack(&ack(10, 5), LEAST, duration, &mut rounds), "one packet too many");
        assert!(!probe.time_is_over(Time::from_secs(9)), "the time has not begun");
        assert!(!probe.on_ack(&ack(20, 4), LEAST, duration, &mut rounds));
        assert!(!probe.time_is_over(Time::from_millis(220)));
        assert!(probe.time_is_over(Time::from_nanos(220_000_001)));
        // The round is one that began with it: a packet sent before does not end it.
        rounds.update(MSS * 19, MSS * 30);
        assert!(!probe.on_ack(&ack(30, 4), LEAST, duration, &mut rounds));
        rounds.update(MSS * 20, MSS * 40);
        assert!(probe.on_ack(&ack(40, 4), LEAST, duration, &mut rounds));
        rounds.update(MSS * 21, MSS * 50);
        assert!(probe.on_ack(&ack(50, 9), LEAST, duration, &mut rounds), "it stays done");
        assert!(!probe.time_is_over(Time::from_millis(220)), "more in flight moves nothing");
    }
}
