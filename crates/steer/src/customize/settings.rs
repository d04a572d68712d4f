//! How a learner learns.

use serde::{Deserialize, Serialize};

/// How the gradient of the reward is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// One random point each time: g = r·x (paper 002 §4.2, steps 2 to 5), the reward less its running mean.
    OnePoint,
    /// Two opposite points in two intervals: g = (r₊ − r₋)/2·x. What both have in common cancels exactly.
    Pairs,
    /// No gradient: a model of the reward over the permitted box, by all trials that are remembered.
    Model,
}

/// How a model chooses what to try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acquisition {
    /// Where the expected reward and its standard error add up to most (Srinivas et al., ICML
    /// 2010). Each choice is certain.
    #[default]
    Optimistic,
    /// Each arm as often as it is likely to be best (Thompson, Biometrika 1933), and never more
    /// seldom than `chance_min`. Each choice has a probability, which the log keeps, so that the
    /// log says what other choices would have brought.
    Thompson,
}

impl Acquisition {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a model forgets what it knows of a network that has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forgetting {
    /// Each trial counts `keep` times as much with each one after it, and three rewards in a row
    /// that are off by two standard errors begin anew.
    #[default]
    Fading,
    /// Nothing fades. What rewards are off by adds up (CUSUM: Page, Biometrika 1954), and where
    /// that is too much, what is older than the change is forgotten.
    ChangePoints,
}

impl Forgetting {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The probability that each arm has at least, where chance chooses.
const CHANCE_MIN: f64 = 0.01;

/// No bound: nobody loses more than everything.
const fn unbounded() -> f64 {
    1.0
}

const fn chance_min() -> f64 {
    CHANCE_MIN
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it in so")]
fn is_chance_min(value: &f64) -> bool {
    *value == CHANCE_MIN
}

/// A named set of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// As the paper writes it: one point, fixed steps, momentum, averaged estimates.
    Paper,
    /// Opposite points, steps that shrink.
    Pairs,
    /// A model of the reward, which what other contexts and aggregates found goes into.
    #[default]
    Model,
}

/// How a learner learns. Lengths are shares of a knob's range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How the gradient is estimated.
    pub estimator: Estimator,
    /// φ of §4.2: how far from the centre the first trials lie; of a model, in each knob and always.
    pub radius: f64,
    /// The least that φ shrinks to; the same as `radius` for one that does not shrink.
    pub radius_min: f64,
    /// η of §4.2, for rewards of one standard deviation.
    pub rate: f64,
    /// The weight of the previous steps in each step (§4.3), 0 to below 1.
    pub momentum: f64,
    /// Estimates that are averaged for a step (§4.3).
    pub average: u32,
    /// The most that the centre moves in one step.
    pub step_max: f64,
    /// Steps until φ and η are a half of what they were at first, and after three times as many a quarter; 0: never.
    pub halving: u32,
    /// Of a model: by how many standard errors a trial may be worse than the best guess is expected to be.
    pub optimism: f64,
    /// Of a model: how it chooses what to try.
    #[serde(default, skip_serializing_if = "Acquisition::is_default")]
    pub acquisition: Acquisition,
    /// Of a model whose choices chance makes: the probability that each arm has at least.
    #[serde(default = "chance_min", skip_serializing_if = "is_chance_min")]
    pub chance_min: f64,
    /// Of a model: how it forgets.
    #[serde(default, skip_serializing_if = "Forgetting::is_default")]
    pub forgetting: Forgetting,
    /// Of a model that fades: how much less a trial counts with each one after it.
    pub keep: f64,
    /// Of a model: points that it tells apart.
    pub cells: u32,
    /// Of a model: what flows of others may lose, as a share of the throughput that they get under
    /// the safe configuration. 1: no bound.
    #[serde(default = "unbounded")]
    pub harm_max: f64,
    /// Of a model: how far the sum of rewards may fall behind what the safe configuration is
    /// expected to bring, in standard deviations of one reward's noise.
    pub debt_max: f64,
    /// Bad intervals in a row until the safe configuration is in force.
    pub alarm_after: u32,
    /// A reward is bad when it is below the mean by so many standard deviations.
    pub alarm_deviations: f64,
    /// Intervals that the safe configuration stays in force before learning restarts from it.
    pub rest: u32,
    /// Intervals from one selection of the knobs that matter to the next; 0: the first knobs stay.
    pub select_every: u32,
    /// How far from the centre a knob is tested, both ways.
    pub select_reach: f64,
    /// Intervals for each of a knob's two tests.
    pub select_repeats: u32,
}

impl Settings {
    /// The settings of a preset.
    pub fn of(preset: Preset) -> Self {
        let common = Self {
            estimator: Estimator::Pairs,
            radius: 0.15,
            radius_min: 0.05,
            rate: 0.10,
            momentum: 0.5,
            average: 2,
            step_max: 0.15,
            halving: 30,
            optimism: 1.0,
            acquisition: Acquisition::Optimistic,
            chance_min: CHANCE_MIN,
            forgetting: Forgetting::Fading,
            keep: 0.99,
            cells: 24,
            harm_max: unbounded(),
            debt_max: 10.0,
            // Reference K4.
            alarm_after: 3,
            alarm_deviations: 2.0,
            rest: 3,
            select_every: 0,
            select_reach: 0.25,
            select_repeats: 2,
        };
        match preset {
            // φ, η, momentum and averaging: the paper gives none; reference learned.md §4 suggests these.
            Preset::Paper => Self {
                estimator: Estimator::OnePoint,
                radius: 0.1,
                radius_min: 0.1,
                rate: 0.05,
                momentum: 0.5,
                average: 4,
                halving: 0,
                ..common
            },
            Preset::Pairs => common,
            Preset::Model => {
                Self { estimator: Estimator::Model, radius: 0.25, radius_min: 0.25, ..common }
            }
        }
    }

    /// Checks every range.
    ///
    /// # Errors
    /// Names the first setting that is outside its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let ranges = [
            ("radius", self.radius, 1e-3, 0.5),
            ("radius_min", self.radius_min, 1e-3, self.radius),
            ("rate", self.rate, 0.0, 10.0),
            ("momentum", self.momentum, 0.0, 0.99),
            ("average", f64::from(self.average), 1.0, 1000.0),
            ("step_max", self.step_max, 1e-3, 1.0),
            ("halving", f64::from(self.halving), 0.0, 1e6),
            ("optimism", self.optimism, 0.0, 10.0),
            // Of the most arms that there may be, 22, all together have less than a half by it.
            ("chance_min", self.chance_min, 0.001, 0.02),
            ("keep", self.keep, 0.5, 1.0),
            ("cells", f64::from(self.cells), 4.0, 64.0),
            ("harm_max", self.harm_max, 0.0, 1.0),
            ("debt_max", self.debt_max, 1.0, 1e6),
            ("alarm_after", f64::from(self.alarm_after), 1.0, 1000.0),
            ("alarm_deviations", self.alarm_deviations, 0.5, 100.0),
            ("rest", f64::from(self.rest), 0.0, 1000.0),
            ("select_every", f64::from(self.select_every), 0.0, 1e6),
            ("select_reach", self.select_reach, 1e-3, 1.0),
            ("select_repeats", f64::from(self.select_repeats), 1.0, 100.0),
        ];
        for (setting, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                return Err(SettingsError { setting, value, min, max });
            }
        }
        Ok(())
    }
}

/// A setting that is outside its range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{setting} = {value} is outside its range {min} to {max}")]
pub struct SettingsError {
    /// Which one.
    pub setting: &'static str,
    /// Its value.
    pub value: f64,
    /// The least that it may be.
    pub min: f64,
    /// The most that it may be.
    pub max: f64,
}
