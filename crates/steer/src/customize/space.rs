//! The box of permitted configurations, and the unit cube in which it is learnt.

use serde::{Deserialize, Serialize};

/// A knob's permitted range and how its values are spread over it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dimension {
    /// The lowest permitted value.
    pub min: f64,
    /// The highest permitted value; more than `min`.
    pub max: f64,
    /// Whether equal steps are equal factors; `min` is above zero then.
    pub logarithmic: bool,
}

impl Dimension {
    /// A range in which equal steps are equal differences.
    pub const fn linear(min: f64, max: f64) -> Self {
        Self { min, max, logarithmic: false }
    }

    /// A range in which equal steps are equal factors; `min` must be above zero.
    pub const fn logarithmic(min: f64, max: f64) -> Self {
        Self { min, max, logarithmic: true }
    }

    /// The value at `unit`, 0 to 1; never outside the range.
    pub fn value(&self, unit: f64) -> f64 {
        let unit = unit.clamp(0.0, 1.0);
        let value = if self.logarithmic {
            self.min * libm::pow(self.max / self.min, unit)
        } else {
            self.min + (self.max - self.min) * unit
        };
        value.clamp(self.min, self.max)
    }

    /// The place of `value` in the range, 0 to 1; a value outside is moved to the nearer end.
    pub fn unit(&self, value: f64) -> f64 {
        self.place(value.clamp(self.min, self.max))
    }

    /// The place of any value, which lies outside of 0 to 1 where the value is outside the range.
    /// NaN where there is none: a value of at most 0 on a logarithmic scale.
    pub fn place(&self, value: f64) -> f64 {
        if self.logarithmic {
            libm::log(value / self.min) / libm::log(self.max / self.min)
        } else {
            (value - self.min) / (self.max - self.min)
        }
    }
}

/// The knobs that may be learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Space {
    dimensions: Vec<Dimension>,
}

impl Space {
    /// A space of these knobs, in this order.
    pub fn new(dimensions: Vec<Dimension>) -> Self {
        Self { dimensions }
    }

    /// The knobs.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The configuration at a point of the unit cube.
    pub fn values(&self, point: &[f64]) -> Vec<f64> {
        self.dimensions.iter().zip(point).map(|(d, &unit)| d.value(unit)).collect()
    }

    /// The point of a configuration in the unit cube.
    pub fn unit(&self, values: &[f64]) -> Vec<f64> {
        self.dimensions.iter().zip(values).map(|(d, &value)| d.unit(value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let space =
            Space::new(vec![Dimension::linear(-2.0, 6.0), Dimension::logarithmic(0.1, 1000.0)]);
        for point in [[0.0, 0.0], [0.25, 0.5], [1.0, 1.0]] {
            let back = space.unit(&space.values(&point));
            assert!(back.iter().zip(point).all(|(a, b)| (a - b).abs() < 1e-12), "{back:?}");
        }
        assert_eq!(space.values(&[0.25, 0.5]), [0.0, 10.0]);
    }

    #[test]
    fn nothing_leaves_the_box() {
        let d = Dimension::logarithmic(5.0, 1000.0);
        assert_eq!((d.value(-3.0), d.value(7.0)), (5.0, 1000.0));
        assert_eq!((d.unit(0.001), d.unit(1e9)), (0.0, 1.0));
    }
}
