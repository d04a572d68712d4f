//! Independent random generators from one seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What a generator is for. Each purpose has its own numbers, so switching one impairment on does not
/// change what another one does to the same packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Loss = 1,
    Jitter = 2,
    Reorder = 3,
    Cellular = 4,
    Wifi = 5,
    Mark = 6,
    Place = 7,
}

/// The generator of one purpose. The same on every machine.
pub(crate) fn generator(seed: u64, purpose: Purpose) -> Pcg64Mcg {
    // An odd multiplier keeps different seeds different; the seeding function then mixes all bits.
    Pcg64Mcg::seed_from_u64(seed ^ (purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A uniform value from `low` to `high`.
pub(crate) fn uniform(random: &mut Pcg64Mcg, low: f64, high: f64) -> f64 {
    low + (high - low) * random.random::<f64>()
}

/// A value of the standard normal distribution (Box and Muller's polar form, the second value unused).
pub(crate) fn normal(random: &mut Pcg64Mcg) -> f64 {
    loop {
        let [x, y] = [0; 2].map(|_| uniform(random, -1.0, 1.0));
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * libm::log(square) / square).sqrt();
        }
    }
}

/// An exponential value with this mean.
pub(crate) fn exponential(random: &mut Pcg64Mcg, mean: f64) -> f64 {
    -mean * libm::log(1.0 - random.random::<f64>())
}
