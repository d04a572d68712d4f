//! Random numbers from a seed, the same on every machine.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A seeded source of random numbers. Its transcendental functions come from `libm`, because those
/// of the platform differ in their last bits from machine to machine.
#[derive(Clone, Debug)]
pub(crate) struct Draw(Pcg64Mcg);

impl Draw {
    /// The source of a seed. Sources of different `stream`s of one seed are independent.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        // The golden ratio's odd multiplier spreads streams over the seeds.
        Self(Pcg64Mcg::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// One of 0 to `count` − 1; 0 where there are none.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// Uniform in [low, high).
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// In [low, high), its logarithm uniform. Both ends are positive.
    pub(crate) fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    /// From the standard normal distribution (Box and Muller's transform; one of its two values).
    pub(crate) fn normal(&mut self) -> f64 {
        // 1 − u is in (0, 1], where the logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }

    /// Log-normal with a median and the standard deviation of its logarithm.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.normal())
    }

    /// Pareto with exponent `alpha`, cut to [low, high].
    pub(crate) fn pareto(&mut self, alpha: f64, low: f64, high: f64) -> f64 {
        // The inverse of the cut distribution: P(X > x) runs from 1 at low to 0 at high.
        let cut = libm::pow(low / high, alpha);
        let above = 1.0 - self.unit() * (1.0 - cut);
        low * libm::pow(above, -1.0 / alpha)
    }

    /// From Laplace's distribution of mean 0 and this scale.
    pub(crate) fn laplace(&mut self, scale: f64) -> f64 {
        let u = self.unit() - 0.5;
        // 1 − 2|u| is in [0, 1], and zero once in 2⁵³ draws.
        (-scale * libm::log((1.0 - 2.0 * u.abs()).max(f64::MIN_POSITIVE))).copysign(u)
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let mut draw = Draw::new(7, 0);
        let n = 20_000;
        let normal: Vec<f64> = (0..n).map(|_| draw.normal()).collect();
        let mean = normal.iter().sum::<f64>() / n as f64;
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / n as f64;
        let in_one = normal.iter().filter(|x| x.abs() < 1.0).count() as f64 / n as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04);
        assert!((in_one - 0.6827).abs() < 0.0135, "four standard deviations: {in_one}");
        let below = (0..n).filter(|_| draw.log_uniform(1.0, 100.0) < 10.0).count();
        assert!((below as f64 / n as f64 - 0.5).abs() < 0.0142);
        // P(X > 20) for α = 1.2 on [10, 1000]: (2^-1.2 − 100^-1.2) / (1 − 100^-1.2) = 0.4330.
        let pareto: Vec<f64> = (0..n).map(|_| draw.pareto(1.2, 10.0, 1000.0)).collect();
        let above = pareto.iter().filter(|&&x| x > 20.0).count() as f64 / n as f64;
        assert!(
            (above - 0.4330).abs() < 0.014 && pareto.iter().all(|x| (10.0..=1000.0).contains(x))
        );
    }

    #[test]
    fn the_same_on_every_machine() {
        // Printed once; a change would change every drawn workload.
        let mut draw = Draw::new(1, 2);
        let seen = [draw.unit(), draw.normal(), draw.log_uniform(1.0, 1e6)].map(f64::to_bits);
        let first = [4597240211486633768, 13826575312976004115, 4637412983869944900];
        assert_eq!(seen, first);
        let mut other = Draw::new(1, 3);
        assert_ne!(other.unit().to_bits(), seen[0]);
    }
}
