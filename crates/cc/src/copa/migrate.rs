//! Copa takes over: past slow start, with the connection's minimum round-trip time, so that it does
//! not take another's standing queue for the path.

use trimtab_units::{Bytes, Duration};

use super::blame::Blame;
use super::mode::Mode;
use super::velocity::Velocity;
use super::{Copa, RTT_FLOOR, Tally};
use crate::CongestionControl;
use crate::episode::Episode;
use crate::filter::{WindowedMax, WindowedMin};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::round::Round;

impl Migrate for Copa {
    /// Past slow start, and not holding its window down to see the empty queue.
    fn is_converged(&self) -> bool {
        !self.slow_start && self.drain.is_none()
    }

    /// Its pacing rate is twice what it sends on average; the window over the standing round-trip
    /// time is not.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let plain = OperatingPoint::of_window(self.window(), path);
        match self.rtt_standing.get() {
            Some(standing) => OperatingPoint { rate: self.window() / standing, ..plain },
            None => plain,
        }
    }

    fn take_over(&mut self, from: &HandOver) {
        self.rival = None;
        self.set_window(from.window.as_f64());
        // Where no queue ended the old window's growth, the search goes on.
        self.slow_start = from.starved;
        self.started = true;
        self.velocity = Velocity::new(self.window);
        self.mode = Mode::new(from.now);
        self.drain = None;
        self.blame = Blame::default();
        let path = (from.bandwidth * from.min_rtt).as_f64();
        self.descent = (!from.starved).then_some(path);
        let window = Duration::from_secs_f64(self.values.min_rtt_window);
        self.rtt_min = WindowedMin::new();
        self.residue = Duration::ZERO;
        self.rtt_min.update(from.min_rtt_at, window, from.min_rtt.max(RTT_FLOOR));
        // The smoothed round-trip time stands in, for pacing, until there are samples.
        self.rtt_standing = WindowedMin::new();
        self.rtt_standing.update(from.now, Duration::ZERO, from.srtt.max(RTT_FLOOR));
        self.rtt_max = WindowedMax::new();
        self.round = Round::beginning(from);
        self.episode = Episode::default();
        self.tally = [Tally::default(); 2];
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.set_window(window.as_f64());
        self.started = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hand_over;
    use crate::testing::link::MSS;
    use crate::{Ack, Config, Phase, set_knob};
    use trimtab_units::{Rate, Time};

    /// Takes over with that queue in packets on 80 packets of path, and plays round trips of the
    /// fluid that its window makes of it. The window and the queue after each, in packets.
    fn rounds(delta: f64, window: u64, count: usize) -> std::vec::Vec<(f64, f64)> {
        let rtt_of = |inflight: f64| Duration::from_secs_f64(inflight.max(80.0) / 4000.0);
        let mut copa = Copa::new(&Config::with_mss(MSS, 0));
        set_knob(&mut copa, "delta", delta).unwrap();
        let record = hand_over(MSS * window, rtt_of(window as f64));
        copa.take_over(&record);
        assert_eq!((copa.window(), copa.phase()), (MSS * window, Phase::Steady));
        let (mut now, mut delivered) = (record.now, record.delivered);
        let mut inflight = window as f64;
        let mut seen = std::vec::Vec::new();
        for _ in 0..count {
            let (rtt, start) = (rtt_of(inflight), now);
            let packets = inflight as u64;
            for i in 0..packets {
                now = start + rtt.mul_f64((i + 1) as f64 / packets as f64);
                delivered += MSS;
                let inflight = MSS * packets;
                copa.on_ack(&Ack {
                    delivered,
                    inflight,
                    prior_inflight: inflight + MSS,
                    ..crate::testing::acked(now, now - rtt, MSS, rtt)
                });
            }
            inflight = copa.window().ratio(MSS);
            seen.push((inflight, inflight - 80.0));
        }
        seen
    }

    /// migration.md E-2: 2 packets per round trip at first, then twice that each round trip; the
    /// queue of 70 packets is gone well within a second.
    #[test]
    fn drains_the_queue_of_cubic() {
        let seen = rounds(0.5, 150, 9);
        let fell: std::vec::Vec<f64> = seen.windows(2).map(|w| w[0].0 - w[1].0).collect();
        assert!((150.0 - seen[0].0 - 2.0).abs() < 0.3, "{seen:?}");
        assert!((fell[0] - 2.0).abs() < 0.3 && (fell[1] - 2.0).abs() < 0.6, "{fell:?}");
        assert!(fell[3] > 1.5 * fell[2], "velocity doubles: {fell:?}");
        assert!(seen[8].1 < 10.0, "{seen:?}");
    }

    /// The delay tells a round trip late that the queue is gone. With the velocity that emptied it the
    /// window would be at half the path by then.
    #[test]
    fn does_not_fall_below_the_path() {
        for (delta, window) in [(0.5, 150), (0.5, 300), (0.1, 300), (0.04, 300)] {
            let seen = rounds(delta, window, 14);
            let least = seen.iter().map(|(window, _)| *window).fold(f64::MAX, f64::min);
            assert!(least > 72.0, "delta {delta} from {window}: {seen:?}");
            assert!(least < 84.0 + 1.25 / delta, "delta {delta} from {window}: {seen:?}");
        }
    }

    /// migration.md E-3: 25 packets per round trip.
    #[test]
    fn drains_faster_with_a_small_delta() {
        let seen = rounds(0.04, 150, 2);
        assert!((150.0 - seen[0].0 - 25.0).abs() < 3.0, "{seen:?}");
        assert!(seen[1].1 < 31.0, "{seen:?}");
    }

    /// migration.md E-5: pacing is twice the window per round trip at once.
    #[test]
    fn paces_before_the_first_sample() {
        let mut copa = Copa::new(&Config::with_mss(MSS, 0));
        copa.take_over(&hand_over(MSS * 84, Duration::from_millis(21)));
        let rate = copa.pacing_rate().unwrap();
        assert!((rate.ratio(MSS * 84 * 2 / Duration::from_millis(21)) - 1.0).abs() < 1e-6);
        assert_eq!(copa.rtt_min.get(), Some(Duration::from_millis(20)));
    }

    /// migration.md E-7: the gain of two is not handed over.
    #[test]
    fn hands_over_what_it_sends_on_average() {
        let mut copa = Copa::new(&Config::with_mss(MSS, 0));
        let standing = Duration::from_micros(20_500);
        copa.take_over(&hand_over(MSS * 82, standing));
        let point = copa.operating_point(&PathView::new());
        assert_eq!((point.window, point.rate), (MSS * 82, Rate::from_bytes_per_sec(6_000_000)));
    }

    /// migration.md §8.3: part switching believes the first, inflated sample; full switching does not.
    #[test]
    fn keeps_the_minimum_of_the_connection() {
        let inflated = Duration::from_micros(37_500);
        let now = Time::from_secs(30);
        let first = crate::testing::acked(now + inflated, now, MSS, inflated);
        let mut full = Copa::new(&Config::with_mss(MSS, 0));
        full.take_over(&hand_over(MSS * 150, inflated));
        full.on_ack(&first);
        assert_eq!(full.rtt_min.get(), Some(Duration::from_millis(20)));
        let mut part = Copa::new(&Config::with_mss(MSS, 0));
        part.inherit(MSS * 150, inflated);
        part.on_ack(&first);
        assert_eq!(part.rtt_min.get(), Some(inflated));
        assert_eq!(part.phase(), Phase::SlowStart);
    }
}
