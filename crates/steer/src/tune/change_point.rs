//! Bayesian online change-point detection (Adams & MacKay 2007) on the bandwidth (Mortise §3.3).
//!
//! After each sample it holds the probability of every run length: how many samples ago the present
//! regime began. Within a regime the logarithm of the bandwidth is normal with unknown mean and
//! variance (a normal-gamma prior), so the next sample is Student-t distributed. Logarithms, because
//! links of a megabit and of a gigabit vary alike in proportion.

use alloc::vec::Vec;

use super::regime::{Prior, Regime};

/// Expected length of a regime, in samples: the hazard is its inverse.
pub(super) const REGIME: f64 = 250.0;
/// Run lengths beyond this are one.
const RUNS_MAX: usize = 200;
/// A change is declared when the regime is this young …
const YOUNG: usize = 8;
/// … with this probability, …
const CERTAIN: f64 = 0.9;
/// … and something older than that by so many samples is known to have changed.
const OLDER: usize = 12;

/// A new regime: its variance is about 0.15², the relative variation of a steady link between round
/// trips.
const PRIOR: Prior = Prior { kappa: 0.05, alpha: 1.0, beta: 0.0225 };

/// The detector of one connection.
#[derive(Clone, Debug)]
pub struct ChangePoint {
    /// Run-length probabilities, youngest first, and the regime each one has seen.
    runs: Vec<(f64, Regime)>,
}

impl Default for ChangePoint {
    fn default() -> Self {
        Self::new()
    }
}

impl ChangePoint {
    /// A detector that has seen nothing.
    pub fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// Takes a bandwidth, in any unit; values that are not positive are ignored. Whether a new
    /// regime has begun; then everything older is forgotten.
    pub fn on_sample(&mut self, bandwidth: f64) -> bool {
        if bandwidth.is_nan() || bandwidth <= 0.0 || bandwidth.is_infinite() {
            return false;
        }
        let x = libm::log(bandwidth);
        if self.runs.is_empty() {
            self.runs.push((1.0, Regime::new(x, PRIOR).update(x)));
            return false;
        }
        // A regime that begins with this sample is judged by the prior around what is known.
        let mean = self.runs.last().map_or(x, |(_, regime)| regime.mean);
        let prior = Regime::new(mean, PRIOR);
        let hazard = 1.0 / REGIME;
        let mut new = 0.0;
        for (probability, regime) in &mut self.runs {
            let joint = *probability * regime.density(x);
            new += *probability * hazard;
            *probability = joint * (1.0 - hazard);
            *regime = regime.update(x);
        }
        self.runs.insert(0, (new * prior.density(x), prior.update(x)));
        merge_oldest(&mut self.runs);
        let total: f64 = self.runs.iter().map(|(p, _)| p).sum();
        if total <= 0.0 || !total.is_finite() {
            *self = Self::new();
            return true; // nothing that was thought possible happened
        }
        for (probability, _) in &mut self.runs {
            *probability /= total;
        }
        let young: f64 = self.runs.iter().take(YOUNG).map(|(p, _)| p).sum();
        let changed = young > CERTAIN && self.runs.len() >= YOUNG + OLDER;
        if changed {
            self.runs.truncate(YOUNG);
        }
        changed
    }
}

/// The oldest runs are as good as one.
pub(super) fn merge_oldest(runs: &mut Vec<(f64, Regime)>) {
    while runs.len() > RUNS_MAX {
        if let Some((probability, _)) = runs.pop()
            && let Some(last) = runs.last_mut()
        {
            last.0 += probability;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    /// expected.md X10: a doubling of the mean (standard deviation 10%) within 10 samples.
    #[test]
    fn a_doubling_is_seen_within_ten_samples() {
        let mut missed = 0;
        for seed in 0..200 {
            for factor in [2.0, 0.5] {
                let mut noise = Noise(seed);
                let mut detector = ChangePoint::new();
                for _ in 0..100 {
                    detector.on_sample(10.0 * (1.0 + 0.1 * noise.normal()));
                }
                let seen = (1..=10)
                    .any(|_| detector.on_sample(factor * 10.0 * (1.0 + 0.1 * noise.normal())));
                missed += u32::from(!seen);
            }
        }
        // A false alarm just before leaves too little known for another one.
        assert!(missed <= 4, "{missed} of 400");
    }

    /// expected.md X10: hardly an alarm in 500 stationary samples.
    #[test]
    fn a_stationary_link_raises_few_alarms() {
        let mut alarms = 0;
        for seed in 0..100 {
            let mut noise = Noise(1_000 + seed);
            let mut detector = ChangePoint::new();
            for _ in 0..500 {
                alarms += u32::from(detector.on_sample(10.0 * (1.0 + 0.1 * noise.normal())));
            }
        }
        assert!(alarms <= 10, "{alarms} alarms in 100 runs of 500 samples");
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut detector = ChangePoint::new();
        for x in [f64::NAN, -1.0, 0.0, f64::INFINITY] {
            assert!(!detector.on_sample(x));
        }
        assert!(detector.runs.is_empty());
    }

    #[test]
    fn the_probabilities_of_all_run_lengths_are_one() {
        let (mut noise, mut detector) = (Noise(9), ChangePoint::new());
        for k in 1..=400 {
            detector.on_sample(10.0 * (1.0 + 0.05 * noise.normal()));
            let total: f64 = detector.runs.iter().map(|(p, _)| p).sum();
            assert!((total - 1.0).abs() < 1e-9, "{k}: {total}");
            assert!(detector.runs.len() <= RUNS_MAX, "{k}");
        }
        assert_eq!(detector.runs.len(), RUNS_MAX);
        // A regime that goes on is old.
        let young: f64 = detector.runs.iter().take(YOUNG).map(|(p, _)| p).sum();
        assert!(young < 0.2, "{young}");
    }

    #[test]
    fn a_change_is_declared_once_and_forgets_what_was_before() {
        let (mut noise, mut detector) = (Noise(3), ChangePoint::new());
        let mut sample = |detector: &mut ChangePoint, mean: f64| {
            detector.on_sample(mean * (1.0 + 0.02 * noise.normal()))
        };
        assert!(!(0..100).any(|_| sample(&mut detector, 10.0)));
        let seen = (0..20).filter(|_| sample(&mut detector, 30.0)).count();
        assert_eq!(seen, 1);
        assert!(detector.runs.len() < 30, "{}", detector.runs.len());
        assert!(!(0..100).any(|_| sample(&mut detector, 30.0)));
    }

    /// A rate in bit/s changes as one in Mbit/s does.
    #[test]
    fn the_unit_of_the_bandwidth_does_not_matter() {
        let changes = |unit: f64| {
            let (mut noise, mut detector) = (Noise(11), ChangePoint::new());
            let mean = |k: i32| if k / 60 % 2 == 0 { 10.0 } else { 25.0 };
            let seen = |k: &i32| detector.on_sample(unit * mean(*k) * (1.0 + 0.1 * noise.normal()));
            (0..300).filter(seen).collect::<Vec<_>>()
        };
        let changes_1 = changes(1.0);
        assert!(changes_1.len() >= 3, "{changes_1:?}");
        assert_eq!(changes_1, changes(1e6));
    }
}
