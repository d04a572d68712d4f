//! When a network has changed: what rewards are off by, added up.
//!
//! The sum of what rewards are above their expectation, less what is usual, is kept above zero, and
//! that of what they are below it, too (CUSUM: Page, "Continuous inspection schemes", Biometrika
//! 1954). A sum that is too large means a change, and the trial after which it was last zero is
//! where the change likely was (Page 1954; Basseville and Nikiforov, "Detection of abrupt changes",
//! 1993, §2.2). What is off counts in standard errors. One wild reward counts as three of them, so
//! that it takes three rewards at least.
//!
//! Mortise's detector (`tune::change_point`) keeps the probabilities of two hundred run lengths for
//! each connection. Here they would be kept for each context of each aggregate, in a store. Two
//! sums do for a shift whose size is known, and that is: smaller ones do not matter.

use serde::{Deserialize, Serialize};

use super::memory::Cell;

/// A change is worth noticing from two standard errors on: half of that is usual (Basseville and
/// Nikiforov, §2.2.3).
const USUAL: f32 = 1.0;
/// The sum that is too large. By Siegmund's approximation ("Sequential analysis", 1985, §2) that
/// happens once in 7,700 trials without a change, counting both sums, and 5 trials after a shift by
/// two standard errors.
const TOO_LARGE: f32 = 4.0;
/// No reward is off by more.
const MOST: f64 = 3.0;
/// A sum grows for no longer than so many trials that are kept: those before are of no weight.
const SINCE_MAX: usize = 16;

/// Both sums, and the trials since the older one was last zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Shift {
    /// Of what was above and below the expectation.
    sums: [f32; 2],
    /// Trials since each was last zero.
    counts: [u8; 2],
    since: Vec<Cell>,
}

impl Shift {
    /// Whether both sums are zero.
    pub(super) fn is_calm(&self) -> bool {
        self.since.is_empty()
    }

    /// Whether a sum is on half of the way to a change.
    pub(super) fn is_suspicious(&self) -> bool {
        self.sums.iter().any(|sum| *sum > TOO_LARGE / 2.0)
    }

    /// Adds by how many standard errors a trial's reward was above its expectation. Where that
    /// means a change, the trials since then, this one included.
    pub(super) fn add(&mut self, off: f64, trial: &Cell) -> Option<Vec<Cell>> {
        let off = off.clamp(-MOST, MOST) as f32;
        self.since.push(trial.clone());
        for ((sum, count), off) in self.sums.iter_mut().zip(&mut self.counts).zip([off, -off]) {
            *sum = (*sum + off - USUAL).max(0.0);
            *count = if *sum > 0.0 { count.saturating_add(1) } else { 0 };
        }
        let kept = self.counts.iter().copied().max().map_or(0, usize::from).min(SINCE_MAX);
        self.since.drain(..self.since.len() - kept);
        let changed = self.sums.iter().position(|sum| *sum > TOO_LARGE)?;
        let of_change = usize::from(self.counts[changed]).min(kept);
        Some(self.since.split_off(kept - of_change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customize::draw::Draws;

    fn cell(n: u32) -> Cell {
        Cell::new(&[0.5], f64::from(n))
    }

    /// After how many trials there was a change; none in so many.
    fn until_change(shift: f64, seed: u64, trials: u32) -> Option<u32> {
        let (mut draws, mut sums) = (Draws::new(seed), Shift::default());
        (1..=trials).find(|&n| sums.add(shift + draws.normal(), &cell(n)).is_some())
    }

    /// By Siegmund's approximation: 4.7 trials for two standard errors, about 2.6 for three, which
    /// the bound on a single reward makes more of.
    #[test]
    fn a_shift_is_noticed_after_a_few_trials() {
        for (shift, expected) in [(2.0, 4.7), (3.0, 3.2), (-2.0, 4.7)] {
            let of = |seed| until_change(shift, seed, 200).expect("it is noticed");
            let mean = (0..400).map(|seed| f64::from(of(seed))).sum::<f64>() / 400.0;
            assert!((mean - expected).abs() < 0.6, "{shift}: {mean}");
        }
    }

    /// Once in 7,700 trials: 13 of these, give or take 3.
    #[test]
    fn without_a_shift_there_is_hardly_a_change() {
        let changes = (0..100).filter(|&seed| until_change(0.0, seed, 1000).is_some()).count();
        assert!(changes <= 20, "{changes} of 100, each of 1,000 trials");
    }

    #[test]
    fn one_wild_reward_is_no_change() {
        let mut shift = Shift::default();
        assert_eq!(shift.add(1e9, &cell(0)), None);
        assert_eq!(shift.add(0.0, &cell(1)), None);
        assert_eq!(shift.add(-1e9, &cell(2)), None);
        assert_eq!(shift.add(f64::INFINITY, &cell(3)), None);
    }

    /// Three small ones let a sum go back to zero, and the change was after that.
    #[test]
    fn only_trials_since_the_change_are_told() {
        let mut shift = Shift::default();
        for (n, off) in [(0, 2.5), (1, -0.9), (2, -3.0), (3, 1.0), (4, 2.9), (5, 2.9)] {
            assert_eq!(shift.add(off, &cell(n)), None, "{n}");
        }
        assert!(shift.is_suspicious() && !shift.is_calm());
        let since = shift.add(2.9, &cell(6)).expect("a change");
        assert_eq!(since.iter().map(Cell::mean).collect::<Vec<_>>(), [4.0, 5.0, 6.0]);
    }

    #[test]
    fn it_keeps_a_bounded_number_of_trials() {
        let mut shift = Shift::default();
        // Just above what is usual: the sum grows slowly.
        let changed = (0..100).find_map(|n| shift.add(1.05, &cell(n)));
        assert_eq!(changed.expect("a change").len(), SINCE_MAX);
        let mut calm = Shift::default();
        (0..50).for_each(|n| assert_eq!(calm.add(0.3, &cell(n)), None));
        assert_eq!(calm, Shift::default());
    }
}
