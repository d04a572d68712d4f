//! What ProbeRTT waits for: inflight down at its window, then a minimum time and a round there.

use trimtab_units::{Bytes, Duration, Time};

use super::bubble::Bubble;
use super::round::Rounds;
use crate::Ack;

/// The wait in ProbeRTT (Linux `bbr_update_min_rtt`, draft-ietf-ccwg-bbr `HandleProbeRTT()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProbeRtt {
    /// When the minimum time is over; `None` until inflight has fallen.
    ends_at: Option<Time>,
    round_done: bool,
}

/// How long ProbeRTT lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    /// The window in ProbeRTT: the time begins when no more is in flight.
    pub(super) window: Bytes,
    /// The minimum time.
    pub(super) duration: Duration,
}

impl ProbeRtt {
    /// An acknowledgement in ProbeRTT. Whether both the time and a round have passed there.
    pub(super) fn on_ack(
        &mut self,
        ack: &Ack,
        stay: Stay,
        rounds: &mut Rounds,
        bubble: &mut Bubble,
    ) -> bool {
        bubble.extend(ack.delivered, ack.inflight);
        if self.ends_at.is_none() {
            if ack.inflight <= stay.window {
                self.ends_at = Some(ack.now + stay.duration);
                rounds.restart(ack.delivered);
            }
            return false;
        }
        self.round_done |= rounds.started;
        self.round_done && self.time_is_over(ack.now)
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
    const RTT: Duration = Duration::from_millis(20);

    /// `bbr_update_min_rtt`: 200 ms from when no more than four packets are in flight, and a round.
    #[test]
    fn the_time_begins_when_inflight_has_fallen() {
        let (mut probe, mut rounds) = (ProbeRtt::default(), Rounds::default());
        let mut bubble = Bubble::default();
        let stay = Stay { window: MSS * 4, duration: Duration::from_millis(200) };
        let mut done = |probe: &mut ProbeRtt, rounds: &mut Rounds, ns: u64, packets: u64| {
            let ack = Ack {
                inflight: MSS * packets,
                delivered: MSS * (ns / 1_000_000),
                ..acked(Time::from_nanos(ns), Time::ZERO, MSS, RTT)
            };
            probe.on_ack(&ack, stay, rounds, &mut bubble)
        };
        let ms = 1_000_000;
        assert!(!done(&mut probe, &mut rounds, 10 * ms, 5), "one packet too many");
        assert!(!probe.time_is_over(Time::from_secs(9)), "the time has not begun");
        assert!(!done(&mut probe, &mut rounds, 20 * ms, 4));
        assert!(!probe.time_is_over(Time::from_millis(220)));
        assert!(probe.time_is_over(Time::from_nanos(220 * ms + 1)));
        let mut long = probe;
        // The round is one that began with it: a packet sent before does not end it.
        rounds.update(MSS * 19, MSS * 230);
        assert!(!done(&mut long, &mut rounds, 230 * ms, 4), "the time is over, the round is not");
        rounds.update(MSS * 20, MSS * 40);
        assert!(!done(&mut probe, &mut rounds, 40 * ms, 4), "the round is over, the time is not");
        rounds.update(MSS * 21, MSS * 50);
        assert!(!done(&mut probe, &mut rounds, 220 * ms, 9), "more in flight moves nothing");
        assert!(done(&mut probe, &mut rounds, 220 * ms + 1, 4), "the round stays done");
    }

    /// `bbr_update_min_rtt`: samples in ProbeRTT count as application-limited.
    #[test]
    fn what_is_in_flight_belongs_to_the_bubble() {
        let (mut rounds, mut bubble) = (Rounds::default(), Bubble::default());
        let stay = Stay { window: MSS * 4, duration: Duration::from_millis(200) };
        let ack = acked(Time::from_millis(10), Time::ZERO, MSS, RTT);
        let ack = Ack { inflight: MSS * 5, delivered: MSS * 10, ..ack };
        ProbeRtt::default().on_ack(&ack, stay, &mut rounds, &mut bubble);
        let held = [9, 10, 15, 16].map(|packets| bubble.contains(MSS * packets));
        assert_eq!(held, [false, true, true, false]);
    }
}
