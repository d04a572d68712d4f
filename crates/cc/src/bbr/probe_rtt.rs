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
