//! Which knobs matter (paper 002 §4.3, "Scalability"): each is tested alone, up and down, the others fixed.

use serde::{Deserialize, Serialize};

use super::Settings;

/// What a test sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TestPoint {
    /// Nothing: the centre, which the others are compared with.
    Centre,
    /// One knob, by its place in the space.
    Knob {
        /// Which one.
        knob: usize,
        /// Whether above the centre or below it.
        up: bool,
    },
}

/// Sum and number of rewards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Tally {
    sum: f64,
    count: u32,
}

impl Tally {
    fn add(&mut self, reward: f64) {
        self.sum += reward;
        self.count += 1;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// A round of tests over all knobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relevance {
    proposed: usize,
    observed: usize,
    centre: Tally,
    /// By knob: below and above the centre.
    knobs: Vec<[Tally; 2]>,
    repeats: usize,
}

impl Relevance {
    pub(super) fn new(settings: &Settings, knobs: usize) -> Self {
        Self {
            proposed: 0,
            observed: 0,
            centre: Tally::default(),
            knobs: vec![[Tally::default(); 2]; knobs],
            repeats: settings.select_repeats as usize,
        }
    }

    /// Tests in one pass over the knobs: the centre once for each knob, between its two tests, so that what changes
    /// meanwhile falls on both.
    fn pass(&self) -> usize {
        3 * self.knobs.len()
    }

    fn total(&self) -> usize {
        self.pass() * self.repeats
    }

    /// Tests that have yet to be observed.
    pub fn left(&self) -> usize {
        self.total().saturating_sub(self.observed)
    }

    /// What to test next. When everything was proposed and results are missing, it begins again.
    pub(super) fn propose(&mut self) -> TestPoint {
        let at = self.proposed % self.pass();
        self.proposed += 1;
        match at % 3 {
            1 => TestPoint::Centre,
            side => TestPoint::Knob { knob: at / 3, up: side == 0 },
        }
    }

    /// Takes the reward of a test; whether it was the last.
    pub(super) fn observe(&mut self, test: TestPoint, reward: f64) -> bool {
        match test {
            TestPoint::Centre => self.centre.add(reward),
            TestPoint::Knob { knob, up } => {
                if let Some(sides) = self.knobs.get_mut(knob) {
                    sides[usize::from(up)].add(reward);
                }
            }
        }
        self.observed += 1;
        self.observed >= self.total()
    }

    /// By knob, how much better its better side was than the centre: only what can improve is worth learning.
    pub fn gains(&self) -> Vec<f64> {
        let centre = self.centre.mean().unwrap_or(0.0);
        let gain = |sides: &[Tally; 2]| {
            sides
                .iter()
                .filter_map(Tally::mean)
                .map(|r| r - centre)
                .fold(f64::NEG_INFINITY, f64::max)
        };
        self.knobs.iter().map(gain).collect()
    }

    /// The `count` knobs with the largest gains, in the order of the space.
    pub(super) fn best(&self, count: usize) -> Vec<usize> {
        let gains = self.gains();
        let mut order: Vec<usize> = (0..gains.len()).collect();
        order.sort_by(|&a, &b| gains[b].total_cmp(&gains[a]));
        order.truncate(count);
        order.sort_unstable();
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customize::Preset;

    /// Two tests of each side of so many knobs.
    fn relevance(knobs: usize) -> Relevance {
        Relevance::new(&Settings { select_repeats: 2, ..Settings::of(Preset::Pairs) }, knobs)
    }

    fn knob(knob: usize, up: bool) -> TestPoint {
        TestPoint::Knob { knob, up }
    }

    #[test]
    fn each_knob_is_tested_on_both_sides_of_a_test_of_the_centre() {
        let mut relevance = relevance(2);
        let pass = [
            knob(0, true),
            TestPoint::Centre,
            knob(0, false),
            knob(1, true),
            TestPoint::Centre,
            knob(1, false),
        ];
        for turn in 0..3 {
            assert_eq!([(); 6].map(|()| relevance.propose()), pass, "pass {turn}");
        }
    }

    #[test]
    fn it_is_over_with_the_last_result() {
        let mut relevance = relevance(2);
        for left in (1..=12).rev() {
            assert_eq!(relevance.left(), left);
            let test = relevance.propose();
            assert_eq!(relevance.observe(test, 1.0), left == 1);
        }
        assert_eq!(relevance.left(), 0);
        // A result that comes late is no harm.
        assert!(relevance.observe(TestPoint::Centre, 1.0));
        assert_eq!(relevance.left(), 0);
    }

    /// A knob is worth what its better side is better than the centre, both on the mean.
    #[test]
    fn the_knobs_that_can_improve_most_are_the_best() {
        let mut relevance = relevance(4);
        for (test, reward) in [
            (TestPoint::Centre, 9.0),
            (TestPoint::Centre, 11.0),
            // Only up is better, by 2 on the mean.
            (knob(0, true), 11.0),
            (knob(0, true), 13.0),
            (knob(0, false), 2.0),
            // Much worse on both sides.
            (knob(1, true), 0.0),
            (knob(1, false), -5.0),
            // Down is better by 3.
            (knob(2, false), 13.0),
            (knob(2, true), 12.0),
            // A knob that there is not.
            (knob(4, true), 1e9),
        ] {
            relevance.observe(test, reward);
        }
        assert_eq!(relevance.gains(), [2.0, -10.0, 3.0, f64::NEG_INFINITY]);
        assert_eq!(relevance.best(1), [2]);
        assert_eq!(relevance.best(2), [0, 2], "in the order of the space");
        assert_eq!(relevance.best(3), [0, 1, 2]);
        assert_eq!(relevance.best(9), [0, 1, 2, 3]);
    }
}
