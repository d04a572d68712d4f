//! What the aggregates of a service found together (paper 002 §7, "Cross-aggregate learning").

use serde::{Deserialize, Serialize};

use super::At;
use super::memory::{Cell, Memory};

/// Points that are distinguished.
const CELLS: usize = 32;
/// All that is known counts this much less with each finding: some four thousand are looked back on.
const KEEP: f64 = 0.99975;

/// How much better points of the permitted box are than the safe configuration, by what all
/// aggregates of a service found. Rewards of different aggregates are compared in units of each
/// one's own deviation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Commons {
    memory: Memory,
}

impl Commons {
    /// Takes a finding: a point of the unit cube or another algorithm, and how much better it was
    /// than the safe configuration, in deviations.
    pub fn add<'a>(&mut self, point: impl Into<At<'a>>, advantage: f64) {
        // One wild value must not speak for the fleet.
        self.memory.add(point, advantage.clamp(-6.0, 6.0), KEEP, CELLS);
    }

    /// What was found.
    pub fn cells(&self) -> &[Cell] {
        self.memory.cells()
    }

    /// Findings until now, less what is forgotten.
    pub fn weight(&self) -> f64 {
        self.memory.weight()
    }
}

/// What a learner knows besides its own trials.
#[derive(Clone, Default)]
pub struct Known<'a> {
    /// The learners of other contexts of the same aggregate.
    pub others: Vec<&'a super::Learner>,
    /// What other aggregates found.
    pub fleet: &'a [Cell],
}
