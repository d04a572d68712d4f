//! How far a reward is off by chance of which connections there were.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_qoe::{AggregateFormula, StatisticKind};

use crate::{Sketch, Summary};

/// Each interval counts so much less with every later one.
const KEEP: f64 = 0.99;

/// What one connection adds to the variance of a reward, by all intervals until now.
///
/// An interval's own variance is no measure of how far to trust it: one in which nobody stalled, of
/// a reward that charges for stalls, would look as if it were exact, and would count for most. So
/// what tells a large interval from a small one is how many connections it had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    weight: f64,
    variance: f64,
}

impl Spread {
    /// Whether nothing is known.
    pub(crate) fn is_new(&self) -> bool {
        *self == Self::default()
    }

    /// The variance of a reward of a single connection; none until some interval had one.
    pub(crate) fn per_connection(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.variance)
    }

    /// The standard error of the formula's value in an interval with so many connections; none until
    /// some interval had a variance.
    pub(crate) fn take(&mut self, formula: &AggregateFormula, summary: &Summary) -> Option<f64> {
        if let Some(variance) = per_connection(formula, summary) {
            self.weight = self.weight * KEEP + 1.0;
            self.variance += (variance - self.variance) / self.weight;
        }
        let connections = summary.connections() as f64;
        (self.weight > 0.0 && connections > 0.0).then(|| (self.variance / connections).sqrt())
    }
}

/// The variance of a formula's value, times the number of connections: by the delta method, the sum
/// over all samples of the square of what each one moves the value by. Of one name that is exact to
/// first order, whatever the formula reads of it. Names count as independent, since no sketch says
/// which values were of the same connection. Samples of one connection count as all alike. `None`
/// of a single connection, and where the formula has no slope.
fn per_connection(formula: &AggregateFormula, summary: &Summary) -> Option<f64> {
    let connections = summary.connections() as f64;
    let slopes = formula.gradient(|statistic| summary.statistic(statistic));
    let mut read: BTreeMap<&str, Vec<(StatisticKind, f64)>> = BTreeMap::new();
    for (statistic, slope) in formula.statistics().iter().zip(slopes) {
        read.entry(&statistic.of).or_default().push((statistic.kind, slope));
    }
    let mut variance = 0.0;
    for (name, read) in read {
        let sketch = summary.get(name)?;
        let samples = sketch.len() as f64;
        let of_one = (samples / connections).max(1.0);
        let independent = samples / of_one;
        if independent < 2.0 {
            return None;
        }
        let moves: Vec<Moves> = read
            .iter()
            .map(|&(kind, slope)| Moves::new(sketch, kind, slope))
            .collect::<Option<_>>()?;
        let square = |(value, count): (f64, u64)| {
            let moved: f64 = moves.iter().map(|moves| moves.by(value)).sum();
            count as f64 * moved * moved
        };
        let sum: f64 = sketch.values().map(square).sum();
        // As many degrees of freedom as there are samples but one.
        variance += of_one * sum * independent / (independent - 1.0);
    }
    Some(variance * connections).filter(|variance| variance.is_finite())
}

/// By how much one sample more moves a formula's value (an influence function: Hampel, JASA 69,
/// 1974), where the number of samples is chance, too.
enum Moves {
    /// By this much for each sample, and by `per_unit` for each unit of its value.
    Line { each: f64, per_unit: f64 },
    /// By one of these, as it lies up to here or above.
    Step { at: f64, below: f64, above: f64 },
}

impl Moves {
    fn new(sketch: &Sketch, kind: StatisticKind, slope: f64) -> Option<Self> {
        let samples = sketch.len() as f64;
        Some(match kind {
            StatisticKind::Count => Self::Line { each: slope, per_unit: 0.0 },
            StatisticKind::Sum => Self::Line { each: 0.0, per_unit: slope },
            StatisticKind::Mean => {
                let per_unit = slope / samples;
                // The mean of the buckets' middles, so that what it moves by is 0 in sum.
                let sum: f64 = sketch.values().map(|(value, count)| value * count as f64).sum();
                Self::Line { each: -per_unit * sum / samples, per_unit }
            }
            StatisticKind::Percentile(percent) => {
                let at = sketch.percentile(f64::from(percent))?;
                // The least and the largest have a sample to one side only.
                let p = (f64::from(percent) / 100.0).clamp(0.5 / samples, 1.0 - 0.5 / samples);
                // How values spread there: between the ranks one deviation to each side (Woodruff,
                // JASA 47, 1952).
                let deviation = (p * (1.0 - p) / samples).sqrt();
                let (low, high) = ((p - deviation).max(0.0), (p + deviation).min(1.0));
                let spread = sketch.percentile(100.0 * high)? - sketch.percentile(100.0 * low)?;
                let per_rank = slope * spread / (high - low) / samples;
                Self::Step { at, below: (p - 1.0) * per_rank, above: p * per_rank }
            }
        })
    }

    fn by(&self, value: f64) -> f64 {
        match *self {
            Self::Line { each, per_unit } => each + per_unit * value,
            Self::Step { at, below, above } => {
                if value <= at {
                    below
                } else {
                    above
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn formula(text: &str) -> AggregateFormula {
        AggregateFormula::parse(text, &["throughput", "rtt", "loss"]).unwrap()
    }

    /// Connections with skewed throughputs, round-trip times next to evenly spread, and losses of
    /// which most are none.
    fn interval(connections: u64, random: &mut Pcg64Mcg) -> Summary {
        let mut summary = Summary::new(connections);
        let mut draw = |of: fn(f64) -> f64| -> Sketch {
            Sketch::of((0..connections).map(|_| of(random.random::<f64>())).collect::<Vec<_>>())
        };
        let throughput = draw(|u| -8.0 * (1.0 - u).ln());
        let rtt = draw(|u| 0.02 + 0.1 * u);
        let loss = draw(|u| if u < 0.8 { 0.0 } else { 0.3 * (u - 0.8) });
        for (name, sketch) in [("throughput", throughput), ("rtt", rtt), ("loss", loss)] {
            summary.set(name, sketch).unwrap();
        }
        summary
    }

    fn deviation(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
    }

    /// The error that is stated is that by which values of the same network differ.
    #[test]
    fn errors_are_those_of_many_intervals() {
        for (text, connections, off) in [
            ("mean(throughput)", 20, 0.1),
            ("mean(throughput)", 400, 0.1),
            ("mean(throughput) - 10 * p75(rtt) - 100 * mean(loss)", 100, 0.1),
            ("ln(mean(throughput)) - 2 * ln(mean(rtt))", 100, 0.1),
            ("mean(throughput) / p75(rtt)", 400, 0.1),
            ("p50(throughput)", 400, 0.15),
            ("p95(throughput) - p5(rtt)", 400, 0.2),
            ("max(0, mean(loss) - 0.001)", 400, 0.15),
        ] {
            let formula = formula(text);
            let mut random = Pcg64Mcg::seed_from_u64(7);
            let mut spread = Spread::default();
            let (mut values, mut error) = (Vec::new(), None);
            for _ in 0..800 {
                let summary = interval(connections, &mut random);
                values.push(formula.value(|s| summary.statistic(s)));
                error = spread.take(&formula, &summary);
            }
            let (stated, seen) = (error.unwrap(), deviation(&values));
            assert!((stated / seen - 1.0).abs() < off, "{text}, {connections}: {stated} {seen}");
        }
    }

    #[test]
    fn an_interval_in_which_nothing_happened_is_not_exact() {
        let formula = formula("0 - mean(loss)");
        let mut spread = Spread::default();
        let of = |losses: [f64; 4]| {
            let mut summary = Summary::new(4);
            summary.set("loss", Sketch::of(losses)).unwrap();
            summary
        };
        assert_eq!(spread.take(&formula, &of([0.0; 4])), Some(0.0));
        let some = spread.take(&formula, &of([0.0, 0.0, 0.4, 0.0])).unwrap();
        let none = spread.take(&formula, &of([0.0; 4])).unwrap();
        assert!(none > 0.7 * some && some > 0.05, "{none} {some}");
    }

    #[test]
    fn a_single_connection_has_no_variance() {
        let formula = formula("mean(rtt)");
        let mut summary = Summary::new(1);
        summary.set("rtt", Sketch::of([0.1])).unwrap();
        assert_eq!(Spread::default().take(&formula, &summary), None);
        assert_eq!(per_connection(&formula, &Summary::new(9)), None, "nobody measured it");
        // However many samples it has.
        summary.set("rtt", Sketch::of([0.1, 0.2, 0.3])).unwrap();
        assert_eq!(per_connection(&formula, &summary), None);
    }

    proptest! {
        /// What is the same number has the same error, however it is written.
        #[test]
        fn the_mean_is_the_sum_by_the_count(seed in any::<u64>(), connections in 2..200_u64) {
            let summary = interval(connections, &mut Pcg64Mcg::seed_from_u64(seed));
            let of = |text: &str| per_connection(&formula(text), &summary).unwrap();
            let (mean, ratio) = (of("mean(rtt)"), of("sum(rtt) / count(rtt)"));
            // The sum is exact, and the middles of buckets are not.
            prop_assert!((mean / ratio - 1.0).abs() < 0.02, "{} {}", mean, ratio);
        }

        /// A larger unit is a larger error, and a constant none.
        #[test]
        fn errors_have_the_unit_of_rewards(seed in any::<u64>(), by in 0.01..100.0_f64) {
            let summary = interval(50, &mut Pcg64Mcg::seed_from_u64(seed));
            let of = |text: &str| per_connection(&formula(text), &summary).unwrap();
            let (one, more) = (of("p90(rtt)"), of(&format!("7 - {by} * p90(rtt)")));
            prop_assert!((more / (one * by * by) - 1.0).abs() < 1e-9);
        }

        /// Four times as many connections of the same network have half the error.
        #[test]
        fn errors_shrink_with_the_root_of_the_number(seed in any::<u64>(), copies in 2..50_u64) {
            let summary = interval(30, &mut Pcg64Mcg::seed_from_u64(seed));
            let mut many = summary.clone();
            (1..copies).for_each(|_| many.merge(&summary));
            let formula = formula("mean(throughput) - mean(rtt)");
            let (few, more) = (per_connection(&formula, &summary), per_connection(&formula, &many));
            let ratio = more.unwrap() / few.unwrap();
            // 30 connections have 29 degrees of freedom.
            prop_assert!((29.0 / 30.0 - 1e-9..1.0).contains(&ratio), "{}", ratio);
        }
    }
}
