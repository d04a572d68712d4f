//! What a decision goes by, and what it is judged by: the measurements since the decision before.

use trimtab_units::{Bytes, Duration, Rate};

use crate::Report;
use crate::select::features::{Feature, RATE, SIZE, TIME, feature};

/// How many numbers a decision goes by.
pub const FEATURES_LEN: usize = 7;
/// The numbers that a decision goes by: one per entry of [`FEATURES`], scaled.
pub type Inputs = [f32; FEATURES_LEN];
/// A decision needs so many acknowledgements (`staticCount` of the published code).
pub const ACKS_MIN: u64 = 20;
/// Intervals in which the price of a queue is relaxed, by half as much in each as in the one before.
const RELAXED: u32 = 9;

/// The inputs in their order. All but the first are of the time since the decision before.
pub static FEATURES: [Feature; FEATURES_LEN] = [
    feature("min_rtt", "s", TIME, "lowest round-trip time of the connection"),
    feature("mdev_rtt", "s", TIME, "standard deviation of the round-trip times"),
    feature("mean_rtt", "s", TIME, "their mean"),
    feature("max_rtt", "s", TIME, "the highest of them"),
    feature("throughput", "bit/s", RATE, "bytes acknowledged per time"),
    feature("lost", "bytes", SIZE, "bytes declared lost"),
    feature("mean_pacing_rate", "bit/s", RATE, "mean of window over smoothed round-trip time"),
];

/// The place of the feature of this name in the inputs.
pub fn feature_index(name: &str) -> Option<usize> {
    FEATURES.iter().position(|f| f.name == name)
}

/// Sums up a connection's reports since the decision before. It allocates nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    length: Duration,
    acked: Bytes,
    lost: Bytes,
    min_rtt: Duration,
    srtt: Duration,
    max_rtt: Duration,
    acks: u64,
    /// Sums over the round-trip samples, in s and s².
    rtt_sum: f64,
    rtt_squares: f64,
    /// Sum over the reports, each by its acknowledgements, in bit/s.
    pacing_sum: f64,
    pacing_max: Rate,
}

/// What was measured between two decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// How long it was.
    pub length: Duration,
    /// Acknowledgements with a round-trip time.
    pub acks: u64,
    /// Lowest round-trip time of the connection.
    pub min_rtt: Duration,
    /// Standard deviation of the round-trip times.
    pub mdev_rtt: Duration,
    /// Their mean; without any, the smoothed one.
    pub mean_rtt: Duration,
    /// The highest of them.
    pub max_rtt: Duration,
    /// Bytes acknowledged per time.
    pub throughput: Rate,
    /// Bytes declared lost.
    pub lost: Bytes,
    /// Mean pacing rate, an acknowledgement as good as another.
    pub mean_pacing_rate: Rate,
    /// The highest pacing rate.
    pub max_pacing_rate: Rate,
}

impl Interval {
    /// Begins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a report.
    pub fn on_report(&mut self, report: &Report) {
        self.length += report.interval;
        self.acked += report.acked;
        self.lost += report.lost;
        (self.min_rtt, self.srtt) = (report.min_rtt, report.srtt);
        self.max_rtt = self.max_rtt.max(report.rtt_max.unwrap_or_default());
        let n = report.rtt_samples as f64;
        self.acks += report.rtt_samples;
        if let Some(mean) = report.rtt_mean {
            let mean = mean.as_secs_f64();
            self.rtt_sum += n * mean;
            self.rtt_squares += n * (mean * mean + report.rtt_variance);
        }
        if !report.srtt.is_zero() {
            // What Linux paces by but for its factors of 1.2 and 2, and what a window comes to for who does not pace.
            let pacing = report.window / report.srtt;
            self.pacing_sum += n * pacing.bits_per_sec();
            self.pacing_max = self.pacing_max.max(pacing);
        }
    }

    /// What it has come to.
    pub fn measured(&self) -> Measured {
        let n = self.acks.max(1) as f64;
        let mean = self.rtt_sum / n;
        let variance = (self.rtt_squares / n - mean * mean).max(0.0);
        let (mean_rtt, max_rtt) = if self.acks == 0 {
            (self.srtt, self.srtt)
        } else {
            (Duration::from_secs_f64(mean), self.max_rtt)
        };
        let mean_pacing = Rate::from_bytes_per_sec_f64(self.pacing_sum / n / 8.0);
        Measured {
            length: self.length,
            acks: self.acks,
            min_rtt: self.min_rtt,
            mdev_rtt: Duration::from_secs_f64(libm::sqrt(variance)),
            mean_rtt,
            max_rtt,
            throughput: per(self.acked, self.length),
            lost: self.lost,
            mean_pacing_rate: mean_pacing,
            max_pacing_rate: self.pacing_max,
        }
    }
}

impl Measured {
    /// Whether it is enough to decide by.
    pub fn is_enough(&self) -> bool {
        self.acks >= ACKS_MIN
    }

    /// As the inputs of a decision.
    pub fn inputs(&self) -> Inputs {
        let quantities = [
            self.min_rtt.as_secs_f64(),
            self.mdev_rtt.as_secs_f64(),
            self.mean_rtt.as_secs_f64(),
            self.max_rtt.as_secs_f64(),
            self.throughput.bits_per_sec(),
            self.lost.as_f64(),
            self.mean_pacing_rate.bits_per_sec(),
        ];
        core::array::from_fn(|i| FEATURES[i].scale.apply(quantities[i]))
    }

    /// What the interval was worth, 1 for one that delivered all the time at the rate `scale`
    /// without a loss or a queue: the label that models learn. `number` counts the connection's
    /// intervals from 0.
    ///
    /// (throughput − loss)·min/(rtt·`scale`), where rtt is the mean round-trip time, or min where
    /// it is less than β·min. β goes down from 512 to 1 over the first intervals, so that slow
    /// start may have its queue. `scale` must be the same for all that are compared: the highest
    /// pacing rate that any of them had.
    pub fn reward(&self, scale: Rate, number: u32) -> f64 {
        let min = self.min_rtt.as_secs_f64();
        let mean = self.mean_rtt.as_secs_f64();
        let relaxation = f64::from(1u32 << (RELAXED - number.min(RELAXED)));
        let rtt = if mean < min * relaxation { min } else { mean };
        let price = rtt * scale.bits_per_sec();
        if price <= 0.0 {
            return 0.0;
        }
        let loss = per(self.lost, self.length);
        (self.throughput.bits_per_sec() - loss.bits_per_sec()) * min / price
    }
}

/// A rate; of no time, none.
fn per(bytes: Bytes, time: Duration) -> Rate {
    if time.is_zero() { Rate::default() } else { bytes / time }
}
