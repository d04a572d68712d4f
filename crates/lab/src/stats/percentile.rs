//! Percentiles by linear interpolation.

/// Values in ascending order, NaN left out, ready for any number of percentiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts the values; NaN is left out.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// The values in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }

    /// The value below which `percent` of the values lie, `None` without values.
    ///
    /// Linear interpolation between the two nearest ranks, the smallest value at 0 and the largest
    /// at 100: definition 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996),
    /// which is what NumPy, R and spreadsheets give when not told otherwise. `percent` is clamped
    /// to 0 to 100.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let rank = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
        let below = rank as usize;
        let above = (below + 1).min(last);
        let share = rank - below as f64;
        // Nothing of an infinite neighbour is NaN.
        if share == 0.0 {
            return Some(self.0[below]);
        }
        Some(self.0[below] * (1.0 - share) + self.0[above] * share)
    }
}

/// One percentile of unsorted values, as [`Sorted::percentile`] gives it.
pub fn percentile(values: &[f64], percent: f64) -> Option<f64> {
    Sorted::new(values.iter().copied()).percentile(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_numpy() {
        // numpy.percentile([15, 20, 35, 40, 50], [0, 5, 40, 50, 95, 100])
        let v = [35.0, 20.0, 15.0, 50.0, 40.0];
        for (percent, expected) in
            [(0.0, 15.0), (5.0, 16.0), (40.0, 29.0), (50.0, 35.0), (95.0, 48.0), (100.0, 50.0)]
        {
            let got = percentile(&v, percent).unwrap();
            assert!((got - expected).abs() < 1e-12, "p{percent}: {got} instead of {expected}");
        }
    }

    #[test]
    fn few_values_and_none() {
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(percentile(&[3.0], 5.0), Some(3.0));
        assert_eq!(percentile(&[f64::NAN, 2.0], 95.0), Some(2.0));
        assert_eq!(percentile(&[1.0, 2.0], 500.0), Some(2.0));
        assert_eq!(Sorted::new([1.0, 2.0, 6.0]).mean(), Some(3.0));
        assert_eq!(Sorted::new([]).mean(), None);
    }

    /// A formula such as T / L is infinite where nothing was lost.
    #[test]
    fn percentiles_of_infinite_values_are_numbers() {
        let most = f64::INFINITY;
        assert_eq!(percentile(&[1.0, 2.0, most], 100.0), Some(most));
        assert_eq!(percentile(&[1.0, 2.0, most], 50.0), Some(2.0));
        assert_eq!(percentile(&[-most, 2.0, 3.0], 0.0), Some(-most));
        assert_eq!(percentile(&[-most, 2.0, 3.0], 50.0), Some(2.0));
        assert_eq!(percentile(&[1.0, 2.0, most], 75.0), Some(most), "half way to infinity");
    }
}
