//! The published prototype's change-point detection: the run length that is most likely
//! (Adams & MacKay 2007, Algorithm 1) falls.

use alloc::vec::Vec;

use crate::tune::change_point::{REGIME, merge_oldest};
use crate::tune::regime::{Prior, Regime};

/// A regime of which nothing is known: the mean is about 0 Mbit/s, and the variance may be anything.
const PRIOR: Prior = Prior { kappa: 1.0, alpha: 0.1, beta: 0.01 };
/// A regime is new while it is at most so many samples old.
const NEW: usize = 10;

/// The detector of one connection.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    /// Run-length probabilities, youngest first, and the regime each one has seen.
    runs: Vec<(f64, Regime)>,
    /// The most likely run lengths at the last sample and the one before.
    before: [usize; 2],
}

impl Detector {
    pub(super) fn new() -> Self {
        Self { runs: alloc::vec![(1.0, Regime::new(0.0, PRIOR))], before: [0; 2] }
    }

    /// Takes a bandwidth in Mbit/s. If a new regime has begun, how many samples it has.
    pub(super) fn on_sample(&mut self, mbps: f64) -> Option<usize> {
        if !mbps.is_finite() {
            return None;
        }
        let hazard = 1.0 / REGIME;
        let mut new = 0.0;
        for (probability, regime) in &mut self.runs {
            let joint = *probability * regime.density(mbps);
            new += joint * hazard;
            *probability = joint * (1.0 - hazard);
            *regime = regime.update(mbps);
        }
        self.runs.insert(0, (new, Regime::new(0.0, PRIOR)));
        merge_oldest(&mut self.runs);
        let total: f64 = self.runs.iter().map(|(p, _)| p).sum();
        if total <= 0.0 || !total.is_finite() {
            *self = Self::new();
            return None;
        }
        for (probability, _) in &mut self.runs {
            *probability /= total;
        }
        let likely =
            |best: usize, i: usize| if self.runs[i].0 > self.runs[best].0 { i } else { best };
        let now = (1..self.runs.len()).fold(0, likely);
        let [older, last] = self.before;
        self.before = [last, now];
        (last < now && now < older && now <= NEW).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    fn around(noise: &mut Noise, mean: f64) -> f64 {
        mean * (1.0 + 0.1 * noise.normal())
    }

    /// expected.md X10: a doubling of the mean (standard deviation 10%) within 10 samples.
    #[test]
    fn a_change_of_the_mean_by_two_is_seen_within_ten_samples() {
        let mut seen = [0; 2];
        for seed in 0..200 {
            for (of, factor) in seen.iter_mut().zip([2.0, 0.5]) {
                let (mut noise, mut detector) = (Noise(seed), Detector::new());
                (0..100).for_each(|_| {
                    detector.on_sample(around(&mut noise, 10.0));
                });
                let found = (1..=10)
                    .any(|_| detector.on_sample(around(&mut noise, factor * 10.0)).is_some());
                *of += u32::from(found);
            }
        }
        assert!(seen.iter().all(|&of| of >= 190), "{seen:?} of 200");
    }

    /// expected.md X10: hardly an alarm in 500 stationary samples.
    #[test]
    fn a_stationary_link_raises_few_alarms() {
        let alarms = |seed: u64| {
            let (mut noise, mut detector) = (Noise(1_000 + seed), Detector::new());
            (0..500).filter(|_| detector.on_sample(around(&mut noise, 10.0)).is_some()).count()
        };
        let alarms: usize = (0..100).map(alarms).sum();
        assert!(alarms <= 50, "{alarms} alarms in 100 runs of 500 samples");
    }

    /// The regime that is found is as old as the change.
    #[test]
    fn the_new_regime_has_the_samples_since_the_change() {
        let (mut noise, mut detector) = (Noise(7), Detector::new());
        (0..60).for_each(|_| {
            detector.on_sample(around(&mut noise, 10.0));
        });
        let found: Vec<_> = (1..=20)
            .filter_map(|k| detector.on_sample(around(&mut noise, 40.0)).map(|age| (k, age)))
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 <= 10 && found[0].1.abs_diff(found[0].0) <= 1, "{found:?}");
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut detector = Detector::new();
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(detector.on_sample(x), None);
        }
        assert_eq!(detector.runs.len(), 1);
    }
}
