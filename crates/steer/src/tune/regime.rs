//! One regime of the bandwidth, for Bayesian change-point detection (Adams & MacKay 2007, §2).
//!
//! Within a regime samples are normal with unknown mean and variance (a normal-gamma prior), so the
//! next one is Student-t distributed.

/// What is believed of a regime of which nothing was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prior {
    /// How many samples its mean is worth.
    pub(super) kappa: f64,
    /// Shape and rate of the gamma distribution of the precision.
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

/// Normal-gamma posterior of one regime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regime {
    pub(super) mean: f64,
    kappa: f64,
    alpha: f64,
    beta: f64,
    /// `ln Γ(α + ½) − ln Γ(α)`, which only changes with α.
    gamma_ratio: f64,
}

impl Regime {
    /// A regime around this mean, of which nothing was seen.
    pub(super) fn new(mean: f64, prior: Prior) -> Self {
        let Prior { kappa, alpha, beta } = prior;
        Self { mean, kappa, alpha, beta, gamma_ratio: gamma_ratio(alpha) }
    }

    /// Density of the next sample: Student-t with 2α degrees of freedom.
    pub(super) fn density(&self, x: f64) -> f64 {
        let scale = self.beta * (self.kappa + 1.0) / (self.alpha * self.kappa);
        let t = (x - self.mean) * (x - self.mean) / (2.0 * self.alpha * scale);
        let log = self.gamma_ratio
            - 0.5 * libm::log(2.0 * core::f64::consts::PI * self.alpha * scale)
            - (self.alpha + 0.5) * libm::log1p(t);
        libm::exp(log)
    }

    /// What is believed after this sample.
    pub(super) fn update(&self, x: f64) -> Self {
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::testing::Noise;

    const PRIOR: Prior = Prior { kappa: 0.05, alpha: 1.0, beta: 0.0225 };

    /// The sum of a regime's densities over all samples within so many of its mean.
    fn whole(regime: &Regime, reach: f64) -> f64 {
        let steps = 200_000;
        let at = |i: i32| regime.mean + reach * (f64::from(2 * i + 1) / f64::from(steps) - 1.0);
        (0..steps).map(|i| regime.density(at(i)) * 2.0 * reach / f64::from(steps)).sum()
    }

    /// A probability is 1 over all that may happen, before anything is known and after.
    #[test]
    fn the_next_sample_is_one_of_all() {
        let mut regime = Regime::new(2.0, PRIOR);
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
        let regime = samples.iter().fold(Regime::new(0.0, PRIOR), |regime, x| regime.update(*x));
        let mean = samples.iter().sum::<f64>() / 2_000.0;
        let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2_000.0;
        assert!((regime.mean - mean).abs() < 1e-3, "{regime:?} {mean}");
        assert!((regime.beta / regime.alpha / variance - 1.0).abs() < 0.02, "{regime:?}");
        assert!((whole(&regime, 10.0) - 1.0).abs() < 1e-3, "{}", whole(&regime, 10.0));
    }
}
