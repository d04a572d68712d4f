//! The slope of a line through samples, by least squares, without keeping them.

/// Sums over weighted samples of a `y` at an `x`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slope {
    weight: f64,
    x: f64,
    xx: f64,
    y: f64,
    xy: f64,
}

impl Slope {
    /// Takes in `weight` samples of `y` at `x`.
    pub fn add(&mut self, weight: f64, x: f64, y: f64) {
        self.weight += weight;
        self.x += weight * x;
        self.xx += weight * x * x;
        self.y += weight * y;
        self.xy += weight * x * y;
    }

    /// How many samples there were.
    pub fn samples(&self) -> f64 {
        self.weight
    }

    /// Their mean; 0 of none.
    pub fn mean(&self) -> f64 {
        if self.weight > 0.0 { self.y / self.weight } else { 0.0 }
    }

    /// By how much `y` grows with `x`; 0 where all were taken at the same `x`.
    pub fn slope(&self) -> f64 {
        let spread = self.weight * self.xx - self.x * self.x;
        if spread <= 1e-9 * self.weight * self.weight {
            return 0.0;
        }
        (self.weight * self.xy - self.x * self.y) / spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope(samples: &[(f64, f64, f64)]) -> Slope {
        let mut slope = Slope::default();
        samples.iter().for_each(|&(weight, x, y)| slope.add(weight, x, y));
        slope
    }

    #[test]
    fn samples_on_a_line_have_its_slope_whatever_their_weights() {
        let on_line = |weight: f64, x: f64| (weight, x, 3.0 - 2.0 * x);
        let line = slope(&[on_line(1.0, 1.0), on_line(5.0, 2.0), on_line(0.5, 7.0)]);
        assert!((line.slope() + 2.0).abs() < 1e-9, "{line:?}");
        assert_eq!(line.samples(), 6.5);
        // (1 - 5 - 5.5) / 6.5
        assert!((line.mean() + 9.5 / 6.5).abs() < 1e-9, "{line:?}");
    }

    /// 1, 2, 2 and 5 at 0, 1, 2 and 3: a textbook's example.
    #[test]
    fn samples_off_a_line_have_the_slope_of_the_least_squares() {
        let off = slope(&[(1.0, 0.0, 1.0), (1.0, 1.0, 2.0), (1.0, 2.0, 2.0), (1.0, 3.0, 5.0)]);
        assert!((off.slope() - 1.2).abs() < 1e-9 && (off.mean() - 2.5).abs() < 1e-9, "{off:?}");
    }

    #[test]
    fn a_weight_is_a_number_of_samples() {
        let once = slope(&[(3.0, 1.0, 4.0), (1.0, 2.0, 9.0), (2.0, 4.0, 1.0)]);
        let thrice = slope(&[
            (1.0, 1.0, 4.0),
            (1.0, 1.0, 4.0),
            (1.0, 1.0, 4.0),
            (1.0, 2.0, 9.0),
            (2.0, 4.0, 1.0),
        ]);
        assert!((once.slope() - thrice.slope()).abs() < 1e-9);
        assert!((once.mean() - thrice.mean()).abs() < 1e-9);
    }

    #[test]
    fn without_two_places_there_is_no_slope() {
        assert_eq!((Slope::default().slope(), Slope::default().mean()), (0.0, 0.0));
        let one = slope(&[(2.0, 3.0, 1.0), (2.0, 3.0, 9.0)]);
        assert_eq!((one.slope(), one.mean()), (0.0, 5.0));
        // Nor are two places that differ by a rounding.
        assert_eq!(slope(&[(1.0, 3.0, 1.0), (1.0, 3.00001, 9.0)]).slope(), 0.0);
        assert!(slope(&[(1.0, 3.0, 1.0), (1.0, 3.001, 9.0)]).slope() > 1_000.0);
    }
}
