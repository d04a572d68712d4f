//! What the aggregates of a service found together (paper 002 §7, "Cross-aggregate learning").

use serde::{Deserialize, Serialize};

use super::Point;
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
    /// Takes a finding.
    pub fn add(&mut self, found: &Finding) {
        // One wild value must not speak for the fleet.
        let advantage = found.advantage.clamp(-6.0, 6.0);
        let cell = Cell::new(&found.point, advantage).counting(found.trials);
        self.memory.take(cell, KEEP, CELLS);
    }

    /// Takes all that another fleet found.
    pub fn merge(&mut self, other: &Self) {
        for cell in other.cells() {
            self.memory.take(cell.clone(), 1.0, CELLS);
        }
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

/// What a trial of one aggregate tells the others of its service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What was tried: a point of the unit cube, or another algorithm.
    pub point: Point,
    /// How much better it was than the safe configuration, in deviations of the aggregate's rewards.
    pub advantage: f64,
    /// For how many trials it stands.
    pub trials: f64,
}

/// What a learner knows besides its own trials.
#[derive(Clone, Default)]
pub struct Known<'a> {
    /// The learners of other contexts of the same aggregate.
    pub others: Vec<&'a super::Learner>,
    /// What other aggregates found.
    pub fleet: &'a [Cell],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_fleets_found_is_kept_of_both() {
        let found = |advantage, trials| {
            let mut commons = Commons::default();
            commons.add(&Finding { point: Point::other(1), advantage, trials });
            commons
        };
        let mut both = found(1.0, 30.0);
        both.merge(&found(-2.0, 10.0));
        let cells: Vec<_> = both.cells().iter().map(|c| (c.weight(), c.mean())).collect();
        assert_eq!(cells.len(), 2, "nothing is lost while there is room");
        assert!((both.weight() - 40.0).abs() < 1e-3);
        let wild = found(1e9, 1.0);
        assert_eq!(wild.cells()[0].mean(), 6.0, "one wild value does not speak for the fleet");
    }
}
