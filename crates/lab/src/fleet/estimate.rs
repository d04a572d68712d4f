//! A figure of a fleet with its interval.

use rand::RngExt;
use serde::Serialize;

use super::connection::generator;

/// How often aggregates are drawn for an interval.
const RESAMPLES: usize = 400;

/// A figure with its 95% interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A figure of aggregates 0 to `count`, and where 95% of it lie when they are drawn again, with
/// replacement. They are of so many fleets, one after the other and equally large: fleets are drawn
/// first, then aggregates of each, since those of one fleet hear of each other.
pub(super) fn resampled(
    fleets: usize,
    count: usize,
    figure: impl Fn(&[usize]) -> Option<f64>,
) -> Option<Estimate> {
    let all: Vec<usize> = (0..count).collect();
    let value = figure(&all)?;
    let mut random = generator(count as u64, &[12, fleets as u64]);
    let size = count / fleets.max(1);
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let mut picks = Vec::with_capacity(count);
            for _ in 0..fleets {
                let fleet = random.random_range(0..fleets);
                picks.extend((0..size).map(|_| fleet * size + random.random_range(0..size)));
            }
            figure(&picks)
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn.get((share * drawn.len() as f64) as usize).copied();
    Some(Estimate { value, low: at(0.025).unwrap_or(value), high: at(0.975).unwrap_or(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;

    fn mean_of(values: &[f64], picks: &[usize]) -> Option<f64> {
        Some(picks.iter().map(|&i| values[i]).sum::<f64>() / picks.len() as f64)
    }

    #[test]
    fn the_interval_of_a_mean_is_two_standard_errors_wide() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i % 10)).collect();
        let estimate = resampled(1, 100, |picks| mean_of(&values, picks)).unwrap();
        close(estimate.value, 4.5);
        // The standard deviation of 0 to 9 is 2.87: 1.96 · 2.87 / √100 on each side.
        assert!((0.45..0.68).contains(&(4.5 - estimate.low)), "{estimate:?}");
        assert!((0.45..0.68).contains(&(estimate.high - 4.5)), "{estimate:?}");
    }

    #[test]
    fn fleets_that_differ_count_as_few_and_not_as_their_aggregates() {
        let values: Vec<f64> = (0..100).map(|i| f64::from(i / 25)).collect();
        let width = |fleets| {
            let e = resampled(fleets, 100, |picks| mean_of(&values, picks)).unwrap();
            e.high - e.low
        };
        assert!(width(4) > 3.0 * width(1), "{} and {}", width(4), width(1));
    }
}
