//! Bayesian online change-point detection (Adams & MacKay 2007) on the bandwidth (Mortise §3.3).
//!
//! After each sample it holds the probability of every run length: how many samples ago the present
//! regime began. Within a regime the logarithm of the bandwidth is normal with unknown mean and
//! variance (a normal-gamma prior), so the next sample is Student-t distributed. Logarithms, because
//! links of a megabit and of a gigabit vary alike in proportion.

use alloc::vec::Vec;

/// Expected length of a regime, in samples: the hazard is its inverse.
const REGIME: f64 = 250.0;
/// Run lengths beyond this are one.
const RUNS_MAX: usize = 200;
/// A change is declared when the regime is this young …
const YOUNG: usize = 8;
/// … with this probability, …
const CERTAIN: f64 = 0.9;
/// … and something older than that by so many samples is known to have changed.
const OLDER: usize = 12;

/// Prior of a new regime: its mean is worth this many samples …
const KAPPA: f64 = 0.05;
/// … and its variance is about 0.15², the relative variation of a steady link between round trips.
const ALPHA: f64 = 1.0;
const BETA: f64 = 0.0225;

/// The detector of one connection.
#[derive(Clone, Debug)]
pub struct ChangePoint {
    /// Run-length probabilities, youngest first, and the regime each one has seen.
    runs: Vec<(f64, Regime)>,
}

/// Normal-gamma posterior of one regime.
#[derive(Clone, Copy, Debug)]
struct Regime {
    mean: f64,
    kappa: f64,
    alpha: f64,
    beta: f64,
    /// `ln Γ(α + ½) − ln Γ(α)`, which only changes with α.
    gamma_ratio: f64,
}

impl Regime {
    fn new(mean: f64) -> Self {
        Self { mean, kappa: KAPPA, alpha: ALPHA, beta: BETA, gamma_ratio: gamma_ratio(ALPHA) }
    }

    /// Density of the next sample: Student-t with 2α degrees of freedom.
    fn density(&self, x: f64) -> f64 {
        let scale = self.beta * (self.kappa + 1.0) / (self.alpha * self.kappa);
        let t = (x - self.mean) * (x - self.mean) / (2.0 * self.alpha * scale);
        let log = self.gamma_ratio
            - 0.5 * libm::log(2.0 * core::f64::consts::PI * self.alpha * scale)
            - (self.alpha + 0.5) * libm::log1p(t);
        libm::exp(log)
    }

    fn update(&self, x: f64) -> Self {
        let kappa = self.kappa + 1.0;
        let alpha = self.alpha + 0.5;
        Self {
            mean: (self.kappa * self.mean + x) / kappa,
            kappa,
            alpha,
            beta: self.beta + self.kappa * (x - self.mean) * (x - self.mean) / (2.0 * kappa),
            gamma_ratio: gamma_ratio(alpha),
        }
    }
}

fn gamma_ratio(alpha: f64) -> f64 {
    libm::lgamma(alpha + 0.5) - libm::lgamma(alpha)
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
            self.runs.push((1.0, Regime::new(x).update(x)));
            return false;
        }
        // A regime that begins with this sample is judged by the prior around what is known.
        let prior = Regime::new(self.runs.last().map_or(x, |(_, regime)| regime.mean));
        let hazard = 1.0 / REGIME;
        let mut new = 0.0;
        for (probability, regime) in &mut self.runs {
            let joint = *probability * regime.density(x);
            new += *probability * hazard;
            *probability = joint * (1.0 - hazard);
            *regime = regime.update(x);
        }
        self.runs.insert(0, (new * prior.density(x), prior.update(x)));
        self.merge_oldest();
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

    /// The oldest runs are as good as one.
    fn merge_oldest(&mut self) {
        while self.runs.len() > RUNS_MAX {
            if let Some((probability, _)) = self.runs.pop()
                && let Some(last) = self.runs.last_mut()
            {
                last.0 += probability;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deterministic noise: standard normal by the sum of twelve uniforms.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

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

    /// The sum of a regime's densities over all samples within so many of its mean.
    fn whole(regime: &Regime, reach: f64) -> f64 {
        let steps = 200_000;
        let at = |i: i32| regime.mean + reach * (f64::from(2 * i + 1) / f64::from(steps) - 1.0);
        (0..steps).map(|i| regime.density(at(i)) * 2.0 * reach / f64::from(steps)).sum()
    }

    /// A probability is 1 over all that may happen, before anything is known and after.
    #[test]
    fn the_next_sample_is_one_of_all() {
        let mut regime = Regime::new(2.0);
        assert!((whole(&regime, 100.0) - 1.0).abs() < 1e-3, "{}", whole(&regime, 100.0));
        for x in [1.9, 2.1, 2.0, 2.2, 1.8, 2.0, 2.1, 1.9] {
            regime = regime.update(x);
        }
        assert!((whole(&regime, 20.0) - 1.0).abs() < 1e-3, "{}", whole(&regime, 20.0));
        let at = |off: f64| regime.density(regime.mean + off);
        assert!((at(0.1) / at(-0.1) - 1.0).abs() < 1e-9 && at(0.1) > at(0.2) && at(0.0) > at(0.1));
    }

    /// Mean and variance of many samples are theirs, whatever the prior was.
    #[test]
    fn a_regime_learns_mean_and_variance() {
        let mut noise = Noise(5);
        let samples: Vec<f64> = (0..2_000).map(|_| 3.0 + 0.5 * noise.normal()).collect();
        let regime = samples.iter().fold(Regime::new(0.0), |regime, x| regime.update(*x));
        let mean = samples.iter().sum::<f64>() / 2_000.0;
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2_000.0;
        assert!((regime.mean - mean).abs() < 1e-3, "{regime:?} {mean}");
        assert!((regime.beta / regime.alpha / variance - 1.0).abs() < 0.02, "{regime:?}");
        assert!((whole(&regime, 10.0) - 1.0).abs() < 1e-3, "{}", whole(&regime, 10.0));
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
