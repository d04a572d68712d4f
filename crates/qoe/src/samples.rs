//! Distributions of throughput, delay and loss: the vectors of Mortise Eq. 4.

use trimtab_units::{Duration, Rate};

use crate::Sketch;

/// What the network gave over a while, as distributions. An empty one stands for a distribution
/// whose only value is that of the operating point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// In kbit/s.
    throughput: Sketch,
    /// In µs.
    delay: Sketch,
    /// In 10⁻⁶.
    loss: Sketch,
}

/// One unit of the loss sketch.
const LOSS_STEP: f64 = 1e-6;

impl Samples {
    /// Counts a throughput. It is kept to the kbit/s.
    pub fn add_throughput(&mut self, rate: Rate) {
        self.throughput.record((rate.mbps() * 1e3) as u64);
    }

    /// Counts a round-trip time as often as this. It is kept to the microsecond.
    pub fn add_delay(&mut self, delay: Duration, times: u32) {
        self.delay.record_many(delay.as_micros(), times);
    }

    /// Counts round-trip times in µs.
    pub fn add_delays(&mut self, delays: &Sketch) {
        self.delay.merge(delays);
    }

    /// Counts a loss ratio, 0 to 1; values outside count as the nearer end. It is kept to 10⁻⁶.
    pub fn add_loss(&mut self, ratio: f64) {
        self.loss.record((ratio.clamp(0.0, 1.0) / LOSS_STEP) as u64);
    }

    /// Counts everything that another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.throughput.merge(&other.throughput);
        self.delay.merge(&other.delay);
        self.loss.merge(&other.loss);
    }
}

#[cfg(feature = "formula")]
impl Samples {
    /// The samples of an axis (0 is `T`, 1 is `D`, 2 is `L`), ascending, each with its weight and
    /// how far it moves while the mean of all of them moves by 1: the increments of Mortise Eq. 4.
    ///
    /// The paper leaves their direction open. Here they are what a congestion control can bring
    /// about: a queue that grows makes every wait longer by the same factor, so a delay moves by
    /// its distance from the least one. Throughputs and losses move in proportion to themselves.
    /// Samples that are all the same move together.
    pub(crate) fn moving(&self, axis: usize, at: f64) -> alloc::vec::Vec<Moving> {
        let (sketch, unit) = match axis {
            0 => (&self.throughput, 1e-3),
            1 => (&self.delay, 1e-6),
            _ => (&self.loss, LOSS_STEP),
        };
        if sketch.count() == 0 {
            return alloc::vec![Moving { value: at, weight: 1.0, speed: 1.0 }];
        }
        let fixed = if axis == 1 { sketch.quantile(0.0).unwrap_or(0.0) } else { 0.0 };
        let total = sketch.count() as f64;
        let moves: f64 = sketch.iter().map(|(v, n)| (v - fixed) * f64::from(n) / total).sum();
        let most = if axis == 2 { 1.0 } else { f64::INFINITY };
        let moving = |(v, n): (f64, u32)| Moving {
            value: (v * unit).min(most),
            weight: f64::from(n) / total,
            speed: if moves > 0.0 { (v - fixed) / moves } else { 1.0 },
        };
        sketch.iter().map(moving).collect()
    }
}

/// A sample of a distribution whose mean moves.
#[cfg(feature = "formula")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving {
    /// Mbit/s, seconds or a ratio.
    pub(crate) value: f64,
    /// Its share of all samples.
    pub(crate) weight: f64,
    /// How far it moves for each unit that the mean moves.
    pub(crate) speed: f64,
}
