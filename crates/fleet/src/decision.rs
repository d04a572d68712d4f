//! Everything about one decision: what was tried, what came back, and why it changed.

use core::fmt;

use serde::{Deserialize, Serialize};
use trimtab_steer::customize::{Alarm, Finding, Lesson, Outcome, Point, Purpose};

use crate::experiment::Part;
use crate::{Chosen, Harm, Interval, Key, Service, SideBySide};

/// Where a reward comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardSource {
    /// The service's reward.
    Reward,
    /// Its surrogate, since statistics of the reward were missing (paper 002 §3.3).
    Surrogate,
    /// Nothing: too few connections, or no statistics for either formula.
    Missing,
}

/// The algorithms of a decision, as the service's description writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Algorithms {
    /// What was in force.
    pub tried: String,
    /// The best guess before it.
    pub before: String,
    /// The best guess after it.
    pub after: String,
}

/// One of the arms among which chance chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Odds {
    /// The values of the knobs under `[knobs]`, in their order, or another algorithm.
    pub arm: Chosen,
    /// The probability by which it was chosen, 0 to 1; all arms together have 1.
    pub probability: f64,
    /// The reward that was expected of it then.
    pub expected: f64,
}

/// What became of an interval. Its [`Display`](fmt::Display) is a sentence or two for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The aggregate.
    pub key: Key,
    /// The interval that is decided on.
    pub interval: Interval,
    /// Its context, by name.
    pub context: String,
    /// The version of the configuration that was in force.
    pub version: u64,
    /// The knobs that were in force.
    pub tried: Vec<(String, f64)>,
    /// The algorithms, where the service has a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithms: Option<Algorithms>,
    /// Why those.
    pub purpose: Purpose,
    /// The arms among which chance chose, the one that was in force first; empty where the choice
    /// was certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chances: Vec<Odds>,
    /// Which part of an experiment it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Connections that were reported.
    pub connections: u64,
    /// The statistics that reward, surrogate and guards read, those that the service names under
    /// `statistics`, and the mean round-trip time and loss, with their values.
    pub statistics: Vec<(String, f64)>,
    /// What the reward is, of which formula.
    pub source: RewardSource,
    /// The reward, if there is one.
    pub reward: Option<f64>,
    /// The standard error of that by chance of which connections there were, in the unit of
    /// rewards; none where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// How it compared with its control, where arms ran side by side. Then the reward is that of the
    /// control in the first pair of this context, and the difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_by_side: Option<SideBySide>,
    /// What flows of others are estimated to lose by what was tried; none of the safe
    /// configuration, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<Harm>,
    /// The guards that were broken.
    pub broken: Vec<String>,
    /// What was learnt: what is usual, the gradient, a step, an alarm.
    pub lesson: Lesson,
    /// The knobs that are learnt at present, by name.
    pub active: Vec<String>,
    /// The best guess before it.
    pub before: Vec<(String, f64)>,
    /// The best guess after it.
    pub after: Vec<(String, f64)>,
}

impl Decision {
    /// What other aggregates of the service may learn of it: how much better the trial was than the
    /// safe configuration is expected to be here. For [`Commons::add`](crate::Commons::add).
    pub fn finding(&self, service: &Service) -> Option<Finding> {
        let Outcome::Noted { advantage: Some(advantage), .. } = self.lesson.outcome else {
            return None;
        };
        let found = |point| Finding { point, advantage, trials: 1.0 };
        if let Some(other) = self.other(service) {
            return other.map(found);
        }
        let values: Vec<f64> = self.tried.iter().take(service.knobs().len()).map(|t| t.1).collect();
        let is_whole = values.len() == service.knobs().len();
        is_whole.then(|| found(service.space().unit(&values).into()))
    }

    /// The other algorithm that was tried, none where the service has it no more; none where it was
    /// the service's own.
    fn other(&self, service: &Service) -> Option<Option<Point>> {
        let tried = self.algorithms.as_ref().map(|algorithms| algorithms.tried.as_str());
        let other = tried.filter(|tried| *tried != service.algorithm().name)?;
        Some(service.other_named(other))
    }
}

impl Decision {
    /// The arm that made the aggregate run what brought it to its safe configuration. What the safe
    /// configuration itself brings is no arm's doing, nor what was learnt.
    pub fn alarm_of_arm(&self, service: &Service) -> Option<Part> {
        let fell_back = matches!(self.lesson.outcome, Outcome::FellBack { .. });
        let is_held = self.purpose == Purpose::Held;
        let is_safe = match self.other(service) {
            Some(other) => other == Some(service.safe()),
            None => service.configuration(0, &service.safe()).knobs == self.tried,
        };
        self.part.filter(|_| fell_back && is_held && !is_safe)
    }
}

impl Decision {
    /// The last sentences: what the decision made of the reward.
    fn fmt_outcome(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lesson.outcome {
            Outcome::NoReward => f.write_str("Nothing was learnt."),
            Outcome::Stale => {
                f.write_str("Nothing was learnt: learning had started anew meanwhile.")
            }
            Outcome::AwaitsOpposite => f.write_str("The opposite point comes next."),
            Outcome::Gathering { have, need } => {
                write!(f, "Still measuring: {have} of {need} measurements for the next step.")
            }
            Outcome::Stepped { held_back, .. } => {
                f.write_str("Stepped:")?;
                for ((knob, before), (_, after)) in self.before.iter().zip(&self.after) {
                    if before != after {
                        write!(f, " {knob} {before:.4} to {after:.4}")?;
                    }
                }
                f.write_str(if *held_back { ", up to the permitted range." } else { "." })
            }
            Outcome::Noted { expected, error, .. } => {
                if let Some(Algorithms { before, after, .. }) = &self.algorithms
                    && before != after
                {
                    write!(f, "{after} is better than {before} now")?;
                    return write!(f, "; {expected:.4} ± {error:.4} is expected of it.");
                }
                let moved: Vec<String> = (self.before.iter().zip(&self.after))
                    .filter(|((_, before), (_, after))| before != after)
                    .map(|((knob, before), (_, after))| {
                        format!(" {knob} {before:.4} to {after:.4}")
                    })
                    .collect();
                match moved.is_empty() {
                    true => f.write_str("The best guess stays")?,
                    false => write!(f, "The best guess moves:{}", moved.join(""))?,
                }
                write!(f, "; {expected:.4} ± {error:.4} is expected of it.")
            }
            Outcome::FellBack { alarm: Alarm::Debt { debt } } => write!(
                f,
                "Fell back to the safe configuration: rewards are {debt:.1} deviations behind what \
                 it is expected to have brought."
            ),
            Outcome::FellBack { alarm: Alarm::Reward { limit, .. } } => {
                write!(
                    f,
                    "Fell back to the safe configuration: below {limit:.4} too often in a row."
                )
            }
            Outcome::FellBack { alarm: Alarm::Guard } => f.write_str(
                "Fell back to the safe configuration: a guard was broken too often in a row.",
            ),
            Outcome::Resting { left } => {
                write!(f, "The safe configuration stays for {left} more intervals.")
            }
            Outcome::Restarted => f.write_str("Learning starts again from there."),
            Outcome::Tested { left } => write!(f, "{left} tests are left."),
            Outcome::Selected { .. } => {
                write!(f, "From now on these are learnt: {}.", self.active.join(", "))
            }
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(part) = self.part {
            write!(f, "In the arm {}. ", part.arm_name())?;
        }
        match self.purpose {
            Purpose::Explore { .. } => f.write_str("Tried a point near the best guess. ")?,
            Purpose::Promising { expected, error } => {
                match self.algorithms.as_ref().filter(|a| a.tried != a.before) {
                    Some(Algorithms { tried, .. }) => write!(f, "Tried {tried}, which")?,
                    None => f.write_str("Tried a point that")?,
                }
                write!(
                    f,
                    " may be better than the best guess, {expected:.4} ± {error:.4} by the model. "
                )?;
            }
            Purpose::Best => f.write_str("Ran the best guess. ")?,
            Purpose::Test(_) => f.write_str("Tested whether a knob matters. ")?,
            Purpose::Safe => f.write_str("Ran the safe configuration. ")?,
            Purpose::Check => {
                f.write_str(
                    "Ran the safe configuration, to see whether it is still what it was. ",
                )?;
            }
            Purpose::Held => f.write_str("Ran what it was told to; learning is halted. ")?,
        }
        if let Some(Odds { probability, .. }) = self.chances.first() {
            let arms = self.chances.len();
            write!(f, "Chance chose it among {arms} arms, with probability {probability:.3}. ")?;
        }
        match (self.reward, self.source) {
            (Some(reward), RewardSource::Surrogate) => write!(f, "Surrogate reward {reward:.4}")?,
            (Some(reward), _) => write!(f, "Reward {reward:.4}")?,
            (None, _) => f.write_str("No reward: too few connections or statistics")?,
        }
        if let Some(error) = self.error {
            write!(f, " ± {error:.4} by chance of its connections")?;
        }
        if self.reward.is_some() {
            write!(f, ", usual is {:.4} ± {:.4}", self.lesson.mean, self.lesson.deviation)?;
        }
        for guard in &self.broken {
            write!(f, "; {guard} was broken")?;
        }
        f.write_str(". ")?;
        if let Some(pair) = &self.side_by_side {
            write!(f, "The control brought {:.4} in the same interval", pair.control)?;
            write!(
                f,
                " ({} connections); the difference is {:.4}",
                pair.connections, pair.difference
            )?;
            if let Some(error) = pair.error {
                write!(f, " ± {error:.4}")?;
            }
            if pair.theta != 0.0 {
                f.write_str(" without what the clusters showed before")?;
            }
            f.write_str(". ")?;
        }
        if let Some(Harm { expected, most, .. }) = self.harm.filter(|h| h.expected > h.most) {
            let [expected, most] = [expected, most].map(|share| 100.0 * share);
            write!(
                f,
                "It takes about {expected:.0}% from flows of others, and {most:.0}% are permitted: \
                 it is not in force any more. "
            )?;
        }
        if self.lesson.anew {
            f.write_str(
                "The network seems to be another one: what was known of it counts for little. ",
            )?;
        }
        if self.lesson.spared.is_some() {
            f.write_str(
                "Rewards are low, and the safe configuration is known to bring less: it is not in \
                 force. ",
            )?;
        }
        self.fmt_outcome(f)
    }
}
