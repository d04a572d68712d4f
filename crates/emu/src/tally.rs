//! What one direction of a link did, counted while it runs.

use hdrhistogram::Histogram;
use trimtab_net::{Capacity, Delivery, LinkConfig, LinkStats};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::report::{Calibration, DirectionReport, Drops, Spread};

/// The times of the histograms in nanoseconds: a value is exact to 0.1%, and counts as a minute when it is longer.
const NS_MAX: u64 = 60_000_000_000;

/// For how long packets must have waited without a break for the span to count in the achieved rate. At its ends a
/// span can gain or lose one opportunity, which must be small compared with the span.
const BUSY_MIN: Duration = Duration::from_secs(1);

pub(crate) struct Tally {
    capacity: Capacity,
    overhead: Bytes,
    queueing: Histogram<u64>,
    one_way: Histogram<u64>,
    late: Histogram<u64>,
    busy: Busy,
    refused: u64,
}

/// Spans in which the link always had something to send.
#[derive(Default)]
struct Busy {
    /// The span that goes on: its begin, the real departure of its last packet, and the bytes sent.
    begin: Time,
    departed: Time,
    bytes: Bytes,
    /// The last departure as the link planned it.
    planned: Time,
    /// All spans that have ended and were long enough.
    span: Duration,
    offered: Bytes,
    achieved: Bytes,
}

impl Busy {
    fn delivered<T>(
        &mut self,
        delivery: &Delivery<T>,
        size: Bytes,
        late: Duration,
        capacity: &Capacity,
    ) {
        if delivery.enqueued_at >= self.planned {
            self.end(capacity);
            self.begin = delivery.enqueued_at;
            self.bytes = Bytes::ZERO;
        }
        self.planned = delivery.departed_at;
        self.departed = delivery.departed_at + late;
        self.bytes += size;
    }

    fn end(&mut self, capacity: &Capacity) {
        let span = self.departed.since(self.begin);
        if span >= BUSY_MIN {
            self.span += span;
            self.offered += capacity.bytes_between(self.begin, self.departed);
            self.achieved += self.bytes;
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, NS_MAX, 3).expect("the bounds are in order")
}

impl Tally {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Self {
            capacity: config.capacity.clone(),
            overhead: config.overhead,
            queueing: histogram(),
            one_way: histogram(),
            late: histogram(),
            busy: Busy::default(),
            refused: 0,
        }
    }

    /// A packet was written to the far end at `written`.
    pub(crate) fn delivered<T>(&mut self, delivery: &Delivery<T>, written: Time, accepted: bool) {
        let late = written.since(delivery.at);
        self.late.saturating_record(late.as_nanos());
        let queueing = delivery.departed_at.since(delivery.enqueued_at);
        self.queueing.saturating_record(queueing.as_nanos());
        self.one_way.saturating_record(written.since(delivery.enqueued_at).as_nanos());
        let size = delivery.packet.size + self.overhead;
        self.busy.delivered(delivery, size, late, &self.capacity);
        self.refused += u64::from(!accepted);
    }

    /// What it comes to at the end. The packets that the kernel lost before the link are counted by others.
    pub(crate) fn report(
        mut self,
        stats: &LinkStats,
        capacity: &Capacity,
        end: Time,
    ) -> DirectionReport {
        self.busy.end(capacity);
        let duration = end.since(Time::ZERO);
        let is_limited = capacity.mean_rate() < Rate::MAX;
        let Busy { span, offered, achieved, .. } = self.busy;
        let calibration = (is_limited && !span.is_zero()).then(|| Calibration {
            span_s: span.as_secs_f64(),
            offered_mbps: (offered / span).mbps(),
            achieved_mbps: (achieved / span).mbps(),
        });
        DirectionReport {
            capacity_mbps: is_limited
                .then(|| (capacity.bytes_between(Time::ZERO, end) / duration).mbps()),
            carried_mbps: (stats.deliveries.bytes / duration).mbps(),
            arrivals: stats.arrivals.packets,
            deliveries: stats.deliveries.packets,
            delivered_bytes: stats.deliveries.bytes.get(),
            drops: Drops {
                queue_full: stats.queue_full.packets,
                random_loss: stats.random_loss.packets,
                aqm: stats.aqm.packets,
                policer: stats.policer.packets,
                before_link: 0,
                refused: self.refused,
            },
            queueing: spread(&self.queueing),
            one_way: spread(&self.one_way),
            late: spread(&self.late),
            calibration,
        }
    }
}

fn spread(values: &Histogram<u64>) -> Option<Spread> {
    let ms = |ns: u64| ns as f64 / 1e6;
    (!values.is_empty()).then(|| Spread {
        mean_ms: values.mean() / 1e6,
        p50_ms: ms(values.value_at_quantile(0.5)),
        p95_ms: ms(values.value_at_quantile(0.95)),
        p99_ms: ms(values.value_at_quantile(0.99)),
        max_ms: ms(values.max()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_net::Packet;

    fn delivery(enqueued_ms: u64, departed_ms: u64) -> Delivery<()> {
        let at = Time::from_millis(departed_ms + 10);
        let packet = Packet { size: Bytes::new(1500), payload: () };
        let (enqueued_at, departed_at) =
            (Time::from_millis(enqueued_ms), Time::from_millis(departed_ms));
        Delivery { packet, at, enqueued_at, departed_at, marked: false }
    }

    /// One packet per ms on a link of 12 Mbit/s, all of them late by `late_ms` from the middle on.
    fn achieved(late_ms: u64) -> Calibration {
        let config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)));
        let mut tally = Tally::new(&config);
        // An idle link first, and one packet alone: not busy.
        let alone = delivery(100, 101);
        tally.delivered(&alone, alone.at, true);
        for ms in 500..4500 {
            let late = if ms < 2500 { 0 } else { late_ms };
            let d = delivery(ms.max(510) - 10, ms + 1);
            tally.delivered(&d, d.at + Duration::from_millis(late), true);
        }
        let report = tally.report(&LinkStats::default(), &config.capacity, Time::from_secs(6));
        assert_eq!(report.capacity_mbps, Some(12.0));
        report.calibration.unwrap()
    }

    #[test]
    fn the_achieved_rate_is_of_busy_spans_and_real_departures() {
        let exact = achieved(0);
        assert!((exact.span_s - 4.0).abs() < 1e-9, "{}", exact.span_s);
        assert!((exact.offered_mbps - 12.0).abs() < 1e-6, "{}", exact.offered_mbps);
        assert!((exact.achieved_mbps - 12.0).abs() < 1e-6, "{}", exact.achieved_mbps);
        // The same bytes in 4.4 s instead of 4: 12 / 1.1.
        let late = achieved(400);
        assert!((late.offered_mbps - 12.0).abs() < 1e-6, "{}", late.offered_mbps);
        assert!((late.achieved_mbps - 12.0 / 1.1).abs() < 1e-4, "{}", late.achieved_mbps);
    }

    #[test]
    fn a_link_without_a_limit_offers_nothing_to_compare_with() {
        let config = LinkConfig::new(Capacity::Constant(Rate::MAX));
        let mut tally = Tally::new(&config);
        let d = delivery(0, 0);
        tally.delivered(&d, d.at + Duration::from_micros(250), false);
        let report = tally.report(&LinkStats::default(), &config.capacity, Time::from_secs(1));
        assert_eq!((report.capacity_mbps, report.drops.refused), (None, 1));
        assert!(report.calibration.is_none());
        let late = report.late.unwrap();
        assert!(
            (late.p50_ms - 0.25).abs() < 0.001 && (late.max_ms - 0.25).abs() < 0.001,
            "{late:?}"
        );
        let one_way = report.one_way.unwrap();
        assert!((one_way.p50_ms - 10.25).abs() < 0.02, "{one_way:?}");
        assert!(report.queueing.unwrap().max_ms < 1e-6);
    }

    /// Two packets of 1500 bytes and 100 of overhead in 4 s, and what the link counted.
    #[test]
    fn rates_and_drops_are_those_that_were_counted() {
        let mut config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(8.0)));
        config.overhead = Bytes::new(100);
        let mut stats = LinkStats::default();
        (stats.arrivals.packets, stats.arrivals.bytes) = (10, Bytes::new(16_000));
        (stats.deliveries.packets, stats.deliveries.bytes) = (2, Bytes::new(3200));
        stats.queue_full.packets = 1;
        stats.random_loss.packets = 2;
        stats.aqm.packets = 3;
        stats.policer.packets = 4;
        let mut tally = Tally::new(&config);
        for d in [delivery(0, 20), delivery(1000, 1060)] {
            tally.delivered(&d, d.at + Duration::from_millis(1), true);
        }
        let report = tally.report(&stats, &config.capacity, Time::from_secs(4));
        assert_eq!((report.arrivals, report.deliveries, report.delivered_bytes), (10, 2, 3200));
        assert!((report.carried_mbps - 3200.0 * 8e-6 / 4.0).abs() < 1e-9);
        assert!((report.capacity_mbps.unwrap() - 8.0).abs() < 1e-6);
        let drops = report.drops;
        assert_eq!((drops.queue_full, drops.random_loss, drops.aqm, drops.policer), (1, 2, 3, 4));
        assert_eq!((drops.before_link, drops.refused), (0, 0));
        let queueing = report.queueing.unwrap();
        assert!((queueing.mean_ms - 40.0).abs() < 0.05, "{queueing:?}");
        assert!((queueing.max_ms - 60.0).abs() < 0.1, "{queueing:?}");
        let one_way = report.one_way.unwrap();
        assert!((one_way.mean_ms - 51.0).abs() < 0.1, "{one_way:?}");
        assert!(report.calibration.is_none(), "it was never busy for a second");
    }

    #[test]
    fn a_link_that_carried_nothing_has_no_delays() {
        let config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(8.0)));
        let tally = Tally::new(&config);
        let report = tally.report(&LinkStats::default(), &config.capacity, Time::from_secs(1));
        assert_eq!((report.queueing, report.one_way, report.late), (None, None, None));
        assert_eq!((report.carried_mbps, report.calibration), (0.0, None));
    }

    /// Longer waits than a minute count as a minute, and are not lost.
    #[test]
    fn a_delay_beyond_the_histogram_counts_as_its_end() {
        let config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(8.0)));
        let mut tally = Tally::new(&config);
        let d = delivery(0, 100_000);
        tally.delivered(&d, d.at, true);
        let report = tally.report(&LinkStats::default(), &config.capacity, Time::from_secs(200));
        let queueing = report.queueing.unwrap();
        assert!((queueing.max_ms / 60_000.0 - 1.0).abs() < 0.002, "{queueing:?}");
    }
}
