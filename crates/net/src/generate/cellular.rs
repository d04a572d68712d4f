//! Cellular-like capacity: regimes that last seconds, fading within them, and outages.
//!
//! The regimes have the statistics that the Mortise paper (appendix A, figure 17) gives for throughput
//! recorded in production: more than 90% of the segments last longer than 3 s and more than 95% less than
//! 17 s; the mean changes by more than 50% between over 80% of consecutive segments, and by at most 245%
//! between 95% of them. A change is counted relative to the earlier segment: |next - previous| / previous.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_units::{Duration, Rate};

use crate::seed::{Purpose, exponential, generator, normal, uniform};
use crate::segments::Segment;
use crate::spread::Spread;
use crate::trace::Trace;

/// How often the rate changes within a segment.
const STEP: Duration = Duration::from_millis(10);

/// The parameters of cellular-like capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct Cellular {
    /// The length of the trace; at least a millisecond. Default 120 s.
    pub duration: Duration,
    /// The least mean rate of a segment. Default 2 Mbit/s.
    pub rate_min: Rate,
    /// The largest mean rate of a segment, at least 12 times the least one: with less room the changes between
    /// segments are smaller than appendix A says. Default 50 Mbit/s.
    pub rate_max: Rate,
    /// The median duration of a segment. Durations are log-normal. Default 7 s.
    pub segment_median: Duration,
    /// The standard deviation of the logarithm of the durations. Default 0.45: 3% of the segments are shorter
    /// than 3 s and 2.5% longer than 17 s.
    pub segment_spread: f64,
    /// The share of changes that are small, below 50%. Default 0.1.
    pub small_changes: f64,
    /// The share of changes that are jumps, up by 245% to 500%. Default 0.02.
    pub jumps: f64,
    /// The standard deviation of the logarithm of the fast fading. Default 0.35.
    pub fading: f64,
    /// How long the fading stays alike (its correlation falls to 1/e). Default 50 ms.
    pub fading_time: Duration,
    /// Outages per minute, at random times. Default 1.
    pub outages_per_minute: f64,
    /// The mean duration of an outage; durations are exponential. Default 200 ms.
    pub outage_mean: Duration,
}

impl Default for Cellular {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(120),
            rate_min: Rate::from_mbps(2.0),
            rate_max: Rate::from_mbps(50.0),
            segment_median: Duration::from_secs(7),
            segment_spread: 0.45,
            small_changes: 0.1,
            jumps: 0.02,
            fading: 0.35,
            fading_time: Duration::from_millis(50),
            outages_per_minute: 1.0,
            outage_mean: Duration::from_millis(200),
        }
    }
}

/// A generated trace, and what it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct CellularTrace {
    /// The trace.
    pub trace: Trace,
    /// Its segments, in order. The last one is cut off by the end of the trace.
    pub segments: Vec<Segment>,
}

impl Cellular {
    /// Generates a trace. The same parameters and seed give the same trace.
    pub fn generate(&self, seed: u64) -> CellularTrace {
        let mut random = generator(seed, Purpose::Cellular);
        let duration = self.duration.max(Duration::from_millis(1));
        let segments = self.segments(duration, &mut random);
        let mut fading = Fading::new(self);
        let mut outages = Outages::new(self, &mut random);
        let mut spread = Spread::default();
        for segment in &segments {
            let mut rest = segment.duration;
            while !rest.is_zero() {
                let step = rest.min(STEP);
                rest -= step;
                let factor = fading.step(&mut random);
                let is_out = outages.step(step, &mut random);
                let rate = if is_out { Rate::ZERO } else { segment.mean.mul_f64(factor) };
                spread.add(step, rate);
            }
        }
        let trace = spread.finish().expect("the trace lasts a millisecond at least");
        CellularTrace { trace, segments }
    }

    fn segments(&self, duration: Duration, random: &mut Pcg64Mcg) -> Vec<Segment> {
        let [low, high] = [self.rate_min, self.rate_max]
            .map(|rate| libm::log(rate.bytes_per_sec().max(1) as f64));
        let mut level = uniform(random, low, high);
        let mut rest = duration;
        let mut segments = Vec::new();
        while !rest.is_zero() {
            let length =
                self.segment_median.mul_f64(libm::exp(self.segment_spread * normal(random)));
            // In whole steps, and never none.
            let steps = length.as_nanos().div_ceil(STEP.as_nanos()).max(1);
            let length = rest.min(STEP * steps);
            rest -= length;
            let mean = Rate::from_bytes_per_sec_f64(libm::exp(level));
            segments.push(Segment { duration: length, mean });
            level = self.next_level(level, low, high, random);
        }
        segments
    }

    /// The logarithm of the rate after `level`. Up or down is drawn such that a low rate tends up and a high
    /// one down, and the other way is taken when there is no room that way.
    fn next_level(&self, level: f64, low: f64, high: f64, random: &mut Pcg64Mcg) -> f64 {
        let is_up = random.random::<f64>() * (high - low) < high - level;
        let kind = random.random::<f64>();
        let place = random.random::<f64>();
        // The range of the factor to the next rate, upwards and downwards. Downwards a change is at
        // most 100%, so "more than 50%" is to less than half.
        let (up, down) = if kind < self.small_changes {
            ((1.1, 1.45), (0.6, 0.9))
        } else if kind < self.small_changes + self.jumps {
            ((3.6, 6.0), (0.15, 0.25))
        } else {
            ((1.6, 3.3), (0.28, 0.46))
        };
        let step = |(from, to): (f64, f64)| {
            let [from, to] = [from, to].map(libm::log);
            from + (to - from) * place
        };
        let [first, second] = if is_up { [up, down] } else { [down, up] }.map(|r| level + step(r));
        let fits = |level: &f64| (low..=high).contains(level);
        [first, second].into_iter().find(fits).unwrap_or_else(|| first.clamp(low, high))
    }
}

/// Log-normal fading with mean one and exponential correlation.
struct Fading {
    deviation: f64,
    correlation: f64,
    state: Option<f64>,
}

impl Fading {
    fn new(parameters: &Cellular) -> Self {
        let correlation = libm::exp(-STEP.ratio(parameters.fading_time));
        Self { deviation: parameters.fading, correlation, state: None }
    }

    fn step(&mut self, random: &mut Pcg64Mcg) -> f64 {
        let fresh = normal(random);
        let keep = self.correlation;
        let state = self.state.map_or(fresh, |old| keep * old + (1.0 - keep * keep).sqrt() * fresh);
        self.state = Some(state);
        libm::exp(self.deviation * (state - self.deviation / 2.0))
    }
}

/// Outages at the times of a Poisson process.
struct Outages {
    gap_mean_s: f64,
    length_mean_s: f64,
    /// The time until the next outage begins, or until this one ends.
    rest_s: f64,
    is_out: bool,
}

impl Outages {
    fn new(parameters: &Cellular, random: &mut Pcg64Mcg) -> Self {
        let gap_mean_s = 60.0 / parameters.outages_per_minute;
        let length_mean_s = parameters.outage_mean.as_secs_f64();
        Self { gap_mean_s, length_mean_s, rest_s: exponential(random, gap_mean_s), is_out: false }
    }

    /// Whether the next step is within an outage.
    fn step(&mut self, step: Duration, random: &mut Pcg64Mcg) -> bool {
        self.rest_s -= step.as_secs_f64();
        if self.rest_s < 0.0 {
            self.is_out = !self.is_out;
            let mean = if self.is_out { self.length_mean_s } else { self.gap_mean_s };
            self.rest_s = exponential(random, mean);
        }
        self.is_out
    }
}
