//! What the link carries, by the throughput at the moments of overuse (libwebrtc
//! `link_capacity_estimator.cc`).

use libm::sqrt;
use trimtab_units::Rate;

/// Weight of a throughput at overuse (`OnOveruseDetected()`).
const WEIGHT: f64 = 0.05;
/// The normalised variance at first, and its range, in kbit/s.
const VARIANCE: (f64, f64) = (0.4, 2.5);
/// The bounds are so many standard deviations away (`UpperBound()`, `LowerBound()`).
const DEVIATIONS: f64 = 3.0;

/// The estimate and how sure it is.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    /// In kbit/s, as the variance is.
    estimate: Option<f64>,
    variance: f64,
}

fn kbps(rate: Rate) -> f64 {
    rate.mbps() * 1e3
}

impl Default for Capacity {
    fn default() -> Self {
        Self { estimate: None, variance: VARIANCE.0 }
    }
}

impl Capacity {
    pub(super) fn get(&self) -> Option<Rate> {
        self.estimate.map(|kbps| Rate::from_mbps(kbps * 1e-3))
    }

    /// Forgets the estimate where a throughput is far above it.
    pub(super) fn doubt_above(&mut self, throughput: Rate) {
        if self.distance(throughput).is_some_and(|d| d > DEVIATIONS) {
            self.estimate = None;
        }
    }

    /// Or far below it.
    pub(super) fn doubt_below(&mut self, throughput: Rate) {
        if self.distance(throughput).is_some_and(|d| d < -DEVIATIONS) {
            self.estimate = None;
        }
    }

    /// How many standard deviations it is above the estimate (`deviation_estimate_kbps()`).
    fn distance(&self, throughput: Rate) -> Option<f64> {
        let estimate = self.estimate?;
        Some((kbps(throughput) - estimate) / sqrt(self.variance * estimate).max(1e-9))
    }

    pub(super) fn on_overuse(&mut self, throughput: Rate) {
        let sample = kbps(throughput);
        let estimate = self.estimate.map_or(sample, |e| (1.0 - WEIGHT) * e + WEIGHT * sample);
        let error = estimate - sample;
        let variance = error * error / estimate.max(1.0);
        self.variance = (1.0 - WEIGHT) * self.variance + WEIGHT * variance;
        self.variance = self.variance.clamp(VARIANCE.0, VARIANCE.1);
        self.estimate = Some(estimate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header's own example: at 500 kbit/s a variance of 0.4 is 14 kbit/s, and 2.5 is 35.
    #[test]
    fn what_is_three_deviations_away_is_another_link() {
        let at = |kbps: f64| Rate::from_mbps(kbps * 1e-3);
        let mut capacity = Capacity::default();
        capacity.on_overuse(at(500.0));
        assert_eq!(capacity.get(), Some(at(500.0)));
        for (above, below) in [(542.0, 458.0), (543.0, 457.0)] {
            let (mut a, mut b) = (capacity.clone(), capacity.clone());
            a.doubt_above(at(above));
            b.doubt_below(at(below));
            let kept = above < 542.5;
            assert_eq!((a.get().is_some(), b.get().is_some()), (kept, kept), "{above}, {below}");
        }
        for _ in 0..100 {
            capacity.on_overuse(at(800.0));
        }
        assert!((capacity.variance - 0.4).abs() < 0.5, "{}", capacity.variance);
        assert!(capacity.get().is_some_and(|rate| (rate.mbps() - 0.8).abs() < 0.01));
    }
}
