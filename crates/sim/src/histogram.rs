//! Histograms of durations with a bounded relative error.

use trimtab_units::Duration;

/// Counts in bins that grow by 1/64 of their octave: values are right to 1.6%, from a microsecond
/// to an hour, in 8 KB. Cheap to clone, so that worlds fork fast; the mean is exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u32>,
    total: u64,
    sum_ns: u128,
}

/// Bins per octave, as a power of two.
const STEPS_LOG2: u32 = 6;

impl Histogram {
    /// Counts a duration.
    pub fn record(&mut self, value: Duration) {
        let bin = Self::bin(value);
        if bin >= self.counts.len() {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
        self.total += 1;
        self.sum_ns += u128::from(value.as_nanos());
    }

    /// Bins are linear below 64 µs, then 64 an octave.
    fn bin(value: Duration) -> usize {
        let us = value.as_micros().min(1 << 32);
        let octave = (us >> STEPS_LOG2).checked_ilog2().map_or(0, |o| o + 1);
        let shift = octave.saturating_sub(1);
        let base = if octave == 0 { 0 } else { octave << STEPS_LOG2 };
        let step = if octave == 0 { us } else { (us >> shift) - (1 << STEPS_LOG2) };
        (u64::from(base) + step) as usize
    }

    /// The middle of a bin.
    fn value(bin: usize) -> Duration {
        let octave = bin >> STEPS_LOG2;
        let step = (bin & ((1 << STEPS_LOG2) - 1)) as u64;
        let us2 = if octave == 0 {
            2 * step + 1
        } else {
            (2 * ((1 << STEPS_LOG2) + step) + 1) << (octave - 1)
        };
        Duration::from_nanos(us2 * 500)
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The mean; zero when nothing was counted.
    pub fn mean(&self) -> Duration {
        let mean = self.sum_ns.checked_div(u128::from(self.total)).unwrap_or(0);
        Duration::from_nanos(mean as u64)
    }

    /// The value below which a share `q` of the durations lies; zero when nothing was counted.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (q * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bin, &count) in self.counts.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return Self::value(bin);
            }
        }
        Duration::ZERO
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

    #[test]
    fn every_bin_holds_its_own_middle() {
        for bin in 0..1_500 {
            assert_eq!(Histogram::bin(Histogram::value(bin)), bin);
        }
    }
}
