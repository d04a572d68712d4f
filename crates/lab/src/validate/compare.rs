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
    /// How many.
    pub repeats: usize,
}

impl Spread {
    /// That of some values; all zero without any.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut min, mut max, mut sum, mut repeats) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0);
        for value in values {
            min = min.min(value);
            max = max.max(value);
            sum += value;
            repeats += 1;
        }
        if repeats == 0 {
            return Self { mean: 0.0, min: 0.0, max: 0.0, repeats };
        }
        Self { mean: sum / repeats as f64, min, max, repeats }
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

    /// Whether the repeats leave open that both have the same mean: the difference is no more than
    /// the sum of two standard errors of each side, estimated from the ranges (for n normal values
    /// the range is about `d2(n)` standard deviations).
    pub fn within_spread(&self) -> bool {
        let difference = (self.simulated.mean - self.measured.mean).abs();
        let (a, b) = (standard_error(&self.measured), standard_error(&self.simulated));
        difference <= 2.0 * a.hypot(b)
    }
}

/// Standard error of the mean from the range (Tippett's factors `d2`, as in control charts).
fn standard_error(spread: &Spread) -> f64 {
    const D2: [f64; 9] = [1.128, 1.693, 2.059, 2.326, 2.534, 2.704, 2.847, 2.970, 3.078];
    let n = spread.repeats;
    let Some(at) = n.checked_sub(2) else { return 0.0 };
    let d2 = D2.get(at).copied().unwrap_or(3.5);
    (spread.max - spread.min) / d2 / (n as f64).sqrt()
}

/// A cell of the campaign: its repeats beside the runs of the simulator with several seeds.
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
    /// Several bulk flows that share the link.
    BulkSeveral,
    /// The download workload on a recorded trace.
    Download,
}

impl Group {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 4] = [Self::Bulk, Self::BulkLossy, Self::BulkSeveral, Self::Download];

    /// Its name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Bulk => "bulk, no random loss",
            Self::BulkLossy => "bulk, 1% random loss",
            Self::BulkSeveral => "bulk, several flows",
            Self::Download => "downloads",
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
