//! How soon after a step δ is where it should be.

use trimtab_lab::result::Series;
use trimtab_units::Duration;

use crate::oracle::Oracle;

/// How near to the oracle's δ counts as there.
const NEAR: f64 = 0.2;

/// Seconds after the step; nothing when it did not come to it before the run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrival {
    /// Until δ was within a fifth of the oracle's.
    pub(crate) near: Option<f64>,
    /// Until δ was one that is as good as the oracle's.
    pub(crate) good: Option<f64>,
}

impl Arrival {
    pub(crate) fn of(series: &Series, step: Duration, oracle: &Oracle) -> Self {
        let bin = series.bin_ms / 1000.0;
        let first = |is_there: &dyn Fn(f64) -> bool| {
            let ends = series.delta.iter().enumerate().map(|(i, d)| ((i + 1) as f64 * bin, *d));
            ends.map(|(end, delta)| (end - step.as_secs_f64(), delta))
                // What a bin shows is as of its end.
                .find(|&(after, delta)| after > 1e-6 && is_there(delta))
                .map(|(after, _)| after)
        };
        let (low, high) = oracle.as_good;
        Self {
            near: first(&|delta| (delta / oracle.best - 1.0).abs() <= NEAR),
            good: first(&|delta| (low..=high).contains(&delta)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bin_behind_the_step_that_is_there_counts() {
        let oracle = Oracle { best: 0.1, as_good: (0.05, 0.2) };
        let delta = vec![0.1, 0.1, f64::NAN, 0.3, 0.17, 0.11, 0.5];
        let series = Series { bin_ms: 100.0, delta, ..Series::default() };
        let arrival = Arrival::of(&series, Duration::from_millis(200), &oracle);
        assert!((arrival.good.unwrap() - 0.3).abs() < 1e-9, "{arrival:?}");
        assert!((arrival.near.unwrap() - 0.4).abs() < 1e-9, "{arrival:?}");
        let late = Arrival::of(&series, Duration::from_millis(600), &oracle);
        assert_eq!(late, Arrival { near: None, good: None });
    }
}
