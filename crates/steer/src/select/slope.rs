//! The slope of a line through samples, by least squares, without keeping them.

/// Sums over weighted samples of a `y` at an `x`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slope {
    weight: f64,
    x: f64,
    xx: f64,
    y: f64,
    xy: f64,
}

impl Slope {
    /// Takes in `weight` samples of `y` at `x`.
    pub(super) fn add(&mut self, weight: f64, x: f64, y: f64) {
        self.weight += weight;
        self.x += weight * x;
        self.xx += weight * x * x;
        self.y += weight * y;
        self.xy += weight * x * y;
    }

    /// How many samples there were.
    pub(super) fn samples(&self) -> f64 {
        self.weight
    }

    /// Their mean; 0 of none.
    pub(super) fn mean(&self) -> f64 {
        if self.weight > 0.0 { self.y / self.weight } else { 0.0 }
    }

    /// By how much `y` grows with `x`; 0 where all were taken at the same `x`.
    pub(super) fn slope(&self) -> f64 {
        let spread = self.weight * self.xx - self.x * self.x;
        if spread <= 1e-9 * self.weight * self.weight {
            return 0.0;
        }
        (self.weight * self.xy - self.x * self.y) / spread
    }
}
