//! `BBR.extra_acked`: how much more is acknowledged at once than the bandwidth explains.

use trimtab_units::{Bytes, Rate, Time};

use super::super::windowed_max::WindowedMax;

/// `ExtraAckedFilterLen`, in rounds.
const FILTER_ROUNDS: u64 = 10;
/// In Startup the bandwidth estimate still grows, so old excesses say little: one round.
const STARTUP_FILTER_ROUNDS: u64 = 1;

/// The largest recent excess.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    interval_start: Time,
    delivered: Bytes,
    filter: WindowedMax<Bytes>,
}

/// An acknowledgement as this estimator sees it.
pub(super) struct Acked {
    pub(super) now: Time,
    pub(super) bytes: Bytes,
    pub(super) bw: Rate,
    pub(super) window: Bytes,
    pub(super) round: u64,
    pub(super) in_startup: bool,
}

impl Aggregation {
    pub(super) fn extra(&self) -> Bytes {
        self.filter.get()
    }

    /// Nothing was expected while the sender was idle.
    pub(super) fn restart_interval(&mut self, now: Time) {
        self.interval_start = now;
    }

    /// `UpdateACKAggregation()`.
    pub(super) fn update(&mut self, ack: &Acked) {
        let mut expected = ack.bw * ack.now.since(self.interval_start);
        if self.delivered <= expected {
            // Slower than the bandwidth: the aggregate has been delivered.
            self.delivered = Bytes::ZERO;
            self.interval_start = ack.now;
            expected = Bytes::ZERO;
        }
        self.delivered += ack.bytes;
        let extra = (self.delivered - expected).min(ack.window);
        let rounds = if ack.in_startup { STARTUP_FILTER_ROUNDS } else { FILTER_ROUNDS };
        self.filter.update(rounds, ack.round, extra);
    }
}
