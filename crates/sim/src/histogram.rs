//! Histograms of durations with a bounded relative error.

use trimtab_qoe::Sketch;
use trimtab_units::Duration;

/// A [`Sketch`] of durations in microseconds, up to an hour. Cheap to clone, so that worlds fork
/// fast; the mean is exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    micros: Sketch,
    sum_ns: u128,
}

impl Histogram {
    /// Counts a duration.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        self.micros.record(value.as_micros());
        self.sum_ns += u128::from(value.as_nanos());
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.micros.count()
    }

    /// The mean; zero when nothing was counted.
    pub fn mean(&self) -> Duration {
        let mean = self.sum_ns.checked_div(u128::from(self.count())).unwrap_or(0);
        Duration::from_nanos(mean as u64)
    }

    /// The value below which a share `q` of the durations lies; zero when nothing was counted.
    pub fn quantile(&self, q: f64) -> Duration {
        let micros = self.micros.quantile(q).unwrap_or(0.0);
        Duration::from_nanos((micros * 1e3) as u64)
    }

    /// The durations in microseconds.
    pub fn micros(&self) -> &Sketch {
        &self.micros
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_two_percent() {
        let mut h = Histogram::default();
        for us in 1..=100_000 {
            h.record(Duration::from_micros(us));
        }
        assert_eq!(h.mean(), Duration::from_nanos(50_000_500));
        for q in [0.01, 0.1, 0.5, 0.9, 0.99, 1.0] {
            let value = h.quantile(q).as_secs_f64() * 1e6;
            assert!((value / (q * 1e5) - 1.0).abs() < 0.02, "{q}: {value}");
        }
    }
}
