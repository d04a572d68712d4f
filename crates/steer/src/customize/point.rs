//! What may be in force: the algorithm whose knobs are learnt, at a point of their unit cube, or
//! another one as it is.

use core::ops::Deref;

use serde::{Deserialize, Serialize};

use super::memory::on_grid;

/// What is in force or may be. Its slice is the point of the knobs' unit cube; another algorithm has
/// none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Point {
    /// A point of the unit cube of the knobs that are learnt.
    Knobs(Vec<f64>),
    /// Another algorithm, of which nothing is learnt but how good it is.
    Other {
        /// Which one: 1 for the first; 0 would be the algorithm whose knobs are learnt.
        choice: u8,
    },
}

impl Point {
    /// Another algorithm by its number, 1 for the first.
    pub const fn other(choice: u8) -> Self {
        Self::Other { choice }
    }

    /// Which algorithm: 0 for that whose knobs are learnt.
    pub fn choice(&self) -> u8 {
        match self {
            Self::Knobs(_) => 0,
            Self::Other { choice } => *choice,
        }
    }

    /// The nearest one of the grid on which trials lie.
    pub(super) fn on_grid(&self) -> Self {
        match self {
            Self::Knobs(knobs) => Self::Knobs(on_grid(knobs)),
            Self::Other { .. } => self.clone(),
        }
    }

    /// The point of the knobs' cube; none of another algorithm.
    pub fn knobs(&self) -> Option<&[f64]> {
        match self {
            Self::Knobs(knobs) => Some(knobs),
            Self::Other { .. } => None,
        }
    }
}

impl Default for Point {
    fn default() -> Self {
        Self::Knobs(Vec::new())
    }
}

impl Deref for Point {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        self.knobs().unwrap_or_default()
    }
}

impl From<Vec<f64>> for Point {
    fn from(knobs: Vec<f64>) -> Self {
        Self::Knobs(knobs)
    }
}

/// A point that is looked at: which algorithm, and the place in the knobs' cube where it has one.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    pub(super) choice: u8,
    pub(super) knobs: &'a [f64],
}

impl<'a> From<&'a Point> for At<'a> {
    fn from(point: &'a Point) -> Self {
        Self { choice: point.choice(), knobs: point }
    }
}

impl<'a> From<&'a [f64]> for At<'a> {
    fn from(knobs: &'a [f64]) -> Self {
        Self { choice: 0, knobs }
    }
}

impl<'a> From<&'a Vec<f64>> for At<'a> {
    fn from(knobs: &'a Vec<f64>) -> Self {
        Self { choice: 0, knobs }
    }
}

impl<'a, const N: usize> From<&'a [f64; N]> for At<'a> {
    fn from(knobs: &'a [f64; N]) -> Self {
        Self { choice: 0, knobs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store has points that were written before there was a choice: lists of numbers.
    #[test]
    fn points_of_knobs_are_written_as_they_always_were() {
        let point = Point::from(vec![0.25, 1.0]);
        assert_eq!(serde_json::to_string(&point).unwrap(), "[0.25,1.0]");
        assert_eq!(serde_json::from_str::<Point>("[0.25,1.0]").unwrap(), point);
        let other = Point::other(3);
        assert_eq!(serde_json::to_string(&other).unwrap(), r#"{"choice":3}"#);
        assert_eq!(serde_json::from_str::<Point>(r#"{"choice":3}"#).unwrap(), other);
        assert!(serde_json::from_str::<Point>(r#"{"choice":300}"#).is_err());
    }

    #[test]
    fn another_algorithm_has_no_place_among_the_knobs() {
        assert_eq!((Point::other(2).choice(), Point::other(2).len()), (2, 0));
        assert_eq!(Point::other(2).knobs(), None);
        let point = Point::from(vec![0.5]);
        assert_eq!((point.choice(), point.knobs(), point[0]), (0, Some(&[0.5][..]), 0.5));
    }
}
