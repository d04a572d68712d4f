//! What others on the links lose by what is in force, and what is not tried any more because of it.
//!
//! A learner sees its own rewards alone, so what takes from others looks as good as what finds free
//! capacity. The bound is a constraint next to the reward (Gardner et al., "Bayesian optimization
//! with inequality constraints", ICML 2014), and no price: a gain of any size buys no more harm
//! than is permitted.

use serde::{Deserialize, Serialize};

use super::Settings;
use super::memory::{Cell, Memory};
use super::point::{At, Point};

/// How far apart in the knobs' unit cube points do harm alike: the deviation of a Gaussian.
const LENGTH: f64 = 0.15;
/// Before anything is known, a point counts as tried this often without harm.
const HARMLESS: f64 = 1.0;
/// The most points that are distinguished.
const CELLS: usize = 16;
/// Harm no further from none than this counts, either way: one wild interval is no more than this.
const FURTHEST: f64 = 1.0;

/// What is known of the harm of points and of other algorithms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Harms {
    memory: Memory,
}

impl Harms {
    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.memory.cells().is_empty()
    }

    /// Takes the harm of a trial, as a share of what others get under the safe configuration.
    pub(super) fn note(&mut self, settings: &Settings, point: &Point, harm: f64) {
        let harm = harm.clamp(-FURTHEST, FURTHEST);
        self.memory.take(Cell::new(point, harm), settings.keep, CELLS);
    }

    /// The harm that is expected of a point: the mean of that of trials near it (Nadaraya and
    /// Watson's kernel regression, with a prior of no harm).
    pub(super) fn expected(&self, point: At<'_>) -> f64 {
        let near = |cell: &Cell| {
            let off = |(a, b): (f64, &f64)| (a - b).powi(2);
            let square: f64 = cell.knobs().into_iter().zip(point.knobs).map(off).sum();
            let is_same = cell.choice() == point.choice;
            if is_same { libm::exp(-0.5 * square / (LENGTH * LENGTH)) } else { 0.0 }
        };
        let (mut weight, mut sum) = (HARMLESS, 0.0);
        for cell in self.memory.cells() {
            let counts = cell.weight() * near(cell);
            weight += counts;
            sum += counts * cell.mean();
        }
        sum / weight
    }

    /// Whether a point may be in force: no more harm is expected of it than `harm_max`.
    pub(super) fn permits(&self, settings: &Settings, point: At<'_>) -> bool {
        self.is_empty() || self.expected(point) <= settings.harm_max
    }

    /// The network is another one: what is known counts so much of what it did.
    pub(super) fn fade(&mut self, keep: f64) {
        self.memory.fade(keep);
    }

    /// Points are those of another unit cube from now on.
    pub(super) fn carry_over(&mut self, to: impl Fn(&[f64]) -> Vec<f64>) {
        self.memory.carry_over(to);
    }

    /// Other algorithms have other numbers from now on.
    pub(super) fn renumber(&mut self, to: impl Fn(u8) -> Option<u8>) {
        self.memory.renumber(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customize::{Known, Learner, Preset, Purpose, Reward};

    fn settings(harm_max: f64) -> Settings {
        Settings { harm_max, ..Settings::of(Preset::Model) }
    }

    /// By hand: of trials with 0.4 and 0.5 and the prior, the mean is 0.9/3, but for fading.
    #[test]
    fn what_is_expected_is_the_mean_of_trials_with_one_that_does_no_harm() {
        let settings = Settings { keep: 1.0, ..settings(0.1) };
        let mut harms = Harms::default();
        assert!(harms.permits(&settings, (&Point::other(1)).into()));
        for harm in [0.4, 0.5] {
            harms.note(&settings, &Point::other(1), harm);
        }
        let expected = |point: &Point| harms.expected(point.into());
        assert!((expected(&Point::other(1)) - 0.3).abs() < 1e-6);
        assert_eq!((expected(&Point::other(2)), expected(&vec![0.5].into())), (0.0, 0.0));
        assert!(!harms.permits(&settings, (&Point::other(1)).into()));
        assert!(harms.permits(&settings, (&Point::other(2)).into()));
    }

    #[test]
    fn harm_is_alike_near_a_point_and_unknown_far_from_it() {
        let settings = settings(0.1);
        let mut harms = Harms::default();
        (0..5).for_each(|_| harms.note(&settings, &vec![0.8, 0.5].into(), 0.3));
        let permits = |x: f64| harms.permits(&settings, (&[x, 0.5]).into());
        assert!(!permits(0.8) && !permits(0.65) && permits(0.2));
        let mut harms = Harms::default();
        harms.note(&settings, &vec![0.8, 0.5].into(), -7.0);
        assert_eq!(harms.expected((&[0.8, 0.5]).into()), -0.5, "one interval is no more than 1");
    }

    /// The incumbent 1, an algorithm that is better and takes from others, one that is a little
    /// better and does not, and knobs that are worse: what is in force in 150 intervals, how often,
    /// by algorithm.
    fn in_force(harm_max: f64, acquisition: crate::customize::Acquisition) -> [u32; 4] {
        let settings = Settings { acquisition, ..settings(harm_max) };
        let centre = vec![0.5];
        let (safe, knobs) = (Point::other(1), centre.clone());
        let mut learner = Learner::new(settings, centre, knobs, 1).choosing(3, safe.clone(), safe);
        let mut counts = [0; 4];
        for n in 0..150_u64 {
            let trial = learner.propose(n * 7919);
            let choice = usize::from(trial.point.choice());
            counts[choice] += 1;
            let noise = 0.1 * ((n * 37 % 11) as f64 / 5.0 - 1.0);
            let (value, harm) = [(1.0, 0.0), (2.0, 0.0), (4.0, 0.4), (2.5, 0.02)][choice];
            let harm = (choice != 1).then_some(harm + noise);
            let reward = Reward { value: value + noise, error: None, harm };
            learner.observe_knowing(&trial, Some(reward), false, &Known::default());
        }
        counts
    }

    #[test]
    fn what_takes_more_from_others_than_is_permitted_is_not_tried_again() {
        use crate::customize::Acquisition::{Optimistic, Thompson};
        for acquisition in [Optimistic, Thompson] {
            let bounded = in_force(0.1, acquisition);
            assert!(bounded[2] <= 4, "{bounded:?}");
            assert!(bounded[3] > 100, "{bounded:?}");
            let unbounded = in_force(1.0, acquisition);
            assert!(unbounded[2] > 100, "{unbounded:?}");
        }
    }

    /// Without another algorithm the safe point of the knobs is in force.
    #[test]
    fn where_nothing_is_permitted_the_safe_configuration_is_in_force() {
        let safe = vec![0.1];
        let mut learner = Learner::new(settings(0.1), vec![0.9], safe.clone(), 1);
        let mut late = Vec::new();
        for n in 0..80_u64 {
            let trial = learner.propose(n);
            let at = trial.point[0];
            if n >= 60 {
                late.push((at, trial.purpose));
            }
            let harm = (at != safe[0]).then_some(0.8);
            let reward = Reward { value: 1.0 + at, error: None, harm };
            learner.observe_knowing(&trial, Some(reward), false, &Known::default());
        }
        let is_safe = |(at, _): &&(f64, Purpose)| (*at - 0.1).abs() < 0.02;
        assert!(late.iter().filter(is_safe).count() >= 15, "{late:?}");
    }
}
