//! TCP's loss recovery as an episode, with Proportional Rate Reduction (RFC 6937).

use trimtab_units::{Bytes, Time};

/// Where TCP's loss recovery stands.
#[derive(Clone, Debug, Default)]
pub(crate) enum Recovery {
    /// Nothing is lost, or a QUIC transport leaves episodes to the algorithm (RFC 9002 §7.3.2).
    #[default]
    Open,
    /// From the first loss until everything that was outstanding then has arrived.
    Fast {
        /// When it began.
        since: Time,
        /// End of the data that was outstanding.
        until: u64,
        /// What the window may be; `None` when the algorithm decides.
        prr: Option<Prr>,
    },
    /// From a retransmission timeout until everything that was outstanding then has arrived.
    Timeout {
        /// When it began.
        since: Time,
        /// End of the data that was outstanding.
        until: u64,
        /// Packets below this number were sent before the timeout.
        sent_before: u64,
    },
}

/// Proportional Rate Reduction as in Linux (`tcp_cwnd_reduction`): RFC 6937, in proportion to the
/// window rather than to what was in flight when recovery began, and slow start's bound only while
/// holes are filled and none appears.
#[derive(Clone, Debug)]
pub(crate) struct Prr {
    /// The window when recovery began (`prior_cwnd`).
    prior_window: Bytes,
    delivered: Bytes,
    out: Bytes,
    /// Bytes that may be sent now.
    allowance: Bytes,
}

/// What an acknowledgement in recovery says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrrAck {
    /// Bytes newly delivered.
    pub(crate) newly: Bytes,
    /// Whether it revealed losses.
    pub(crate) losses: bool,
    /// Whether the cumulative acknowledgement advanced.
    pub(crate) advanced: bool,
    /// Bytes in flight after it.
    pub(crate) inflight: Bytes,
    /// Where the reduction ends.
    pub(crate) ssthresh: Bytes,
}

impl Prr {
    /// Recovery begins. One packet, the fast retransmit, may always go.
    pub(crate) fn new(prior_window: Bytes, mss: Bytes) -> Self {
        let zero = Bytes::ZERO;
        Self { prior_window: prior_window.max(mss), delivered: zero, out: zero, allowance: mss }
    }

    pub(crate) fn on_ack(&mut self, ack: PrrAck, mss: Bytes) {
        self.delivered += ack.newly;
        let allowance = if ack.inflight > ack.ssthresh {
            // Proportional part: sndcnt = ceil(prr_delivered * ssthresh / prior_cwnd) - prr_out, in
            // packets: the first of them leaves at the beginning of its share, not at its end.
            let share = ack.ssthresh.ratio(self.prior_window);
            let packets = (self.delivered.ratio(mss) * share).ceil();
            mss * packets as u64 - self.out
        } else {
            let conserved = (self.delivered - self.out).max(ack.newly);
            let extra = if ack.advanced && !ack.losses { mss } else { Bytes::ZERO };
            (ack.ssthresh - ack.inflight).min(conserved + extra)
        };
        let least = if self.out.is_zero() { mss } else { Bytes::ZERO };
        self.allowance = allowance.max(least);
    }

    pub(crate) fn on_sent(&mut self, bytes: Bytes) {
        self.out += bytes;
        self.allowance -= bytes;
    }

    /// The window that lets exactly the allowance go.
    pub(crate) fn window(&self, inflight: Bytes) -> Bytes {
        inflight + self.allowance
    }
}

/// The reduction for a congestion mark (the state CWR of Linux): for a round trip, in which the window
/// does not grow and no other mark reduces it (RFC 3168 §6.1.2, RFC 9002 §7.3.2).
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    /// When it began.
    pub(crate) since: Time,
    /// It ends when something beyond the data that was outstanding then has arrived.
    pub(crate) until: u64,
    /// What the window may be; `None` when the algorithm decides.
    pub(crate) prr: Option<Prr>,
}

impl Recovery {
    /// When the episode began; `None` when there is none.
    pub(crate) fn since(&self) -> Option<Time> {
        match self {
            Self::Open => None,
            Self::Fast { since, .. } | Self::Timeout { since, .. } => Some(*since),
        }
    }

    /// The episode ends when all data up to here has arrived.
    pub(crate) fn until(&self) -> Option<u64> {
        match self {
            Self::Open => None,
            Self::Fast { until, .. } | Self::Timeout { until, .. } => Some(*until),
        }
    }

    pub(crate) fn prr(&mut self) -> Option<&mut Prr> {
        match self {
            Self::Fast { prr, .. } => prr.as_mut(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §4.1: a window of 20 packets, one lost, CUBIC's 0.7: 14 packets go out while the
    /// 19 others are acknowledged, spread over them.
    #[test]
    fn reduction_is_spread_over_the_round_trip() {
        let mss = Bytes::new(1000);
        let mut prr = Prr::new(mss * 20, mss);
        let ssthresh = mss * 14;
        // The lost packet and the three that revealed it have left.
        let mut inflight = mss * 16;
        let (mut sent, mut most_at_once) = (0, 0);
        for _ in 0..16 {
            inflight -= mss;
            let ack = PrrAck { newly: mss, losses: false, advanced: false, inflight, ssthresh };
            prr.on_ack(ack, mss);
            let before = sent;
            while inflight + mss <= prr.window(inflight) {
                prr.on_sent(mss);
                inflight += mss;
                sent += 1;
            }
            most_at_once = most_at_once.max(sent - before);
        }
        assert_eq!(sent, 14);
        assert_eq!(most_at_once, 1, "one for one or none");
        assert_eq!(inflight, ssthresh);
    }
}
