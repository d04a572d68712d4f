//! What is kept of an experiment: sums for each aggregate, block and arm.

use serde::{Deserialize, Serialize};

/// What an interval of an aggregate amounts to.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// It came right after a change.
    WashOut,
    /// Nothing was reported of what was to be run.
    OtherVersion,
    /// There were too few connections, or none of the statistics.
    NoValue,
    /// The metric, and then the guard metrics, where each has a value.
    Values(Vec<Option<f64>>),
}

/// Intervals that were left out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Right after a change of arms.
    pub wash_out: u64,
    /// Measured under another version of the configuration than was to be run.
    pub other_version: u64,
    /// With too few connections or statistics.
    pub no_value: u64,
    /// Of which nobody reported in time.
    pub unreported: u64,
}

/// The sums of an aggregate's intervals in one block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// How many values there are of each metric.
    #[serde(rename = "n")]
    counts: Vec<u32>,
    /// Their sums.
    #[serde(rename = "s")]
    sums: Vec<f64>,
    #[serde(rename = "w", default, skip_serializing_if = "is_zero")]
    wash_out: u32,
    #[serde(rename = "v", default, skip_serializing_if = "is_zero")]
    other_version: u32,
    #[serde(rename = "x", default, skip_serializing_if = "is_zero")]
    no_value: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Cell {
    /// Adds an interval.
    pub fn add(&mut self, observation: &Observation) {
        match observation {
            Observation::WashOut => self.wash_out += 1,
            Observation::OtherVersion => self.other_version += 1,
            Observation::NoValue => self.no_value += 1,
            Observation::Values(values) => {
                let len = self.counts.len().max(values.len());
                self.counts.resize(len, 0);
                self.sums.resize(len, 0.0);
                for (i, value) in values.iter().enumerate().filter_map(|(i, v)| Some((i, (*v)?))) {
                    self.counts[i] += 1;
                    self.sums[i] += value;
                }
            }
        }
    }

    /// Count and sum of a metric's values.
    pub(super) fn sum(&self, metric: usize) -> (f64, f64) {
        let count = self.counts.get(metric).copied().unwrap_or(0);
        (f64::from(count), self.sums.get(metric).copied().unwrap_or(0.0))
    }

    /// The mean of a metric, where it has values.
    pub(super) fn mean(&self, metric: usize) -> Option<f64> {
        let (count, sum) = self.sum(metric);
        (count > 0.0).then(|| sum / count)
    }

    /// Adds what was left out, and says how many intervals there are in all.
    pub(super) fn tally(&self, left_out: &mut LeftOut) -> u64 {
        left_out.wash_out += u64::from(self.wash_out);
        left_out.other_version += u64::from(self.other_version);
        left_out.no_value += u64::from(self.no_value);
        let measured = self.counts.iter().copied().max().unwrap_or(0);
        u64::from(measured + self.wash_out + self.other_version + self.no_value)
    }
}

/// A cell, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct CellOf {
    /// The aggregate, by its place in the list of members.
    pub member: usize,
    /// The block.
    pub block: i64,
    /// 0: control; 1: treatment.
    pub arm: u8,
    /// What was seen.
    pub cell: Cell,
}
