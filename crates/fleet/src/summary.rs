//! What the connections of one aggregate saw in one interval.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trimtab_qoe::Statistic;

use crate::Sketch;

/// The most named statistics of one summary.
pub const STATISTICS_MAX: usize = 16;
/// The longest name of a statistic, in bytes.
pub const STATISTIC_NAME_LEN_MAX: usize = 32;

/// Fewer edges than this do not show which of them lies.
const EDGES_MIN: usize = 3;
/// What one edge may say that it saw of one aggregate in one interval: connections, and samples of
/// what a connection has several of. A machine has some 10⁶ sockets, and an interval lasts a day at
/// most.
const CONNECTIONS_MAX: u64 = 100_000_000;
const SAMPLES_MAX: u64 = 10_000_000_000;
/// The largest values that are believed: 400 Gbit/s, a server's fastest interface; 3 minutes, after
/// which TCP gives a SYN up (RFC 9293, section 3.8.3); all packets, and all of the time; a day, the
/// longest interval.
const PLAUSIBLE: [(&str, f64); 5] = [
    ("throughput", 400_000.0),
    ("rtt", 180.0),
    ("loss", 1.0),
    ("rebuffering", 1.0),
    ("request_time", 86_400.0),
];

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
        "{0:?} is no name of a statistic: 1 to {STATISTIC_NAME_LEN_MAX} letters, digits and _, not \
         beginning with a digit"
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

    /// What several edges saw of one aggregate in one interval, so that no single one of them
    /// counts for more than the others let it: with three or more, the one with the most
    /// connections or samples has no more than the one with the second most, and no value lies
    /// beyond those that another edge saw, too. So one that lies moves the result no further than
    /// an honest one may. Of one or two nobody can tell who lies, and they are added up. In any
    /// order.
    pub fn of_edges(edges: &[Self]) -> Self {
        let second = |values: &mut Vec<u64>| {
            values.sort_unstable();
            values[values.len() - 2]
        };
        let mut all = Self::default();
        if edges.len() < EDGES_MIN {
            edges.iter().for_each(|edge| all.merge(edge));
            return all;
        }
        let most = second(&mut edges.iter().map(|edge| edge.connections).collect());
        let names: BTreeSet<&String> = edges.iter().flat_map(|edge| edge.sketches.keys()).collect();
        let limits: BTreeMap<&String, _> = names
            .into_iter()
            .filter_map(|name| {
                let sketches: Vec<&Sketch> = edges
                    .iter()
                    .filter_map(|edge| edge.get(name))
                    .filter(|s| !s.is_empty())
                    .collect();
                if sketches.len() < EDGES_MIN {
                    return None;
                }
                let len = second(&mut sketches.iter().map(|sketch| sketch.len()).collect());
                let ends: Vec<(u32, u32)> = sketches.iter().filter_map(|s| s.reach()).collect();
                let mut firsts: Vec<u32> = ends.iter().map(|end| end.0).collect();
                let mut lasts: Vec<u32> = ends.iter().map(|end| end.1).collect();
                firsts.sort_unstable();
                lasts.sort_unstable();
                Some((name, ((firsts[1], lasts[lasts.len() - 2].max(firsts[1])), len)))
            })
            .collect();
        for edge in edges {
            let mut within = Self::new(edge.connections.min(most));
            for (name, sketch) in &edge.sketches {
                let kept = limits.get(name).map(|&(reach, len)| sketch.within(reach, len));
                within.sketches.insert(name.clone(), kept.unwrap_or_else(|| sketch.clone()));
            }
            all.merge(&within);
        }
        all
    }

    /// Whether edges with real connections may have seen this: what it would take is named otherwise.
    ///
    /// # Errors
    /// There are more connections or samples than one edge has, or values that no network has.
    pub fn check_plausible(&self) -> Result<(), String> {
        if self.connections > CONNECTIONS_MAX {
            return Err(format!(
                "{} connections of one aggregate in one interval: at most {CONNECTIONS_MAX} are believed",
                self.connections
            ));
        }
        for (name, sketch) in &self.sketches {
            let is_per_connection =
                ["throughput", "rtt", "loss", "rebuffering"].contains(&name.as_str());
            let most = if is_per_connection { self.connections } else { SAMPLES_MAX };
            if sketch.len() > most {
                return Err(format!(
                    "{} samples of {name} of {} connections: at most {most} are believed",
                    sketch.len(),
                    self.connections
                ));
            }
            let limit = PLAUSIBLE.iter().find(|(known, _)| known == name).map(|(_, limit)| *limit);
            let largest = sketch.percentile(100.0).unwrap_or(0.0);
            // A bucket's middle may lie above what is in it.
            if let Some(limit) =
                limit.filter(|limit| largest > limit * (1.0 + crate::RELATIVE_ERROR_MAX))
            {
                return Err(format!("{name} of {largest:.3}: at most {limit} is believed"));
            }
        }
        Ok(())
    }

    /// Adds what other connections of the same aggregate saw in the same interval. Exact, in any
    /// order. Statistics beyond [`STATISTICS_MAX`] are left out, the last by name first, whatever
    /// the order.
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

    /// What an edge saw: so many connections with these throughputs, in turn.
    fn edge(connections: u64, mbps: &[f64]) -> Summary {
        let mut summary = Summary::new(connections);
        let values = (0..connections as usize).map(|i| mbps[i % mbps.len()]);
        summary.set("throughput", Sketch::of(values)).unwrap();
        summary
    }

    fn mean(edges: &[Summary]) -> f64 {
        Summary::of_edges(edges).get("throughput").unwrap().mean().unwrap()
    }

    /// 99 honest edges, with 20 to 39 connections each of 5 to 15 Mbit/s.
    fn honest() -> Vec<Summary> {
        let rate = |i: u64, j: u64| 5.0 + ((i * 7 + j * 3) % 101) as f64 / 10.0;
        let one = |i: u64| edge(20 + i % 20, &[0, 1, 2, 3].map(|j| rate(i, j)));
        (0..99).map(one).collect()
    }

    #[test]
    fn one_edge_of_a_hundred_that_lies_moves_no_more_than_an_honest_one_may() {
        let honest = honest();
        let truth = mean(&honest);
        let with = |one: Summary| {
            let mut all = honest.clone();
            all.push(one);
            mean(&all) - truth
        };
        // The most that the largest honest edge could move, were all its connections the best or the worst of all.
        let (up, down) = (with(edge(39, &[15.0])), with(edge(39, &[5.0])));
        assert!(up > 0.0 && down < 0.0 && up < 0.1, "{up} {down}");
        let mut lies = vec![edge(1_000_000, &[900_000.0]), edge(40, &[0.0]), edge(1, &[900_000.0])];
        // As many samples as a sketch may say it has.
        let mut huge = Summary::new(1 << 40);
        let mut sketch = Sketch::of([900_000.0]);
        for _ in 0..40 {
            let same = sketch.clone();
            sketch.merge(&same);
        }
        assert_eq!(sketch.len(), 1 << 40);
        huge.set("throughput", sketch).unwrap();
        let mut added_up = Summary::default();
        honest.iter().chain([&huge]).for_each(|edge| added_up.merge(edge));
        let added_up = added_up.get("throughput").unwrap().mean().unwrap();
        assert!(added_up > 890_000.0, "added up it would be all that counts: {added_up}");
        lies.push(huge);
        for lie in lies {
            let connections = lie.connections();
            let moved = with(lie);
            println!(
                "{connections} connections that lie: {moved:+.4} Mbit/s, an honest one {down:+.4} to {up:+.4}"
            );
            // Both are within the width of a bucket.
            let off = truth * crate::RELATIVE_ERROR_MAX * 39.0 / 2900.0;
            assert!((down - off..=up + off).contains(&moved), "{connections}: {moved}");
        }
        let mut backwards = honest.clone();
        backwards.reverse();
        assert_eq!(Summary::of_edges(&honest), Summary::of_edges(&backwards));
    }

    #[test]
    fn of_two_edges_nobody_can_tell_who_lies() {
        let (small, large) = (edge(10, &[5.0]), edge(1000, &[50.0]));
        let mut both = small.clone();
        both.merge(&large);
        assert_eq!(Summary::of_edges(&[small, large]), both);
        assert_eq!(Summary::of_edges(&[]), Summary::default());
    }

    #[test]
    fn what_no_edge_can_have_seen_is_named() {
        let refuse = |summary: &Summary| summary.check_plausible().unwrap_err();
        assert_eq!(edge(1000, &[390_000.0, 0.1]).check_plausible(), Ok(()));
        assert!(refuse(&Summary::new(1 << 40)).contains("connections"));
        assert!(refuse(&edge(2, &[900_000.0])).contains("at most 400000 is believed"));
        let mut more = Summary::new(3);
        more.set("loss", Sketch::of([0.0, 1.0, 0.5])).unwrap();
        more.set("request_time", Sketch::of([0.1; 40])).unwrap();
        assert_eq!(more.check_plausible(), Ok(()), "a connection has many requests");
        more.set("loss", Sketch::of([0.0; 4])).unwrap();
        assert!(refuse(&more).contains("4 samples of loss of 3 connections"));
        more.set("loss", Sketch::of([1.2])).unwrap();
        assert!(refuse(&more).contains("loss of 1.2"));
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
