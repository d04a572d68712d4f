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

    /// Uniform in [low, high).
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// In [low, high), its logarithm uniform. Both ends are positive.
    pub(crate) fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }
}
