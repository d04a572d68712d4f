//! Means of pairs of values with the ellipse of one standard deviation around them.

use std::f64::consts::{PI, TAU};
use std::ops::Add;

/// Sums of pairs of values and of their products, which add up over units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Moments {
    /// Of one pair.
    pub fn of(x: f64, y: f64) -> Self {
        Self { n: 1.0, x, y, xx: x * x, xy: x * y, yy: y * y }
    }

    /// How many pairs.
    pub fn count(&self) -> usize {
        self.n as usize
    }

    /// The ellipse of all pairs. `None` of fewer than two, which have no spread.
    pub fn ellipse(&self) -> Option<Ellipse> {
        if self.n < 2.0 {
            return None;
        }
        let Self { n, x, y, xx, xy, yy } = *self;
        let covariance = |product: f64, a: f64, b: f64| (product - a * b / n) / (n - 1.0);
        Some(Ellipse {
            mean: (x / n, y / n),
            xx: covariance(xx, x, x).max(0.0),
            xy: covariance(xy, x, y),
            yy: covariance(yy, y, y).max(0.0),
        })
    }
}

impl Add for Moments {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self {
            n: self.n + o.n,
            x: self.x + o.x,
            y: self.y + o.y,
            xx: self.xx + o.xx,
            xy: self.xy + o.xy,
            yy: self.yy + o.yy,
        }
    }
}

/// A mean of pairs, with their variances and covariance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipse {
    /// The means.
    pub mean: (f64, f64),
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Ellipse {
    /// The area, in the product of the units: what does not vary at all has none.
    pub fn area(&self) -> f64 {
        PI * libm::sqrt((self.xx * self.yy - self.xy * self.xy).max(0.0))
    }

    /// So many points around the mean, one standard deviation from it in every direction; the last is the
    /// first.
    pub fn outline(&self, points: u32) -> Vec<(f64, f64)> {
        // The circle, by the root of the covariance (Cholesky's).
        let along = libm::sqrt(self.xx);
        let with = if along > 0.0 { self.xy / along } else { 0.0 };
        let across = libm::sqrt((self.yy - with * with).max(0.0));
        let point = |i: u32| {
            let angle = TAU * f64::from(i % points.max(1)) / f64::from(points.max(1));
            let (sin, cos) = libm::sincos(angle);
            (self.mean.0 + along * cos, self.mean.1 + with * cos + across * sin)
        };
        (0..=points).map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Option<Ellipse> {
        pairs.iter().fold(Moments::default(), |sum, &(x, y)| sum + Moments::of(x, y)).ellipse()
    }

    /// Variances 4 and 1 without covariance: half axes of 2 and 1.
    #[test]
    fn without_covariance_the_axes_are_the_deviations() {
        let (x, y) = (2.0 * 3f64.sqrt() / 2f64.sqrt(), 3f64.sqrt() / 2f64.sqrt());
        let pairs = [(10.0 + x, 5.0), (10.0 - x, 5.0), (10.0, 5.0 + y), (10.0, 5.0 - y)];
        let ellipse = of(&pairs).unwrap();
        assert!((ellipse.area() - 2.0 * PI).abs() < 1e-9, "{ellipse:?}");
        let outline = ellipse.outline(4);
        for (got, want) in outline.iter().zip([(12.0, 5.0), (10.0, 6.0), (8.0, 5.0), (10.0, 4.0)]) {
            assert!((got.0 - want.0).abs() < 1e-9 && (got.1 - want.1).abs() < 1e-9, "{outline:?}");
        }
        assert_eq!(outline[0], outline[4]);
    }

    #[test]
    fn on_a_line_there_is_no_area() {
        let ellipse = of(&[(0.0, 0.0), (1.0, 2.0), (2.0, 4.0)]).unwrap();
        assert!(ellipse.area() < 1e-6 && ellipse.mean == (1.0, 2.0), "{ellipse:?}");
        assert!(ellipse.outline(8).iter().all(|(x, y)| (y - 2.0 * x).abs() < 1e-9));
        assert_eq!(of(&[(1.0, 1.0)]), None);
    }
}
