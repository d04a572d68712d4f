//! Which of some algorithms is best for one destination, by what its connections got: arms that are
//! categories, where [`Learner`](super::Learner) has continuous knobs.
//!
//! A reward is `level of the destination + the arm's worth + noise`. Of the level nothing is known
//! before the first reward. The worths have a prior: what each algorithm is worth on other paths,
//! or what a policy that saw the path expects, and how they vary together around that. All are
//! normal, so each reward is one step of a Kalman filter (Kalman, J. Basic Eng. 82, 1960).

use serde::{Deserialize, Serialize};

use super::SettingsError;
use super::draw::Draws;

/// Standard deviation of a destination's level before its first reward, in deviations of the noise:
/// nearly nothing is known of it.
const LEVEL: f64 = 100.0;

/// What is expected of the arms of a destination before anything is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmsPrior {
    /// The worth of each arm, in the unit of rewards. What all have in common does not matter.
    pub worths: Vec<f64>,
    /// Covariance of these worths between destinations, row by row.
    pub covariance: Vec<f64>,
    /// Standard deviation of a reward's noise; above 0.
    pub noise: f64,
    /// How much of the covariance comes back with each connection, since paths change: 0 to 1.
    pub drift: f64,
}

impl ArmsPrior {
    /// Arms whose worths vary alike and independently, with this standard deviation.
    pub fn alike(worths: &[f64], spread: f64, noise: f64) -> Self {
        let count = worths.len();
        let at = |i: usize| if i.is_multiple_of(count + 1) { spread * spread } else { 0.0 };
        let covariance = (0..count * count).map(at).collect();
        Self { worths: worths.to_vec(), covariance, noise, drift: 0.0 }
    }

    /// Checks every range.
    ///
    /// # Errors
    /// Names the first number that is outside its range: a count that does not fit, a covariance
    /// that none can be, a noise or a drift.
    pub fn check(&self) -> Result<(), SettingsError> {
        let count = self.worths.len();
        let size = self.covariance.len() as f64;
        let square = (count * count) as f64;
        let diagonal = (0..count).map(|i| self.covariance.get(i * (count + 1)).copied());
        let worths = self.worths.iter().map(|worth| ("worths", *worth, -1e6, 1e6));
        let fixed = [
            ("the number of worths", count as f64, 1.0, 64.0),
            ("the size of covariance", size, square, square),
            ("noise", self.noise, 1e-6, 1e6),
            ("drift", self.drift, 0.0, 1.0),
        ];
        let variances = diagonal.map(|v| ("a variance", v.unwrap_or(f64::NAN), 0.0, 1e12));
        let pairs = self.covariance.iter().map(|v| ("a covariance", *v, -1e12, 1e12));
        for (setting, value, min, max) in
            fixed.into_iter().chain(worths).chain(variances).chain(pairs)
        {
            if !(min..=max).contains(&value) {
                return Err(SettingsError { setting, value, min, max });
            }
        }
        Ok(())
    }
}

/// What one arm is worth compared with the mean of all: a normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// Its mean, in the unit of rewards.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// The arms of one destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arms {
    /// What each arm is expected to bring: the level and its worth.
    means: Vec<f64>,
    /// Covariance of these, row by row.
    covariance: Vec<f64>,
    noise2: f64,
    /// What each connection adds to the covariance.
    drift: Vec<f64>,
}

impl Arms {
    /// Arms of which nothing is known but what is expected.
    ///
    /// # Errors
    /// See [`ArmsPrior::check`].
    pub fn new(prior: &ArmsPrior) -> Result<Self, SettingsError> {
        prior.check()?;
        let noise2 = prior.noise * prior.noise;
        let level = LEVEL * LEVEL * noise2;
        Ok(Self {
            means: prior.worths.clone(),
            covariance: prior.covariance.iter().map(|c| c + level).collect(),
            noise2,
            drift: prior.covariance.iter().map(|c| prior.drift * c).collect(),
        })
    }

    /// How many arms there are: one at least.
    pub fn count(&self) -> usize {
        self.means.len()
    }

    /// Takes the reward of a connection that ran this arm. One that is not finite, and a number
    /// that no arm has, are passed over.
    pub fn observe(&mut self, arm: usize, reward: f64) {
        if arm >= self.count() || !reward.is_finite() {
            return;
        }
        self.covariance.iter_mut().zip(&self.drift).for_each(|(c, d)| *c += d);
        let count = self.count();
        let toward: Vec<f64> = self.covariance.chunks(count).map(|row| row[arm]).collect();
        let (expected, spread) = (self.means[arm], toward[arm] + self.noise2);
        for (mean, toward) in self.means.iter_mut().zip(&toward) {
            *mean += toward / spread * (reward - expected);
        }
        for (row, a) in self.covariance.chunks_mut(count).zip(&toward) {
            row.iter_mut().zip(&toward).for_each(|(c, b)| *c -= a * b / spread);
        }
    }

    /// What each arm is worth by what is known now.
    pub fn worths(&self) -> Vec<Worth> {
        let count = self.count();
        let mean = self.means.iter().sum::<f64>() / count as f64;
        let covariance = self.contrasts();
        let worth = |(i, own): (usize, &f64)| Worth {
            mean: own - mean,
            deviation: covariance[i * (count + 1)].max(0.0).sqrt(),
        };
        self.means.iter().enumerate().map(worth).collect()
    }

    /// The arm of the highest expected worth, the first of equals.
    pub fn best(&self) -> usize {
        highest(&self.means)
    }

    /// The arm that is best in a world that is drawn from what is known (Thompson, Biometrika
    /// 1933): each arm as often as it is likely to be best. The same `draw` gives the same arm.
    pub fn draw(&self, draw: u64) -> usize {
        let count = self.count();
        let factor = cholesky(self.contrasts(), count);
        let mut draws = Draws::new(draw);
        let normal: Vec<f64> = (0..count).map(|_| draws.normal()).collect();
        let drawn = |(mean, row): (&f64, &[f64])| {
            mean + row.iter().zip(&normal).map(|(f, z)| f * z).sum::<f64>()
        };
        let worlds: Vec<f64> = self.means.iter().zip(factor.chunks(count)).map(drawn).collect();
        highest(&worlds)
    }

    /// The covariance of the arms' differences from their mean, in which the level has no part.
    fn contrasts(&self) -> Vec<f64> {
        let count = self.count();
        let of = |row: &[f64]| row.iter().sum::<f64>() / count as f64;
        let rows: Vec<f64> = self.covariance.chunks(count).map(of).collect();
        let all = of(&rows);
        let at = |(i, c): (usize, &f64)| c - rows[i / count] - rows[i % count] + all;
        self.covariance.iter().enumerate().map(at).collect()
    }
}

/// The place of the highest number, the first of equals.
pub(super) fn highest(numbers: &[f64]) -> usize {
    let better = |best: usize, i: usize| if numbers[i] > numbers[best] { i } else { best };
    (0..numbers.len()).fold(0, better)
}

/// The lower factor of a covariance, which may be singular: what varies not at all has a row of 0.
pub(super) fn cholesky(mut matrix: Vec<f64>, count: usize) -> Vec<f64> {
    let scale = (0..count).map(|i| matrix[i * (count + 1)]).fold(0.0, f64::max);
    for j in 0..count {
        for i in 0..j {
            matrix[i * count + j] = 0.0;
        }
        let before: f64 = (0..j).map(|k| matrix[j * count + k].powi(2)).sum();
        let left = matrix[j * count + j] - before;
        let pivot = if left > 1e-9 * scale { left.sqrt() } else { 0.0 };
        for i in j + 1..count {
            let dot: f64 = (0..j).map(|k| matrix[i * count + k] * matrix[j * count + k]).sum();
            let rest = matrix[i * count + j] - dot;
            matrix[i * count + j] = if pivot > 0.0 { rest / pivot } else { 0.0 };
        }
        matrix[j * count + j] = pivot;
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Independent arms with a spread of 0.2 and a noise of 0.1.
    fn arms(worths: &[f64]) -> Arms {
        Arms::new(&ArmsPrior::alike(worths, 0.2, 0.1)).expect("a prior")
    }

    #[test]
    fn before_any_reward_the_prior_decides() {
        let arms = arms(&[0.0, 0.3, 0.1]);
        assert_eq!((arms.best(), arms.count()), (1, 3));
        let worths = arms.worths();
        // Against the mean of three: 2/3 of the variance.
        let deviation = (0.04_f64 * 2.0 / 3.0).sqrt();
        assert!((worths[1].mean - 0.5 / 3.0).abs() < 1e-9);
        assert!(
            worths.iter().all(|worth| (worth.deviation - deviation).abs() < 1e-6),
            "{worths:?}"
        );
    }

    /// By hand: the difference of two arms has a prior of 0 and 0.08, and one reward each says 0.5
    /// with 0.02.
    #[test]
    fn the_posterior_is_that_of_the_random_effects_model() {
        let mut arms = arms(&[0.0, 0.0]);
        arms.observe(0, 5.0);
        arms.observe(1, 5.5);
        let [first, second] = arms.worths()[..] else { panic!("two arms") };
        assert!((second.mean - first.mean - 0.4).abs() < 1e-4, "{first:?} {second:?}");
        // 1 / (1/0.08 + 1/0.02) = 0.016; half of that difference, so a quarter of its variance.
        assert!((second.deviation - 0.004_f64.sqrt()).abs() < 1e-4, "{second:?}");
        assert_eq!(arms.best(), 1);
    }

    /// What all rewards have in common is the destination's level and says nothing of the arms.
    #[test]
    fn the_level_of_a_destination_favours_no_arm() {
        let of = |level: f64| {
            let mut arms = arms(&[0.0, 0.1, 0.2]);
            for (arm, reward) in [(2, 0.0), (1, 0.2), (2, 0.1), (0, 0.05), (1, 0.3)] {
                arms.observe(arm, level + reward);
            }
            (arms.worths(), (0..20).map(|seed| arms.draw(seed)).collect::<Vec<_>>())
        };
        let (here, there) = (of(0.0), of(-7.0));
        for (a, b) in here.0.iter().zip(&there.0) {
            assert!((a.mean - b.mean).abs() < 0.01, "{a:?} {b:?}");
        }
        // One reward of one arm is the level's: the untried keep their prior's order.
        let mut arms = arms(&[0.0, 0.1, 0.2]);
        arms.observe(2, -7.0);
        assert_eq!(arms.best(), 2);
    }

    /// Two arms that are alike everywhere: what one brings tells of the other.
    #[test]
    fn arms_that_vary_together_are_learnt_together() {
        let covariance = vec![0.04, 0.039, 0.0, 0.039, 0.04, 0.0, 0.0, 0.0, 0.04];
        let prior = ArmsPrior { worths: vec![0.0; 3], covariance, noise: 0.1, drift: 0.0 };
        let mut arms = Arms::new(&prior).expect("a prior");
        for _ in 0..4 {
            arms.observe(0, 0.0);
            arms.observe(2, 0.5);
        }
        let worths = arms.worths();
        assert!(
            (worths[0].mean - worths[1].mean).abs() < 0.02 && worths[1].mean < -0.1,
            "{worths:?}"
        );
    }

    #[test]
    fn draws_try_each_arm_as_often_as_it_may_be_best() {
        let mut arms = arms(&[0.0, 0.0, 0.0]);
        let counts = |arms: &Arms| {
            let mut counts = [0; 3];
            (0..3000).for_each(|seed| counts[arms.draw(seed)] += 1);
            counts
        };
        assert!(
            counts(&arms).iter().all(|count| (900..1100).contains(count)),
            "{:?}",
            counts(&arms)
        );
        assert_eq!(arms.draw(9), arms.draw(9));
        for _ in 0..6 {
            arms.observe(0, 0.0);
            arms.observe(1, 0.4);
        }
        // The first is known to be worse. The third, which nobody tried, may be better than the second.
        let [first, second, third] = counts(&arms);
        assert!(first < 3 && (100..900).contains(&third), "{first} {second} {third}");
    }

    /// On many paths with noise the arm that is tried comes to be the best one.
    #[test]
    fn regret_falls_with_each_visit() {
        let mut at = [0.0; 20];
        for path in 0..400_u64 {
            let mut world = Draws::new(path);
            let truth: [f64; 4] = std::array::from_fn(|_| 0.2 * world.normal());
            let most = truth.iter().copied().fold(f64::MIN, f64::max);
            let mut arms = arms(&[0.0; 4]);
            for (visit, regret) in at.iter_mut().enumerate() {
                let arm = arms.draw(path * 100 + visit as u64);
                *regret += (most - truth[arm]) / 400.0;
                arms.observe(arm, -3.0 + truth[arm] + 0.1 * world.normal());
            }
        }
        assert!(at[0] > 0.17 && at[8] < 0.07 && at[19] < 0.03, "{at:?}");
    }

    /// A path that changed is learnt anew, since uncertainty comes back with each connection.
    #[test]
    fn another_arm_becomes_best_when_the_path_changes() {
        let prior = ArmsPrior { drift: 0.05, ..ArmsPrior::alike(&[0.0, 0.0], 0.2, 0.1) };
        let mut arms = Arms::new(&prior).expect("a prior");
        let visit = |arms: &mut Arms, best: usize| {
            for i in 0..40 {
                arms.observe(i % 2, if i % 2 == best { 1.0 } else { 0.8 });
            }
            arms.best()
        };
        assert_eq!(visit(&mut arms, 0), 0);
        assert_eq!(visit(&mut arms, 1), 1);
        // And it is never surer than the drift lets it be.
        assert!(arms.worths()[0].deviation > 0.02, "{:?}", arms.worths());
    }

    #[test]
    fn priors_outside_their_range_are_named() {
        let good = ArmsPrior::alike(&[0.0, 0.1], 0.2, 0.1);
        assert_eq!(good.check(), Ok(()));
        let said = |prior: ArmsPrior| Arms::new(&prior).unwrap_err().to_string();
        let wrong = said(ArmsPrior { drift: 1.5, ..good.clone() });
        assert_eq!(wrong, "drift = 1.5 is outside its range 0 to 1");
        let wrong = said(ArmsPrior { covariance: vec![0.0; 3], ..good.clone() });
        assert_eq!(wrong, "the size of covariance = 3 is outside its range 4 to 4");
        assert!(said(ArmsPrior { noise: f64::NAN, ..good }).starts_with("noise = NaN"));
        assert!(said(ArmsPrior::alike(&[], 0.2, 0.1)).starts_with("the number of worths = 0"));
    }

    #[test]
    fn what_is_no_reward_changes_nothing() {
        let mut arms = arms(&[0.0, 0.0]);
        arms.observe(1, 2.0);
        let before = arms.clone();
        arms.observe(0, f64::NAN);
        arms.observe(1, f64::INFINITY);
        arms.observe(2, 1.0);
        assert_eq!(arms, before);
    }
}
