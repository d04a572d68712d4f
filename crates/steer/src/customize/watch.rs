//! What is usual, and when to give up (paper 002 §4.3, "Safety").

use serde::{Deserialize, Serialize};

use super::Settings;

/// Rewards before there is a "usual" to be worse than.
const USUAL_AFTER: u32 = 8;
/// Rewards that the running mean and deviation look back on, about.
const MEMORY: u32 = 50;

/// Running mean and deviation of the rewards, and how many in a row were bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    count: u32,
    mean: f64,
    variance: f64,
    bad: u32,
}

/// Why the safe configuration is in force.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Alarm {
    /// The reward was persistently below its mean.
    Reward {
        /// The mean that it was measured by.
        mean: f64,
        /// The limit that it was below.
        limit: f64,
    },
    /// A guard was persistently broken: loss or latency were uncharacteristically high.
    Guard,
    /// The sum of the rewards has fallen behind what the safe configuration is expected to have brought.
    Debt {
        /// By so many standard deviations of one reward's noise.
        debt: f64,
    },
}

impl Watch {
    /// The running mean of the rewards.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The running standard deviation of the rewards.
    pub fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Bad intervals in a row until now.
    pub fn bad(&self) -> u32 {
        self.bad
    }

    /// The reward below which an interval is bad, once there is a usual one.
    pub fn limit(&self, settings: &Settings) -> Option<f64> {
        // A reward that never varies would make any difference an alarm.
        let spread = self.deviation().max(0.02 * self.mean.abs());
        (self.count >= USUAL_AFTER).then_some(self.mean - settings.alarm_deviations * spread)
    }

    /// Whether an alarm is of so bad a reward that the network must be another one: twice as far
    /// below the mean as is bad. After others it is for the rewards of the safe configuration to
    /// tell.
    pub(super) fn is_severe(alarm: &Alarm, reward: f64) -> bool {
        match alarm {
            Alarm::Reward { mean, limit } => reward < 2.0 * limit - mean,
            Alarm::Guard | Alarm::Debt { .. } => false,
        }
    }

    /// Takes the reward of an interval; the alarm when it was the last of too many bad ones.
    pub(super) fn note(&mut self, settings: &Settings, reward: f64, broken: bool) -> Option<Alarm> {
        let limit = self.limit(settings);
        let low = limit.is_some_and(|limit| reward < limit);
        self.bad = if low || broken { self.bad + 1 } else { 0 };
        if self.bad >= settings.alarm_after {
            return Some(match limit.filter(|_| low) {
                Some(limit) => Alarm::Reward { mean: self.mean, limit },
                None => Alarm::Guard,
            });
        }
        // Bad ones do not become usual while it is not known whether they persist.
        if self.bad == 0 {
            self.learn(reward);
        }
        None
    }

    fn learn(&mut self, reward: f64) {
        self.count = (self.count + 1).min(MEMORY);
        let weight = 1.0 / f64::from(self.count);
        let off = reward - self.mean;
        self.mean += weight * off;
        self.variance += weight * (off * (reward - self.mean) - self.variance);
    }
}
