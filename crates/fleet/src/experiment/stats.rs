//! The few statistics that experiments need; quantiles are those of statrs.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::report::Effect;
use crate::aggregate::mix;

/// The share of experiments without any effect in which an interval misses zero, looks before the end included.
pub(super) const ALPHA: f64 = 0.05;
/// What of it is spent on looks before the end, all together (Haybittle 1971, Peto et al. 1976:
/// hardly anything, so that the last look costs next to nothing). Shared by Bonferroni, it holds
/// however the looks depend on each other.
pub(super) const ALPHA_BEFORE: f64 = 0.005;
/// The power at which an effect counts as one that would have been found.
const POWER: f64 = 0.8;
/// Draws of a randomisation test.
pub(super) const DRAWS: u64 = 999;

/// An estimate that is about normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    /// Its standard error.
    pub(super) error: f64,
    /// Degrees of freedom of the standard error, at least 1.
    pub(super) freedom: f64,
}

impl Estimate {
    /// The two-sided interval that misses the truth with probability `alpha`.
    pub(super) fn effect(&self, alpha: f64) -> Effect {
        let reach = quantile(1.0 - alpha / 2.0, self.freedom) * self.error;
        Effect { value: self.value, low: self.value - reach, high: self.value + reach }
    }

    /// The least effect that would be found with a power of 80%, at this error.
    pub(super) fn detectable(&self, alpha: f64) -> f64 {
        (quantile(1.0 - alpha / 2.0, self.freedom) + quantile(POWER, self.freedom)) * self.error
    }

    /// In units of its error; infinite where there is none.
    pub(super) fn studentised(&self) -> f64 {
        if self.value == 0.0 { 0.0 } else { self.value / self.error }
    }

    /// The probability of a value as far from 0, where the truth is 0.
    pub(super) fn p(&self) -> f64 {
        let far = self.studentised().abs();
        let t = StudentsT::new(0.0, 1.0, self.freedom).expect("there are degrees of freedom");
        (2.0 * t.sf(far)).min(1.0)
    }
}

/// A quantile of Student's t.
fn quantile(p: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.max(1.0)).expect("there are degrees of freedom").inverse_cdf(p)
}

/// The share of the error that a look may take: of looks before the end, the same for each.
pub(super) fn alpha_of(over: bool, looks: u32) -> f64 {
    match (over, looks) {
        (true, ..=1) => ALPHA,
        (true, _) => ALPHA - ALPHA_BEFORE,
        (false, looks) => ALPHA_BEFORE / f64::from(looks.max(2) - 1),
    }
}

/// Mean and unbiased variance.
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, squares / (n - 1.0))
}

/// The mean of independent values, with its interval of 95% by Student's t; none of fewer than two.
pub fn mean_effect(values: &[f64]) -> Option<Effect> {
    if values.len() < 2 {
        return None;
    }
    let (value, variance) = moments(values);
    let n = values.len() as f64;
    let error = (variance / n).sqrt();
    Some(Estimate { value, error, freedom: n - 1.0 }.effect(ALPHA))
}

/// The p-value of a randomisation test: the share of draws with a statistic at least as far from 0,
/// the one that was seen among them.
pub(super) fn randomised(seen: f64, draw: impl FnMut(u64) -> f64) -> f64 {
    // What differs by rounding alone is the same.
    let least = seen.abs() * (1.0 - 1e-9);
    let as_far = (0..DRAWS).map(draw).filter(|drawn| drawn.abs() >= least).count();
    (1 + as_far) as f64 / (1 + DRAWS) as f64
}

/// A coin that falls the same way for the same numbers.
pub(super) fn coin(seed: u64, draw: u64, unit: usize) -> bool {
    mix(mix(seed ^ draw.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ unit as u64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (p, freedom, value) in [
            (0.975, 1.0, 12.706),
            (0.975, 10.0, 2.228),
            (0.8, 10.0, 0.879),
            (0.975, 1e6, 1.960),
            (0.9999, 30.0, 4.234),
        ] {
            let found = quantile(p, freedom);
            assert!((found - value).abs() < 2e-3, "{p} of {freedom}: {found}");
        }
        let estimate = Estimate { value: 2.228, error: 1.0, freedom: 10.0 };
        assert!((estimate.p() - 0.05).abs() < 1e-4);
        assert!(estimate.effect(0.05).low.abs() < 1e-3);
    }

    #[test]
    fn looks_spend_no_more_than_there_is() {
        for looks in 1..50 {
            let spent = alpha_of(true, looks) + f64::from(looks - 1) * alpha_of(false, looks);
            assert!((spent - ALPHA).abs() < 1e-12, "{looks}: {spent}");
        }
    }
}
