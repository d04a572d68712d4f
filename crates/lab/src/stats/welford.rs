//! Mean and variance in one pass.

/// Mean and variance of a stream of values without storing them, in Welford's form (Technometrics
/// 1962), which loses no digits when the mean is large and the variance small.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Welford {
    n: u64,
    mean: f64,
    m2: f64,
}

impl Welford {
    /// Takes a value in.
    pub fn push(&mut self, value: f64) {
        self.n += 1;
        let from_old_mean = value - self.mean;
        self.mean += from_old_mean / self.n as f64;
        self.m2 += from_old_mean * (value - self.mean);
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.n
    }

    /// The mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then_some(self.mean)
    }

    /// The sample variance (divisor n − 1); `None` with fewer than two values.
    pub fn variance(&self) -> Option<f64> {
        (self.n > 1).then(|| self.m2 / (self.n - 1) as f64)
    }

    /// The sample standard deviation; `None` with fewer than two values.
    pub fn std_dev(&self) -> Option<f64> {
        self.variance().map(libm::sqrt)
    }
}

impl Extend<f64> for Welford {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        values.into_iter().for_each(|v| self.push(v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_survives_a_large_mean() {
        // The values 4, 7, 13, 16 have mean 10 and sample variance 30, wherever they are shifted to.
        for shift in [0.0, 1e9] {
            let mut w = Welford::default();
            w.extend([4.0, 7.0, 13.0, 16.0].map(|v| v + shift));
            assert_eq!(w.count(), 4);
            assert_eq!(w.mean(), Some(10.0 + shift));
            assert_eq!(w.variance(), Some(30.0));
        }
    }

    #[test]
    fn too_few_values() {
        let mut w = Welford::default();
        assert_eq!((w.mean(), w.variance()), (None, None));
        w.push(2.0);
        assert_eq!((w.mean(), w.std_dev()), (Some(2.0), None));
    }
}
