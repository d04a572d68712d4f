//! Which aggregates share bottlenecks, by how the round-trip times of their clients move together.
//!
//! Flows that share a queue see its delay at the same time, which is how shared bottlenecks are
//! told from summaries of delay elsewhere, too (RFC 8382; Rubenstein, Kurose and Towsley, "Detecting
//! shared congestion of flows via end-to-end measurement", IEEE/ACM ToN 2002). Here a summary is
//! the mean round-trip time of an interval. What else moves it is taken out first:
//!
//! * **what was in force** and the context: the mean of its intervals with the same algorithm in the
//!   same context, and in the same arm of an experiment;
//! * **what all have in common**, as the hour of the day: the mean of all other aggregates;
//! * **what lasts**: a series that goes by its own past correlates with others of its kind by
//!   chance, so each is reduced to what its last value does not tell (Haugh, JASA 1976).
//!
//! The rest is ranked, so that no single outage decides. A pair is found where chance gives a rank
//! correlation as strong to any pair of the log in one log of a hundred. It has to be strong in both
//! halves of the log, too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Decision, Key, Prefix, Together};

/// Intervals that an aggregate needs to be looked at, and a pair in common.
pub const INTERVALS_MIN: usize = 48;
/// Aggregates that a log needs, so that what all have in common can be told.
pub const AGGREGATES_MIN: usize = 10;
/// The probability that chance alone finds any pair.
const CHANCE_MAX: f64 = 0.01;
/// The least correlation in either half of the log.
const CORRELATION_MIN: f64 = 0.5;
/// The variance of Fisher's transform of a rank correlation, times the intervals less three
/// (Fieller, Hartley and Pearson, Biometrika 1957).
const RANK_VARIANCE: f64 = 1.06;

/// The statistic of an interval that is looked at.
const RTT: &str = "mean(rtt)";

/// What was in force, the context, and the experiment with its arm.
type Under = (String, String, Option<(i64, u8)>);

/// What the clients of an aggregate saw in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    key: Key,
    interval: u64,
    under: Under,
    /// Connections and version: of several sightings of an interval that of most connections counts.
    weight: (u64, u64),
    log_rtt: f64,
}

impl Sighting {
    /// Of a decision; none where no round-trip time was reported.
    pub fn of(decision: &Decision) -> Option<Self> {
        let (_, rtt) = decision.statistics.iter().find(|(name, _)| name == RTT)?;
        let arm = decision.part.map(|part| (part.study, part.arm));
        let tried = decision.algorithms.as_ref().map_or("", |algorithms| &algorithms.tried);
        let seen = Self {
            key: decision.key.clone(),
            interval: decision.interval.0,
            under: (tried.to_owned(), decision.context.clone(), arm),
            weight: (decision.connections, decision.version),
            log_rtt: libm::log(*rtt),
        };
        seen.log_rtt.is_finite().then_some(seen)
    }
}

/// What a log shows of bottlenecks that aggregates of one service share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sharing {
    /// Aggregates that were looked at.
    pub aggregates: u64,
    /// Aggregates that were not: they have fewer than 48 intervals with a round-trip time.
    pub left_out: u64,
    /// Pairs that were looked at.
    pub pairs: u64,
    /// Those that share a bottleneck, the most certain first.
    pub found: Vec<Shared>,
}

/// Two aggregates that share a bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shared {
    /// The prefix of the one.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub one: Prefix,
    /// The prefix of the other.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub other: Prefix,
    /// Intervals that both have.
    pub intervals: u64,
    /// The rank correlation of their round-trip times, -1 to 1.
    pub correlation: f64,
    /// The same of the first half of these intervals, and of the second.
    pub halves: [f64; 2],
    /// The probability that chance alone would find a pair as strong among all pairs.
    pub chance: f64,
}

/// Why a log cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharingError {
    /// There are too few aggregates.
    #[error(
        "{aggregates} aggregates have {INTERVALS_MIN} intervals with round-trip times. \
         {AGGREGATES_MIN} are needed, to tell what two share from what all have in common. Ask for \
         a longer log, or let edges report rtt"
    )]
    Few {
        /// Those with enough intervals.
        aggregates: usize,
    },
}

impl Sharing {
    /// Of what the aggregates of one service saw, in any order.
    ///
    /// # Errors
    /// There are too few of them.
    pub fn of(seen: impl IntoIterator<Item = Sighting>) -> Result<Self, SharingError> {
        let mut by_key: BTreeMap<Key, BTreeMap<u64, Sighting>> = BTreeMap::new();
        for one in seen {
            let seen = by_key.entry(one.key.clone()).or_default();
            if seen.get(&one.interval).is_none_or(|other| other.weight < one.weight) {
                seen.insert(one.interval, one);
            }
        }
        let all = by_key.len();
        by_key.retain(|_, seen| seen.len() >= INTERVALS_MIN);
        if by_key.len() < AGGREGATES_MIN {
            return Err(SharingError::Few { aggregates: by_key.len() });
        }
        let left_out = (all - by_key.len()) as u64;
        let (keys, seen): (Vec<Key>, Vec<_>) = by_key.into_iter().unzip();
        let scores = scores(&seen);
        let mut compared = Vec::new();
        for (i, one) in scores.iter().enumerate() {
            for (j, other) in scores.iter().enumerate().skip(i + 1) {
                let both = common(one, other);
                if both.len() >= INTERVALS_MIN {
                    compared.push((i, j, Compared::of(&both)));
                }
            }
        }
        // Where pairs in general move together more than they would by chance, more is asked for
        // (Efron, "Large-scale simultaneous hypothesis testing: the choice of a null hypothesis",
        // JASA 2004). Without the mean of the others, those that share nothing move apart.
        let centre = median(compared.iter().map(|(.., one)| one.z)).min(0.0);
        let spread = 1.4826 * median(compared.iter().map(|(.., one)| (one.z - centre).abs()));
        let spread = spread.max(1.0);
        let pairs = compared.len() as f64;
        let mut found: Vec<Shared> = compared
            .iter()
            .filter(|(.., one)| one.halves.iter().all(|half| *half >= CORRELATION_MIN))
            .map(|&(i, j, Compared { intervals, correlation, halves, z })| Shared {
                one: keys[i].prefix,
                other: keys[j].prefix,
                intervals,
                correlation,
                halves,
                chance: (pairs * Normal::standard().sf((z - centre) / spread)).min(1.0),
            })
            .filter(|shared| shared.chance <= CHANCE_MAX)
            .collect();
        found.sort_by(|a, b| a.chance.total_cmp(&b.chance));
        Ok(Self { aggregates: keys.len() as u64, left_out, pairs: compared.len() as u64, found })
    }

    /// These groups with the prefixes that share bottlenecks, as [`Together::with_pairs`] adds them.
    pub fn added_to(&self, groups: Together) -> Together {
        groups.with_pairs(self.found.iter().map(|shared| (shared.one, shared.other)))
    }
}

/// A pair.
#[derive(Clone, Copy)]
struct Compared {
    intervals: u64,
    correlation: f64,
    halves: [f64; 2],
    /// In standard errors.
    z: f64,
}

impl Compared {
    fn of(both: &[(f64, f64)]) -> Self {
        let (first, second) = both.split_at(both.len() / 2);
        let r = correlation(both);
        // Of ranks that are the same everywhere the transform has no end.
        let z = libm::atanh(r.clamp(-0.999, 0.999));
        let z = z * libm::sqrt((both.len() as f64 - 3.0) / RANK_VARIANCE);
        let halves = [correlation(first), correlation(second)];
        Self { intervals: both.len() as u64, correlation: r, halves, z }
    }
}

/// By aggregate and interval, what is left of the round-trip time, as a normal score of its rank.
fn scores(seen: &[BTreeMap<u64, Sighting>]) -> Vec<Vec<(u64, f64)>> {
    let own: Vec<Vec<(u64, f64)>> = seen.iter().map(without_what_was_in_force).collect();
    let mut all: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for &(interval, value) in own.iter().flatten() {
        let (sum, count) = all.entry(interval).or_default();
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    let rest = |own: Vec<(u64, f64)>| {
        let others = |(interval, value): (u64, f64)| {
            let (sum, count) = all[&interval];
            (interval, value - (sum - value) / (count - 1.0).max(1.0))
        };
        ranked(&whitened(own.into_iter().map(others).collect()))
    };
    own.into_iter().map(rest).collect()
}

/// The logarithms of round-trip times, less their mean under the same configuration and context.
fn without_what_was_in_force(seen: &BTreeMap<u64, Sighting>) -> Vec<(u64, f64)> {
    let mut means: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    for one in seen.values() {
        let (sum, count) = means.entry(&one.under).or_default();
        (*sum, *count) = (*sum + one.log_rtt, *count + 1.0);
    }
    let left = |(&interval, one): (&u64, &Sighting)| {
        let (sum, count) = means[&one.under];
        (interval, one.log_rtt - sum / count)
    };
    seen.iter().map(left).collect()
}

/// A series less what the value before tells of each: an autoregression of the first order.
fn whitened(series: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let mean = series.iter().map(|(_, x)| x).sum::<f64>() / series.len() as f64;
    let next = |pair: &[(u64, f64)]| pair[1].0 == pair[0].0 + 1;
    let steps = series.windows(2).filter(|pair| next(pair));
    let (along, square) = steps.fold((0.0, 0.0), |(along, square), pair| {
        let (x, y) = (pair[0].1 - mean, pair[1].1 - mean);
        (along + x * y, square + x * x)
    });
    let slope = if square > 0.0 { (along / square).clamp(-1.0, 1.0) } else { 0.0 };
    let mut before: Option<(u64, f64)> = None;
    let rest = series.into_iter().map(|(interval, x)| {
        let x = x - mean;
        let told = before.filter(|(last, _)| last + 1 == interval).map_or(0.0, |(_, x)| slope * x);
        before = Some((interval, x));
        (interval, x - told)
    });
    rest.collect()
}

/// Each value as the normal deviate of its rank (van der Waerden's scores); equal ones share a rank.
fn ranked(series: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut sorted: Vec<f64> = series.iter().map(|(_, x)| *x).collect();
    sorted.sort_by(f64::total_cmp);
    let normal = Normal::standard();
    let score = |x: f64| {
        let (below, upto) =
            (sorted.partition_point(|y| *y < x), sorted.partition_point(|y| *y <= x));
        normal.inverse_cdf((below + upto + 1) as f64 / (2.0 * (sorted.len() + 1) as f64))
    };
    series.iter().map(|&(interval, x)| (interval, score(x))).collect()
}

/// The values of the intervals that both have.
fn common(one: &[(u64, f64)], other: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let mut others = other.iter().peekable();
    let same = one.iter().filter_map(|&(interval, x)| {
        while others.next_if(|(at, _)| *at < interval).is_some() {}
        others.next_if(|(at, _)| *at == interval).map(|&(_, y)| (x, y))
    });
    same.collect()
}

/// The middle one; 0 of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Pearson's; 0 where one of them is constant.
fn correlation(both: &[(f64, f64)]) -> f64 {
    let count = both.len().max(1) as f64;
    let (x, y) = both.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / count, b + y / count));
    let (xy, xx, yy) = both.iter().fold((0.0, 0.0, 0.0), |(xy, xx, yy), (a, b)| {
        let (a, b) = (a - x, b - y);
        (xy + a * b, xx + a * a, yy + b * b)
    });
    let scale = libm::sqrt(xx * yy);
    if scale > 0.0 { (xy / scale).clamp(-1.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
