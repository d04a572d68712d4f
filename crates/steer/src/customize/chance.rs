//! Which of some arms to try, by chance, and how likely each was.
//!
//! Thompson sampling (Thompson, Biometrika 1933) tries each arm as often as it is likely to be
//! best. How likely that is has no closed form, so it is counted in worlds that are drawn from the
//! model. The arm is then drawn by these counts, and by nothing else. So the probability that is
//! kept is the one by which the arm was chosen, and no estimate of it: what weighs results by it
//! has no error from the counting.

use serde::{Deserialize, Serialize};

use super::arms::{cholesky, highest};
use super::draw::Draws;
use super::point::Point;
use super::surrogate::Surrogate;

/// Worlds that are drawn: a probability of a half is counted to within 0.03.
const WORLDS: u32 = 256;

/// One of the arms among which chance chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    /// A point of the unit cube of the knobs, or another algorithm.
    pub point: Point,
    /// The probability by which it was chosen, 0 to 1; all arms together have 1.
    pub probability: f64,
    /// The reward that was expected of it then, in the unit of rewards.
    pub expected: f64,
}

/// Draws one of the arms, and says how likely each was, the chosen one first. None has less than
/// the probability `least`.
pub(super) fn draw(
    model: &Surrogate,
    arms: Vec<Point>,
    least: f64,
    draws: &mut Draws,
) -> Vec<Chance> {
    let (means, covariance) = model.jointly(&arms);
    let best = counts(&means, covariance, draws);
    let free = 1.0 - least * arms.len() as f64;
    let chance = |((point, expected), best): ((Point, f64), u32)| {
        let probability = least + free * f64::from(best) / f64::from(WORLDS);
        Chance { point, probability, expected }
    };
    let mut chances: Vec<Chance> = arms.into_iter().zip(means).zip(best).map(chance).collect();
    let mut left = draws.unit();
    let drawn = chances.iter().position(|chance| {
        left -= chance.probability;
        left < 0.0
    });
    // The probabilities add up to one but for rounding.
    chances.swap(0, drawn.unwrap_or(0));
    chances
}

/// In how many of the worlds each arm is the best one.
fn counts(means: &[f64], covariance: Vec<f64>, draws: &mut Draws) -> Vec<u32> {
    let count = means.len();
    let factor = cholesky(covariance, count);
    let mut best = vec![0; count];
    for _ in 0..WORLDS {
        let normal: Vec<f64> = (0..count).map(|_| draws.normal()).collect();
        let drawn = |(mean, row): (&f64, &[f64])| {
            mean + row.iter().zip(&normal).map(|(f, z)| f * z).sum::<f64>()
        };
        let world: Vec<f64> = means.iter().zip(factor.chunks(count)).map(drawn).collect();
        best[highest(&world)] += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customize::{Acquisition, Learner, Preset, Settings, Trial};

    fn settings(chance_min: f64) -> Settings {
        Settings { acquisition: Acquisition::Thompson, chance_min, ..Settings::of(Preset::Model) }
    }

    /// Two knobs and two other algorithms, after so many trials: rewards of 1, 2 and 3 less what
    /// the knobs are off, with noise.
    fn learner(chance_min: f64, trials: u64) -> Learner {
        let centre = vec![0.5, 0.5];
        let mut learner = Learner::new(settings(chance_min), centre.clone(), centre, 2).choosing(
            2,
            Point::other(1),
            Point::other(1),
        );
        let mut noise = Draws::new(99);
        for n in 0..trials {
            let trial = learner.propose(n);
            let worth = match trial.point.knobs() {
                Some(at) => 3.0 - at.iter().map(|x| (x - 0.6).powi(2)).sum::<f64>(),
                None => f64::from(trial.point.choice()),
            };
            learner.observe(&trial, Some(worth + 0.5 * noise.normal()), false);
        }
        learner
    }

    fn drawn(learner: &Learner, random: u64) -> Trial {
        learner.clone().propose(random)
    }

    /// Of two normal worths a unit apart, each with this deviation, the better one is better with
    /// Φ(1/√2/deviation): 0.7602 for one.
    #[test]
    fn an_arm_is_best_as_often_as_the_normal_distribution_says() {
        let mut sums = [0; 2];
        for seed in 0..40 {
            let counts = counts(&[0.0, 1.0], vec![1.0, 0.0, 0.0, 1.0], &mut Draws::new(seed));
            sums[0] += counts[0];
            sums[1] += counts[1];
        }
        assert_eq!(sums[0] + sums[1], 40 * WORLDS);
        let share = f64::from(sums[1]) / f64::from(40 * WORLDS);
        assert!((share - 0.7602).abs() < 0.012, "{share}");
        // What varies together is best by its mean alone.
        let together = counts(&[0.0, 0.01], vec![1.0; 4], &mut Draws::new(1));
        assert_eq!(together, [0, WORLDS]);
    }

    #[test]
    fn probabilities_add_up_to_one_and_none_is_below_the_least() {
        for (least, trials) in [(0.01, 4), (0.01, 60), (0.02, 60)] {
            let learner = learner(least, trials);
            let chances = (0..50).map(|random| drawn(&learner, random).chances);
            for chances in chances.filter(|chances| !chances.is_empty()) {
                let sum: f64 = chances.iter().map(|chance| chance.probability).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{sum}");
                assert!(chances.iter().all(|c| c.probability >= least), "{chances:?}");
                let others = chances.iter().filter(|c| c.point.choice() > 0).count();
                assert_eq!(others, 2, "each algorithm has its chance");
            }
        }
    }

    #[test]
    fn one_number_gives_one_choice_and_its_chances() {
        let learner = learner(0.01, 40);
        let trials: Vec<Trial> = (0..20).map(|random| drawn(&learner, random)).collect();
        for (random, trial) in trials.iter().enumerate() {
            assert_eq!(drawn(&learner, random as u64), *trial);
            assert_eq!(trial.chances.first().map(|c| &c.point), Some(&trial.point));
        }
        assert!(trials.iter().any(|trial| trial.point != trials[0].point));
    }

    /// Each algorithm is tried as often as its chances say, which is what makes weights right.
    #[test]
    fn arms_are_tried_as_often_as_their_probability_says() {
        let learner = learner(0.02, 10);
        let (mut tried, mut said) = ([0.0; 3], [0.0; 3]);
        for random in 0..2000 {
            let trial = drawn(&learner, random);
            tried[usize::from(trial.point.choice())] += 1.0;
            for chance in &trial.chances {
                said[usize::from(chance.point.choice())] += chance.probability;
            }
        }
        for (tried, said) in tried.iter().zip(said) {
            let deviation = said.max(1.0).sqrt();
            assert!((tried - said).abs() < 3.5 * deviation, "{tried} of {said}");
        }
    }

    /// The best arm wins most intervals in the end, as with the optimistic rule.
    #[test]
    fn what_is_best_comes_to_be_in_force() {
        let learner = learner(0.01, 150);
        let own = (0..200).filter(|&n| drawn(&learner, n).point.choice() == 0).count();
        assert!(own > 170, "{own} of 200");
    }

    /// A log of the optimistic rule has no chances: its choices are certain.
    #[test]
    fn the_optimistic_rule_leaves_nothing_to_chance() {
        let mut learner = learner(0.01, 40);
        learner.follow(&Settings::of(Preset::Model));
        assert!((0..20).all(|random| drawn(&learner, random).chances.is_empty()));
        learner.follow(&settings(0.01));
        assert!((0..20).any(|random| !drawn(&learner, random).chances.is_empty()));
    }

    /// What an engine wrote before there was a rule is read, and it writes nothing of the default.
    #[test]
    fn settings_of_before_are_those_of_the_optimistic_rule() {
        let text = serde_json::to_string(&Settings::of(Preset::Model)).unwrap();
        assert!(!text.contains("acquisition") && !text.contains("chance_min"), "{text}");
        let read: Settings = serde_json::from_str(&text).unwrap();
        assert_eq!(read, Settings::of(Preset::Model));
        let text = serde_json::to_string(&settings(0.02)).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings(0.02));
    }
}
