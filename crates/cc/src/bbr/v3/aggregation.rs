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

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1500);

    /// At 12 Mbit/s, which is a packet per millisecond.
    fn ack(ms: u64, packets: u64, round: u64, in_startup: bool) -> Acked {
        let (now, bw) = (Time::from_millis(ms), Rate::from_mbps(12.0));
        Acked { now, bytes: MSS * packets, bw, window: MSS * 15, round, in_startup }
    }

    /// draft-ietf-ccwg-bbr, `UpdateACKAggregation()`: what came beyond bandwidth times time.
    #[test]
    fn the_excess_is_what_came_beyond_the_bandwidth() {
        let mut aggregation = Aggregation::default();
        aggregation.update(&ack(100, 10, 1, false));
        assert_eq!(aggregation.extra(), MSS * 10, "a burst of ten after a silence");
        aggregation.update(&ack(104, 6, 1, false));
        assert_eq!(aggregation.extra(), MSS * 12, "sixteen in 4 ms");
        aggregation.update(&ack(116, 2, 1, false));
        assert_eq!(aggregation.extra(), MSS * 12, "sixteen in 16 ms: as the bandwidth explains");
        aggregation.update(&ack(117, 90, 1, false));
        assert_eq!(aggregation.extra(), MSS * 15, "never more than the window");
    }

    #[test]
    fn the_excess_is_remembered_for_ten_rounds_and_for_one_in_startup() {
        let fades = |in_startup: bool| {
            let mut aggregation = Aggregation::default();
            aggregation.update(&ack(100, 10, 1, in_startup));
            (2..40).find(|round| {
                aggregation.update(&ack(100 + 100 * round, 1, *round, in_startup));
                aggregation.extra() < MSS * 10
            })
        };
        assert_eq!((fades(false), fades(true)), (Some(12), Some(3)));
    }

    #[test]
    fn a_pause_is_no_time_in_which_anything_was_expected() {
        let mut aggregation = Aggregation::default();
        aggregation.update(&ack(100, 10, 1, false));
        aggregation.restart_interval(Time::from_millis(500));
        aggregation.update(&ack(504, 1, 1, false));
        assert_eq!(aggregation.extra(), MSS * 10, "11 less the 4 of four milliseconds is fewer");
        aggregation.update(&ack(504, 5, 1, false));
        assert_eq!(aggregation.extra(), MSS * 12);
    }
}
