//! Distributions that are measured without a run: of the segments of traces, and of the requests that
//! applications make.
//!
//! [`segments`] and [`requests`] take samples, [`summary`] describes them, and
//! [`crate::report::samples::figure`] draws them. Each trace, or session, is one [`Unit`], which a
//! resample takes whole.

mod requests;
mod segments;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::stats::{Estimate, Sorted, Sums, bca};

pub use requests::{RequestsError, requests};
pub use segments::{SegmentsError, segments};

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampled {
    /// The length of segments of a trace, in seconds.
    SegmentLength,
    /// By how many percent of its own rate a segment differs from the next.
    SegmentChange,
    /// The time between requests, in milliseconds.
    Gap,
    /// The size of responses, in KB.
    Response,
    /// The size of requests, in KB.
    Request,
}

impl Sampled {
    /// As people read it, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::SegmentLength => "length of segments, s",
            Self::SegmentChange => "change between neighbours, %",
            Self::Gap => "gap between requests, ms",
            Self::Response => "size of responses, KB",
            Self::Request => "size of requests, KB",
        }
    }
}

/// The samples of one trace, or of one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The trace's name, or the session's seed.
    pub name: String,
    /// The values in the order in which they came.
    pub values: BTreeMap<Sampled, Vec<f64>>,
}

impl Unit {
    /// Its values of a quantity.
    pub fn of(&self, quantity: Sampled) -> &[f64] {
        self.values.get(&quantity).map_or(&[], Vec::as_slice)
    }
}

/// All values of a quantity, in order.
pub fn pooled(units: &[Unit], quantity: Sampled) -> Sorted {
    Sorted::new(units.iter().flat_map(|unit| unit.of(quantity)).copied())
}

/// A part of a distribution, whose share is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Values above this one.
    Above(f64),
    /// Values below this one.
    Below(f64),
    /// Values of this one or less.
    AtMost(f64),
    /// The largest values of a session, so many percent of them: the share is that of the sum.
    Largest(f64),
}

impl Part {
    /// As people read it: percent of what.
    pub fn words(self) -> String {
        match self {
            Self::Above(value) => format!("percent above {value}"),
            Self::Below(value) => format!("percent below {value}"),
            Self::AtMost(value) => format!("percent at {value} or less"),
            Self::Largest(percent) => format!("percent of the sum in the largest {percent}%"),
        }
    }

    /// The value and the percent at or below it, where a share of this size is one of values.
    pub fn point(self, share: f64) -> Option<(f64, f64)> {
        match self {
            Self::Above(value) => Some((value, 100.0 - share)),
            Self::Below(value) | Self::AtMost(value) => Some((value, share)),
            Self::Largest(_) => None,
        }
    }

    /// Of a unit's values: what lies in the part, and all.
    fn sums(self, values: &[f64]) -> Sums {
        let count = |is_in: &dyn Fn(f64) -> bool| {
            Sums::of(values.iter().filter(|&&v| is_in(v)).count() as f64, values.len() as f64)
        };
        match self {
            Self::Above(value) => count(&|v| v > value),
            Self::Below(value) => count(&|v| v < value),
            Self::AtMost(value) => count(&|v| v <= value),
            Self::Largest(percent) => {
                let sorted = Sorted::new(values.iter().copied());
                let number = libm::round(percent / 100.0 * values.len() as f64) as usize;
                let largest = sorted.values().iter().rev().take(number);
                Sums::of(largest.sum(), values.iter().sum())
            }
        }
    }
}

/// The share of a part in percent, over all units, with its 95% interval. Whole units are resampled.
/// `None` where nothing has the quantity.
pub fn share(units: &[Unit], quantity: Sampled, part: Part) -> Option<Estimate> {
    let sums = units.iter().map(|unit| unit.of(quantity)).filter(|values| !values.is_empty());
    let sums: Vec<Sums> = sums.map(|values| part.sums(values)).collect();
    bca(&sums, |sums| 100.0 * sums.a / sums.b)
}

/// The percentiles of a summary.
const PERCENTILES: [f64; 5] = [5.0, 25.0, 50.0, 75.0, 95.0];

/// Mean and percentiles of every quantity, for a terminal.
pub fn summary(units: &[Unit]) -> String {
    let mut text = format!("  {:28} {:>9}", "", "mean");
    for percent in PERCENTILES.map(|percent| format!("p{percent}")) {
        let _ = write!(text, " {percent:>9}");
    }
    text.push('\n');
    let all = units.iter().flat_map(|unit| unit.values.keys().copied());
    for quantity in all.collect::<BTreeSet<_>>() {
        let sorted = pooled(units, quantity);
        let percentiles = PERCENTILES.iter().filter_map(|&percent| sorted.percentile(percent));
        let _ = write!(text, "  {:28}", quantity.name());
        for value in sorted.mean().into_iter().chain(percentiles) {
            let _ = write!(text, " {value:>9.2}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(values: &[f64]) -> Unit {
        let values = [(Sampled::Gap, values.to_vec())].into();
        Unit { name: "x".to_owned(), values }
    }

    #[test]
    fn shares_are_of_all_units_together() {
        let units = [unit(&[0.0, 0.0, 5.0]), unit(&[10.0]), unit(&[])];
        let of = |part| share(&units, Sampled::Gap, part).unwrap().value;
        assert_eq!(of(Part::AtMost(0.0)), 50.0);
        assert_eq!(of(Part::Below(10.0)), 75.0);
        assert_eq!(of(Part::Above(4.9)), 50.0);
        assert_eq!(share(&units, Sampled::Response, Part::Above(1.0)), None);
    }

    #[test]
    fn the_largest_hold_a_share_of_the_sum() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let of = |percent| share(&[unit(&values)], Sampled::Gap, Part::Largest(percent)).unwrap();
        // 99 and 100 of 5050.
        assert!((of(2.0).value - 100.0 * 199.0 / 5050.0).abs() < 1e-9);
        assert_eq!(of(100.0).value, 100.0);
    }

    #[test]
    fn a_point_of_the_curve_is_what_lies_at_or_below() {
        assert_eq!(Part::Above(3.0).point(90.0), Some((3.0, 10.0)));
        assert_eq!(Part::Below(17.0).point(95.0), Some((17.0, 95.0)));
        assert_eq!(Part::Largest(3.4).point(60.0), None);
    }
}
