//! Cells, metrics and bands: how far the simulator may be from the measurements, and how far it is.

use serde::Serialize;

/// What is compared, with the band that the median over the cells has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Goodput of all flows; band 5%.
    Goodput,
    /// Mean time of full packets in the queue; band 15% or 2 ms, whichever is more.
    QueueDelay,
    /// Retransmitted packets of all packets sent; band half a percentage point.
    Retransmits,
    /// Median request completion time of a session; band 10%.
    CompletionTime,
}

impl Metric {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 4] =
        [Self::Goodput, Self::QueueDelay, Self::Retransmits, Self::CompletionTime];

    /// Its name and unit.
    pub fn label(self) -> &'static str {
        match self {
            Self::Goodput => "goodput, Mbit/s",
            Self::QueueDelay => "mean queueing delay, ms",
            Self::Retransmits => "retransmissions, %",
            Self::CompletionTime => "median completion time, ms",
        }
    }

    /// The band as text.
    pub fn band(self) -> &'static str {
        match self {
            Self::Goodput => "5%",
            Self::QueueDelay => "15% or 2 ms",
            Self::Retransmits => "0.5 points",
            Self::CompletionTime => "10%",
        }
    }

    /// Half the width of the band around a measured value, in the metric's unit.
    fn tolerance(self, measured: f64) -> f64 {
        match self {
            Self::Goodput => 0.05 * measured,
            Self::QueueDelay => (0.15 * measured).max(2.0),
            Self::Retransmits => 0.5,
            Self::CompletionTime => 0.1 * measured,
        }
    }
}

/// Mean and range of the repeats of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Mean of the repeats.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Standard deviation of a single repeat; zero where there is only one.
    pub deviation: f64,
    /// How many.
    pub repeats: usize,
}

impl Spread {
    /// That of some values; all zero without any.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let repeats = values.len();
        if repeats == 0 {
            return Self { mean: 0.0, min: 0.0, max: 0.0, deviation: 0.0, repeats };
        }
        let mean = values.iter().sum::<f64>() / repeats as f64;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        Self {
            mean,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            deviation: (squares / repeats.saturating_sub(1).max(1) as f64).sqrt(),
            repeats,
        }
    }
}

/// One metric of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What.
    pub metric: Metric,
    /// On Linux over Mahimahi.
    pub measured: Spread,
    /// In the simulator.
    pub simulated: Spread,
}

impl Comparison {
    /// The difference of the means in bands: 1 is at the edge. Positive when the simulator has more.
    pub fn bands(&self) -> f64 {
        let difference = self.simulated.mean - self.measured.mean;
        difference / self.metric.tolerance(self.measured.mean).max(f64::MIN_POSITIVE)
    }

    /// Whether chance may explain the difference: it is no more than two standard errors of the
    /// difference of the means. Two repeats say little of how much runs differ, so where the
    /// simulator's runs, of which there are more, differ more, theirs counts for both.
    pub fn within_spread(&self) -> bool {
        let difference = (self.simulated.mean - self.measured.mean).abs();
        let deviation = self.measured.deviation.max(self.simulated.deviation);
        let ours = self.simulated.deviation.powi(2) / self.simulated.repeats.max(1) as f64;
        let theirs = deviation.powi(2) / self.measured.repeats.max(1) as f64;
        difference <= 2.0 * (ours + theirs).sqrt()
    }
}

/// A cell of the campaign: its repeats, and the simulator's runs with several seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Its name, as in the measurements.
    pub name: String,
    /// The algorithm, or several joined by `+`.
    pub cca: String,
    /// Which kind of cell: see [`Group`].
    pub group: Group,
    /// Its metrics.
    pub comparisons: Vec<Comparison>,
}

/// Kinds of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// One bulk flow without random loss.
    Bulk,
    /// One bulk flow with random loss.
    BulkLossy,
    /// The same, with the losses of the measured runs.
    BulkReplayed,
    /// Several bulk flows that share the link.
    BulkSeveral,
    /// The download workload on a recorded trace.
    Download,
    /// One bulk flow without random loss, over Trimtab's own emulator instead of Mahimahi.
    Emulated,
}

impl Group {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 6] = [
        Self::Bulk,
        Self::BulkLossy,
        Self::BulkReplayed,
        Self::BulkSeveral,
        Self::Download,
        Self::Emulated,
    ];

    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Bulk => "bulk, no random loss",
            Self::BulkLossy => "bulk, 1% random loss, drawn anew",
            Self::BulkReplayed => "bulk, 1% random loss, the measured losses",
            Self::BulkSeveral => "bulk, several flows",
            Self::Download => "downloads",
            Self::Emulated => "bulk, over Trimtab's emulator",
        }
    }
}

/// The median; zero without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => 0.0,
        _ if n % 2 == 1 => values[n / 2],
        _ => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(metric: Metric, measured: f64, simulated: f64) -> Comparison {
        Comparison { metric, measured: Spread::of([measured]), simulated: Spread::of([simulated]) }
    }

    #[test]
    fn bands_are_those_of_the_goal() {
        let bands = |metric, a, b| comparison(metric, a, b).bands();
        assert!((bands(Metric::Goodput, 10.0, 10.5) - 1.0).abs() < 1e-9);
        assert!((bands(Metric::QueueDelay, 4.0, 2.0) + 1.0).abs() < 1e-9, "2 ms");
        assert!((bands(Metric::QueueDelay, 100.0, 115.0) - 1.0).abs() < 1e-9, "15%");
        assert!((bands(Metric::Retransmits, 0.0, 0.5) - 1.0).abs() < 1e-9);
        assert!((bands(Metric::CompletionTime, 200.0, 240.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn repeats_that_differ_excuse_a_difference_and_equal_ones_do_not() {
        let pair = |measured: &[f64]| Comparison {
            metric: Metric::Goodput,
            measured: Spread::of(measured.iter().copied()),
            simulated: Spread::of([1.2; 8]),
        };
        assert!(pair(&[0.8, 1.2]).within_spread());
        assert!(!pair(&[1.0, 1.01]).within_spread());
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
