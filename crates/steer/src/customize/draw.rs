//! Random directions from a number.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A point on the unit sphere of `dimensions` dimensions, every direction alike (paper 002 §4.2, step 2).
pub(super) fn direction(seed: u64, dimensions: usize) -> Vec<f64> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    loop {
        let point: Vec<f64> = (0..dimensions).map(|_| normal(&mut random)).collect();
        let length = point.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Normal values have no preferred direction; a length of nearly nothing has none at all.
        if length > 1e-6 || dimensions == 0 {
            return point.into_iter().map(|x| x / length).collect();
        }
    }
}

/// Numbers that one number begins.
pub(super) struct Draws(Pcg64Mcg);

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Between −1 and 1.
    pub(super) fn symmetric(&mut self) -> f64 {
        2.0 * self.0.random::<f64>() - 1.0
    }
}

/// A value of the standard normal distribution (Box and Muller's polar form, the second value unused).
fn normal(random: &mut Pcg64Mcg) -> f64 {
    loop {
        let [x, y] = [0; 2].map(|_| 2.0 * random.random::<f64>() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * libm::log(square) / square).sqrt();
        }
    }
}
