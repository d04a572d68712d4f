//! Models over distributions of throughput, delay and loss (Mortise Eq. 4, corrected).

use core::fmt;
use std::sync::Arc;

use crate::factors::Name;
use crate::formula::expression::Expression;
use crate::formula::jet::Jet;
use crate::formula::{FactorRef, FormulaError, Vocabulary, factor_names, user_names};
use crate::{Factors, Gradient, Hints};

/// What the network gave over a while, as samples in any order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Samples<'a> {
    /// Throughputs in Mbit/s.
    pub throughput_mbps: &'a [f64],
    /// Delays in seconds.
    pub delay_s: &'a [f64],
    /// Loss ratios, 0 to 1.
    pub loss: &'a [f64],
}

/// One of the three kinds of sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Throughput,
    Delay,
    Loss,
}

impl<'a> Samples<'a> {
    fn get(&self, axis: Axis) -> &'a [f64] {
        match axis {
            Axis::Throughput => self.throughput_mbps,
            Axis::Delay => self.delay_s,
            Axis::Loss => self.loss,
        }
    }
    fn with<'b>(self, axis: Axis, samples: &'b [f64]) -> Samples<'b>
    where
        'a: 'b,
    {
        let mut changed: Samples<'b> = self;
        match axis {
            Axis::Throughput => changed.throughput_mbps = samples,
            Axis::Delay => changed.delay_s = samples,
            Axis::Loss => changed.loss = samples,
        }
        changed
    }
}

/// A statistic of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    Mean,
    Deviation,
    /// The percentile, 0 to 100; 0 is the least sample and 100 the largest.
    Percentile(u8),
}

impl Statistic {
    /// Parses `mean`, `std`, `min`, `max`, `p95`.
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "std" => Some(Self::Deviation),
            "min" => Some(Self::Percentile(0)),
            "max" => Some(Self::Percentile(100)),
            _ => {
                let digits = name.strip_prefix('p')?;
                // One spelling per percentile, so `p5` and never `p05` or `p+5`.
                let percent: u8 = digits.parse().ok()?;
                (percent <= 100 && percent.to_string() == digits)
                    .then_some(Self::Percentile(percent))
            }
        }
    }

    /// The statistic of `samples`; NaN without any.
    fn of(self, samples: &[f64]) -> f64 {
        match self {
            Self::Mean => mean(samples),
            Self::Deviation => {
                let mean = mean(samples);
                let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
                (squares / samples.len() as f64).sqrt()
            }
            Self::Percentile(percent) => percentile(samples, f64::from(percent)),
        }
    }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// The percentile by linear interpolation between the two nearest ranks.
fn percentile(samples: &[f64], percent: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let rank = percent / 100.0 * last as f64;
    let below = rank as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    low + (high - low) * (rank - below as f64)
}

/// A variable of a formula over statistics.
#[derive(Clone, Copy, Debug)]
enum Variable {
    Statistic(Axis, Statistic),
    Factor(FactorRef),
}

impl Variable {
    fn find(name: &str, user: &[Name]) -> Option<Self> {
        statistic(name)
            .map(|(axis, statistic)| Self::Statistic(axis, statistic))
            .or_else(|| FactorRef::find(name, user).map(Self::Factor))
    }
}

/// `T_mean`, `D_p95`, …; a bare `T`, `D` or `L` is the mean.
fn statistic(name: &str) -> Option<(Axis, Statistic)> {
    let (axis, rest) = name.split_at_checked(1)?;
    let axis = match axis {
        "T" => Axis::Throughput,
        "D" => Axis::Delay,
        "L" => Axis::Loss,
        _ => return None,
    };
    let statistic = match rest.strip_prefix('_') {
        Some(which) => Statistic::from_name(which)?,
        None if rest.is_empty() => Statistic::Mean,
        None => return None,
    };
    Some((axis, statistic))
}

/// A score of samples, given as a function.
type Score = dyn Fn(&Samples<'_>, &Factors) -> f64 + Send + Sync;

/// A QoE model over distributions, for metrics such as jitter or a tail percentile that one
/// operating point does not determine (Mortise §3.2, "statistical metrics").
///
/// Either a formula over the statistics `T_…`, `D_…` and `L_…` with `mean`, `std`, `min`, `max` or
/// `p0` to `p100` (`T`, `D` and `L` alone are means), or any function of the samples.
///
/// The hints follow Eq. 3 with finite differences over the distributions: every sample of one kind
/// moves by the same small step. Eq. 4 as printed divides one such ratio by another; the throughput
/// cancels, what is left compares delay with loss, and it does not reduce to Eq. 3 as the text says
/// it does. This one does.
///
/// ```
/// use trimtab_qoe::{DistributionModel, Factors, Samples};
///
/// let call = DistributionModel::parse("ln(T_mean) - 5*D_p95 - 20*D_std", &[]).unwrap();
/// let samples = Samples {
///     throughput_mbps: &[3.0, 4.0, 5.0],
///     delay_s: &[0.04, 0.05, 0.12],
///     loss: &[0.0],
/// };
/// let hints = call.hints(&samples, &Factors::new()).unwrap();
/// // More delay for every packet raises the percentile, and leaves the spread alone: 5 / (1/4).
/// assert!((hints.lambda - 20.0).abs() < 1e-6);
/// ```
#[derive(Clone)]
pub struct DistributionModel {
    text: String,
    score: Arc<Score>,
}

impl fmt::Debug for DistributionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributionModel").field("text", &self.text).finish_non_exhaustive()
    }
}

impl DistributionModel {
    /// Parses a formula over statistics; everything else is as in [`crate::Formula`].
    ///
    /// # Errors
    /// Says at which column the text stops being a formula.
    pub fn parse(text: &str, factors: &[&str]) -> Result<Self, FormulaError> {
        let user = user_names(factors, &|name| statistic(name).is_some())?;
        let known = || {
            let statistics = "T_mean, T_std, T_min, T_max, T_p0 to T_p100, the same of D and L";
            core::iter::once(statistics.to_owned()).chain(factor_names(&user)).collect()
        };
        let is_known = |name: &str| Variable::find(name, &user).is_some();
        let vocabulary = Vocabulary { is_known: &is_known, known: &known, is_statistic: None };
        let (expression, names) = Expression::parse(text, &vocabulary)?;
        let variables: Vec<Variable> =
            names.into_iter().filter_map(|name| Variable::find(name, &user)).collect();
        let score = move |samples: &Samples<'_>, factors: &Factors| {
            let slots: Vec<Jet> = variables
                .iter()
                .map(|variable| match variable {
                    Variable::Statistic(axis, statistic) => statistic.of(samples.get(*axis)),
                    Variable::Factor(factor) => factor.get(factors).unwrap_or(f64::NAN),
                })
                .map(Jet::constant)
                .collect();
            expression.eval(&slots).value
        };
        Ok(Self { text: text.into(), score: Arc::new(score) })
    }

    /// A model from any function of the samples, where more is better; `name` stands for it in
    /// messages.
    pub fn from_fn(
        name: &str,
        score: impl Fn(&Samples<'_>, &Factors) -> f64 + Send + Sync + 'static,
    ) -> Self {
        Self { text: name.into(), score: Arc::new(score) }
    }

    /// The formula, or the name of the function.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The score; NaN without samples of a kind that the model reads, or when a factor is not set.
    pub fn score(&self, samples: &Samples<'_>, factors: &Factors) -> f64 {
        (self.score)(samples, factors)
    }

    /// How the score changes when all throughputs, all delays, or all loss ratios move together.
    pub fn gradient(&self, samples: &Samples<'_>, factors: &Factors) -> Gradient {
        Gradient {
            throughput: self.slope(samples, factors, Axis::Throughput),
            delay: self.slope(samples, factors, Axis::Delay),
            loss: self.slope(samples, factors, Axis::Loss),
        }
    }

    /// The preference hints (Mortise Eq. 4, corrected as this type says), or `None` without a score.
    pub fn hints(&self, samples: &Samples<'_>, factors: &Factors) -> Option<Hints> {
        if self.score(samples, factors).is_nan() {
            return None;
        }
        self.gradient(samples, factors).hints()
    }

    /// The central difference over a step of every sample of one kind; one-sided where a sample
    /// would leave its range, which for all kinds begins at 0, and for loss ends at 1.
    fn slope(&self, samples: &Samples<'_>, factors: &Factors, axis: Axis) -> f64 {
        let base = samples.get(axis);
        if base.is_empty() {
            // Nothing can be read from no samples, so nothing depends on them.
            return 0.0;
        }
        let step = STEP_RELATIVE * mean(base).abs().max(STEP_SCALE_MIN);
        let down_leaves = base.iter().any(|x| x - step < 0.0);
        let up_leaves = axis == Axis::Loss && base.iter().any(|x| x + step > 1.0);
        let up = if up_leaves { 0.0 } else { step };
        let down = if down_leaves && !up_leaves { 0.0 } else { step };
        let moved = |by: f64| {
            let shifted: Vec<f64> = base.iter().map(|x| x + by).collect();
            self.score(&samples.with(axis, &shifted), factors)
        };
        (moved(up) - moved(-down)) / (up + down)
    }
}

/// Size of a finite step, relative to the mean of the samples: near the cube root of the precision
/// of a double, where rounding and curvature together weigh least.
const STEP_RELATIVE: f64 = 1e-5;
/// The least mean that a step is relative to (1 kbit/s, 1 ms, 0.1 % of loss), for samples near zero.
const STEP_SCALE_MIN: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics() {
        let x = [4.0, 1.0, 2.0, 3.0];
        let of = |name: &str| Statistic::from_name(name).unwrap().of(&x);
        assert_eq!((of("mean"), of("min"), of("max")), (2.5, 1.0, 4.0));
        assert_eq!((of("p0"), of("p50"), of("p100")), (1.0, 2.5, 4.0));
        assert!((of("p90") - 3.7).abs() < 1e-12);
        assert_eq!(of("std"), 1.25f64.sqrt());
        assert!(Statistic::Mean.of(&[]).is_nan() && Statistic::Percentile(5).of(&[]).is_nan());
        assert_eq!(Statistic::Percentile(95).of(&[7.0]), 7.0);
    }

    #[test]
    fn names_of_statistics() {
        assert_eq!(statistic("D_p95"), Some((Axis::Delay, Statistic::Percentile(95))));
        assert_eq!(statistic("L"), Some((Axis::Loss, Statistic::Mean)));
        for bad in ["", "D_", "D_p", "D_p101", "D_p05", "D_p+5", "Dp95", "R_mean", "é", "D_P95"] {
            assert_eq!(statistic(bad), None, "{bad}");
        }
    }
}
