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

    /// A value of the standard normal distribution.
    pub(super) fn normal(&mut self) -> f64 {
        normal(&mut self.0)
    }

    /// From 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// Between −1 and 1.
    pub(super) fn symmetric(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_have_length_one_and_every_one_is_alike() {
        let (mut sum, mut squares, mut product) = ([0.0; 3], [0.0; 3], 0.0);
        for seed in 0..20_000 {
            let point = direction(seed, 3);
            assert!((point.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-9, "{point:?}");
            for k in 0..3 {
                sum[k] += point[k] / 2e4;
                squares[k] += point[k] * point[k] / 2e4;
            }
            product += point[0] * point[1] / 2e4;
        }
        assert!(sum.iter().all(|mean| mean.abs() < 0.02), "{sum:?}");
        assert!(squares.iter().all(|mean| (mean - 1.0 / 3.0).abs() < 0.01), "{squares:?}");
        assert!(product.abs() < 0.01, "{product}");
    }

    #[test]
    fn one_number_gives_one_direction() {
        assert_eq!(direction(7, 4), direction(7, 4));
        assert_ne!(direction(7, 4), direction(8, 4));
        assert!(direction(7, 0).is_empty());
        assert!((direction(7, 1)[0].abs() - 1.0).abs() < 1e-12);
    }

    /// Of the standard normal distribution 68.3 % lie within one deviation and 95.4 % within two.
    #[test]
    fn normal_values_are_normal() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let values: Vec<f64> = (0..40_000).map(|_| normal(&mut random)).collect();
        let within = |d: f64| values.iter().filter(|x| x.abs() < d).count() as f64 / 4e4;
        assert!((within(1.0) - 0.683).abs() < 0.01, "{}", within(1.0));
        assert!((within(2.0) - 0.954).abs() < 0.006, "{}", within(2.0));
        let above = values.iter().filter(|x| **x > 0.0).count() as f64 / 4e4;
        assert!((above - 0.5).abs() < 0.01, "{above}");
    }

    #[test]
    fn symmetric_draws_fill_the_range_evenly() {
        let mut draws = Draws::new(3);
        let values: Vec<f64> = (0..20_000).map(|_| draws.symmetric()).collect();
        assert!(values.iter().all(|x| (-1.0..=1.0).contains(x)));
        for tenth in 0..10 {
            let low = -1.0 + 0.2 * f64::from(tenth);
            let count = values.iter().filter(|x| (low..low + 0.2).contains(x)).count();
            assert!((1_800..2_200).contains(&count), "{low}: {count}");
        }
    }
}
