//! What a path holds, sampled as the published prototype of Mortise does: four times a round trip,
//! smoothed, and split into swings that Copa follows and those that it does not.

use alloc::collections::VecDeque;

use trimtab_units::Duration;

use super::filter::{Chebyshev, Pass};
use crate::Report;

/// Samples in a lowest round-trip time, and the least time between two.
const PER_ROUND: u64 = 4;
const STEP_MIN: Duration = Duration::from_millis(4);
/// What the smoothed rate keeps of itself at a sample.
const KEEPS: f64 = 0.8;
/// The cutoff has a period of so many lowest round-trip times.
const CUTOFF_ROUNDS: f64 = 3.0;
/// A cutoff beyond this, in cycles per sample, says nothing: round-trip times below 3.4 ms.
const CUTOFF_MAX: f64 = 0.4;

/// How long to wait between samples on a path of this lowest round-trip time.
pub(super) fn step(rtt_min: Duration) -> Duration {
    (rtt_min / PER_ROUND).max(STEP_MIN)
}

/// A sample of what the path holds, in packets: its swings above and below the cutoff, from where
/// they stood when sampling began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) fast: f64,
    pub(super) slow: f64,
    /// Whether the slow ones turned since the sample before.
    pub(super) turned: bool,
}

/// The samples of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Signal {
    /// Bytes acknowledged and the time that it took, of reports within the last round trip.
    recent: VecDeque<(f64, f64)>,
    /// Smoothed rate in bytes per second; `None` before the first sample.
    rate: Option<f64>,
    filters: Option<Filters>,
}

#[derive(Clone, Copy, Debug)]
struct Filters {
    cutoff: f64,
    /// What the path held at the first sample.
    from: f64,
    low: Chebyshev<1>,
    high: Chebyshev<2>,
    /// The last slow swing, and whether it grew.
    slow: f64,
    grew: bool,
}

impl Signal {
    /// Smoothed rate, in bytes per second.
    pub(super) fn rate(&self) -> f64 {
        self.rate.unwrap_or_default()
    }

    /// Takes a report; `None` until a round trip was seen.
    pub(super) fn on_report(&mut self, report: &Report) -> Option<Sample> {
        let rtt_min = report.min_rtt.as_secs_f64();
        self.recent.push_back((report.acked.as_f64(), report.interval.as_secs_f64()));
        let time = |recent: &VecDeque<(f64, f64)>| recent.iter().map(|(_, t)| t).sum::<f64>();
        while self.recent.len() > 1 && time(&self.recent) - self.recent[0].1 >= rtt_min {
            self.recent.pop_front();
        }
        let time = time(&self.recent);
        // Timers fire a little early and late: nine tenths of a round trip are one.
        if time <= 0.0 || time < 0.9 * rtt_min {
            return None;
        }
        let now = self.recent.iter().map(|(acked, _)| acked).sum::<f64>() / time;
        let rate = self.rate.map_or(now, |rate| KEEPS * rate + (1.0 - KEEPS) * now);
        self.rate = Some(rate);
        let holds = rate * rtt_min / report.mss.as_f64().max(1.0);
        let step = step(report.min_rtt).as_secs_f64();
        let cutoff = (step / (CUTOFF_ROUNDS * rtt_min.max(1e-4))).min(CUTOFF_MAX);
        let filters = match self.filters {
            Some(filters) if filters.cutoff == cutoff => self.filters.insert(filters),
            _ => self.filters.insert(Filters::new(cutoff, holds)),
        };
        Some(filters.next(holds))
    }
}

impl Filters {
    fn new(cutoff: f64, from: f64) -> Self {
        let (low, high) = (Chebyshev::new(Pass::Low, cutoff), Chebyshev::new(Pass::High, cutoff));
        Self { cutoff, from, low, high, slow: 0.0, grew: false }
    }

    fn next(&mut self, holds: f64) -> Sample {
        let x = holds - self.from;
        let slow = self.low.next(x);
        let grew = slow > self.slow;
        let turned = grew != self.grew;
        (self.slow, self.grew) = (slow, grew);
        Sample { fast: self.high.next(x), slow, turned }
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::{Bytes, Time};

    use super::*;
    use crate::testing::silent;

    /// Reports of a path of 40 ms, four a round trip, that hold so many packets each.
    fn feed(signal: &mut Signal, count: u32, holds: impl Fn(u32) -> f64) -> Vec<Sample> {
        let mss = Bytes::new(1_500);
        let report = |k: u32| Report {
            acked: mss.mul_f64(holds(k) / 4.0),
            min_rtt: Duration::from_millis(40),
            mss,
            ..silent(Time::ZERO, Duration::from_millis(10), "copa")
        };
        (0..count).filter_map(|k| signal.on_report(&report(k))).collect()
    }

    #[test]
    fn samples_are_a_quarter_of_a_round_trip_apart_and_four_milliseconds_at_least() {
        let steps = [1, 16, 20, 200].map(|rtt| step(Duration::from_millis(rtt)));
        assert_eq!(steps, [4, 4, 5, 50].map(Duration::from_millis));
    }

    #[test]
    fn the_rate_is_that_of_a_round_trip_smoothed() {
        let mut signal = Signal::default();
        assert_eq!(feed(&mut signal, 3, |_| 80.0).len(), 0, "no round trip yet");
        feed(&mut signal, 50, |_| 80.0);
        assert!((signal.rate() - 3e6).abs() < 1.0, "{}", signal.rate());
        // A quarter of the window is new, and a fifth of that counts.
        feed(&mut signal, 1, |_| 160.0);
        assert!((signal.rate() / 3e6 - 1.05).abs() < 1e-6, "{}", signal.rate());
    }

    /// A wave turns twice a period.
    #[test]
    fn turns_are_counted() {
        let wave = |k: u32| 80.0 + 20.0 * (core::f64::consts::PI * f64::from(k) / 48.0).sin();
        let samples = feed(&mut Signal::default(), 1_960, wave);
        let turns = samples[1_000..].iter().filter(|s| s.turned).count();
        assert!((19..=21).contains(&turns), "{turns} in ten periods");
    }

    /// A swing of 24 round trips is slow, and one of two is fast, of which smoothing leaves little.
    #[test]
    fn swings_are_told_by_their_period() {
        let swings = |rounds: f64| {
            let wave = |k: u32| {
                80.0 + 20.0 * (core::f64::consts::PI * f64::from(k) / (2.0 * rounds)).sin()
            };
            let samples = feed(&mut Signal::default(), 2_000, wave);
            let most = |of: fn(&Sample) -> f64| {
                let late = samples[1_000..].iter().map(of);
                late.clone().fold(f64::MIN, f64::max) - late.fold(f64::MAX, f64::min)
            };
            (most(|s| s.fast), most(|s| s.slow))
        };
        let (fast, slow) = swings(24.0);
        assert!(slow > 30.0 && fast < 1.0, "{fast} {slow}");
        let (fast, slow) = swings(2.0);
        assert!(fast > 2.0 * slow && fast < 8.0, "{fast} {slow}");
    }
}
