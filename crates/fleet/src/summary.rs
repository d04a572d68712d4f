//! What the connections of one aggregate saw in one interval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_qoe::Statistic;

use crate::Sketch;

/// The most named statistics of one summary.
pub const STATISTICS_MAX: usize = 16;
/// The longest name of a statistic, in bytes.
pub const STATISTIC_NAME_LEN_MAX: usize = 32;

/// Sketches by name: throughput (Mbit/s), round-trip time and request time (s), loss (0 to 1), and whatever the
/// application's logs provide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Summary {
    /// How many connections there were.
    connections: u64,
    sketches: BTreeMap<String, Sketch>,
}

/// A summary as somebody sent it.
#[derive(Deserialize)]
struct Unchecked {
    connections: u64,
    sketches: BTreeMap<String, Sketch>,
}

/// Why a summary is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// A name has other characters than it may, or too many.
    #[error(
        "{0:?} is no name of a statistic: 1 to {STATISTIC_NAME_LEN_MAX} letters, digits and _, not beginning with a digit"
    )]
    Name(String),
    /// There are more statistics than a summary may have.
    #[error("a summary has at most {STATISTICS_MAX} statistics")]
    TooMany,
}

impl TryFrom<Unchecked> for Summary {
    type Error = SummaryError;

    fn try_from(unchecked: Unchecked) -> Result<Self, SummaryError> {
        let mut summary = Self::new(unchecked.connections);
        for (name, sketch) in unchecked.sketches {
            summary.set(&name, sketch)?;
        }
        Ok(summary)
    }
}

/// Whether a text may name a statistic: what a formula can read.
pub(crate) fn check_name(name: &str) -> Result<(), SummaryError> {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let good = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if first && good && name.len() <= STATISTIC_NAME_LEN_MAX {
        Ok(())
    } else {
        Err(SummaryError::Name(name.chars().take(80).collect()))
    }
}

impl Summary {
    /// One of so many connections, without any statistic yet.
    pub fn new(connections: u64) -> Self {
        Self { connections, sketches: BTreeMap::new() }
    }

    /// Adds a statistic, or replaces the one of that name.
    ///
    /// # Errors
    /// The name is none, or there are [`STATISTICS_MAX`] others.
    pub fn set(&mut self, name: &str, sketch: Sketch) -> Result<(), SummaryError> {
        check_name(name)?;
        if self.sketches.len() >= STATISTICS_MAX && !self.sketches.contains_key(name) {
            return Err(SummaryError::TooMany);
        }
        self.sketches.insert(name.to_owned(), sketch);
        Ok(())
    }

    /// How many connections there were.
    pub fn connections(&self) -> u64 {
        self.connections
    }

    /// The sketch of that name.
    pub fn get(&self, name: &str) -> Option<&Sketch> {
        self.sketches.get(name)
    }

    /// All sketches, by name.
    pub fn sketches(&self) -> impl Iterator<Item = (&str, &Sketch)> {
        self.sketches.iter().map(|(name, sketch)| (name.as_str(), sketch))
    }

    /// A number that a formula reads.
    pub fn statistic(&self, statistic: &Statistic) -> Option<f64> {
        self.get(&statistic.of)?.statistic(statistic.kind)
    }

    /// Adds what other connections of the same aggregate saw in the same interval. Exact, in any order. Statistics beyond
    /// [`STATISTICS_MAX`] are left out, the last by name first, whatever the order.
    pub fn merge(&mut self, other: &Self) {
        self.connections = self.connections.saturating_add(other.connections);
        for (name, sketch) in &other.sketches {
            self.sketches.entry(name.clone()).or_default().merge(sketch);
        }
        while self.sketches.len() > STATISTICS_MAX {
            self.sketches.pop_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_formulas_can_read() {
        let mut summary = Summary::new(1);
        for name in ["throughput", "_x9", "Bitrate"] {
            summary.set(name, Sketch::of([1.0])).unwrap();
        }
        for name in ["", "9x", "a b", "mean(rtt)", "ä", &"x".repeat(33)] {
            assert!(matches!(summary.set(name, Sketch::default()), Err(SummaryError::Name(_))));
        }
    }

    #[test]
    fn merges_and_keeps_its_limit() {
        let of = |names: std::ops::Range<u32>| {
            let mut summary = Summary::new(2);
            for n in names {
                summary.set(&format!("s{n:02}"), Sketch::of([f64::from(n)])).unwrap();
            }
            summary
        };
        let (mut a, mut b) = (of(0..12), of(8..20));
        let (a_before, b_before) = (a.clone(), b.clone());
        a.merge(&b_before);
        b.merge(&a_before);
        assert_eq!(a, b);
        assert_eq!((a.connections(), a.sketches().count()), (4, STATISTICS_MAX));
        assert_eq!(a.get("s09").unwrap().len(), 2);
        let mut full = of(0..16);
        assert_eq!(full.set("one_more", Sketch::default()), Err(SummaryError::TooMany));
        full.set("s00", Sketch::default()).unwrap();
    }
}
