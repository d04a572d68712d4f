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
    /// Whether a guard was broken in one of them.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    broke: bool,
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

    /// Whether a guard was broken in one of those.
    pub fn broke(&self) -> bool {
        self.broke
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
        self.broke = broken || (self.broke && self.bad > 0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::customize::Preset;

    fn settings() -> Settings {
        Settings { alarm_after: 3, alarm_deviations: 2.0, ..Settings::of(Preset::Pairs) }
    }

    /// A watch that has seen these rewards, none of which was an alarm.
    fn after(rewards: impl IntoIterator<Item = f64>) -> Watch {
        let mut watch = Watch::default();
        for reward in rewards {
            assert_eq!(watch.note(&settings(), reward, false), None);
        }
        watch
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_rewards() {
        let watch = after([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert!((watch.mean() - 5.0).abs() < 1e-9 && (watch.deviation() - 2.0).abs() < 1e-9);
        assert!((watch.limit(&settings()).unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_unusual_before_there_is_a_usual() {
        assert_eq!(after([5.0; 7]).limit(&settings()), None);
        assert_eq!(after([5.0, 5.0, 5.0, -1e9, 5.0, 5.0, 5.0]).bad(), 0);
        assert!(after([5.0; 8]).limit(&settings()).is_some());
    }

    /// Two deviations of a fiftieth of the mean each, also of a mean below zero.
    #[test]
    fn rewards_that_never_vary_may_fall_a_little() {
        for (mean, limit) in [(5.0, 4.8), (-5.0, -5.2)] {
            let got = after([mean; 20]).limit(&settings()).unwrap();
            assert!((got - limit).abs() < 1e-9, "{got} {limit}");
        }
    }

    /// About fifty rewards are looked back on.
    #[test]
    fn what_was_usual_long_ago_is_not_now() {
        let mut watch = after([5.0; 1000]);
        (0..50).for_each(|_| assert_eq!(watch.note(&settings(), 6.0, false), None));
        assert!((5.5..5.8).contains(&watch.mean()), "{watch:?}");
        assert!((0.3..0.6).contains(&watch.deviation()), "{watch:?}");
    }

    #[test]
    fn bad_rewards_in_a_row_are_an_alarm_and_do_not_become_usual() {
        let mut watch = after([5.0; 20]);
        let usual = (watch.mean(), watch.deviation());
        for bad in 1..=2 {
            assert_eq!(watch.note(&settings(), 1.0, false), None);
            assert_eq!((watch.bad(), watch.mean(), watch.deviation()), (bad, usual.0, usual.1));
        }
        let limit = watch.limit(&settings()).unwrap();
        let alarm = watch.note(&settings(), 1.0, false);
        assert_eq!(alarm, Some(Alarm::Reward { mean: 5.0, limit }));
    }

    #[test]
    fn a_good_reward_between_bad_ones_ends_their_row() {
        let mut watch = after([5.0; 20]);
        for _ in 0..5 {
            for (reward, bad) in [(1.0, 1), (1.0, 2), (5.0, 0)] {
                assert_eq!(watch.note(&settings(), reward, false), None);
                assert_eq!(watch.bad(), bad);
            }
        }
        // The limit itself is good.
        let limit = watch.limit(&settings()).unwrap();
        watch.note(&settings(), limit, false);
        assert_eq!(watch.bad(), 0);
    }

    #[test]
    fn a_broken_guard_counts_as_a_bad_reward() {
        let mut watch = after([5.0; 20]);
        let notes = [(5.0, true), (1.0, false), (5.0, true)];
        let alarms = notes.map(|(reward, broken)| watch.note(&settings(), reward, broken));
        assert_eq!(alarms, [None, None, Some(Alarm::Guard)]);
    }

    /// Where the limit is 2 below the mean, 4 below is severe.
    #[test]
    fn an_alarm_is_severe_twice_as_far_below_the_mean() {
        let alarm = Alarm::Reward { mean: 5.0, limit: 3.0 };
        assert!(Watch::is_severe(&alarm, 0.9));
        assert!(!Watch::is_severe(&alarm, 1.0) && !Watch::is_severe(&alarm, 2.0));
        assert!(!Watch::is_severe(&Alarm::Guard, -1e9));
        assert!(!Watch::is_severe(&Alarm::Debt { debt: 99.0 }, -1e9));
    }
}
