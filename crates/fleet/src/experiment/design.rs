//! What is compared, and how: arms, designs, and who gets which arm when.

use serde::{Deserialize, Serialize};
use trimtab_qoe::FormulaError;

use super::{GuardMetricError, Knobs, chance};
use crate::{Chosen, Interval, Other, Service};

/// The longest experiment, in intervals.
pub const LENGTH_MAX: u32 = 100_000;
/// Blocks into which an experiment by prefixes is cut, so that it can be looked at so often before it is over.
const LOOKS: u32 = 24;
/// Guard metrics of one experiment.
pub(super) const GUARDS_MAX: usize = 8;

/// What one side of a comparison runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// What the learner proposes.
    Learn,
    /// The service's safe configuration: the incumbent, where it has one.
    Safe,
    /// Another algorithm of the service, as its description writes it.
    Algorithm(String),
    /// These knobs, as `{"gamma": 100}`; the others have their safe values.
    Knobs(Knobs),
}

impl Arm {
    /// What it puts in force; none: what is learnt.
    pub(super) fn values(&self, service: &Service) -> Result<Option<Chosen>, SpecError> {
        let knobs = match self {
            Self::Learn => return Ok(None),
            Self::Safe => return Ok(Some(service.chosen(&service.safe()))),
            Self::Algorithm(name) => {
                let unknown = || {
                    let known: Vec<&str> = service.others().iter().map(Other::name).collect();
                    SpecError::Algorithm { name: name.clone(), known: known.join(", ") }
                };
                let point = service.other_named(name).ok_or_else(unknown)?;
                return Ok(Some(service.chosen(&point)));
            }
            Self::Knobs(knobs) => knobs,
        };
        let mut values = service.space().values(&service.safe_knobs());
        for (name, &value) in knobs {
            let index = service.knobs().iter().position(|knob| knob.name == *name);
            let index = index.ok_or_else(|| {
                let known: Vec<&str> = service.knobs().iter().map(|k| k.name.as_str()).collect();
                SpecError::Knob { name: name.clone(), known: known.join(", ") }
            })?;
            let dimension = service.knobs()[index].dimension;
            if !(dimension.min..=dimension.max).contains(&value) {
                let (min, max) = (dimension.min, dimension.max);
                return Err(SpecError::Value { name: name.clone(), value, min, max });
            }
            values[index] = value;
        }
        Ok(Some(Chosen::Knobs(values)))
    }
}

impl core::fmt::Display for Arm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Learn => f.write_str("learn"),
            Self::Safe => f.write_str("safe"),
            Self::Algorithm(name) => f.write_str(name),
            Self::Knobs(knobs) => {
                let all: Vec<String> = knobs.iter().map(|(k, v)| format!("{k}={v}")).collect();
                f.write_str(&all.join(","))
            }
        }
    }
}

/// Who switches when, in a switchback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Each aggregate by draws of its own: what happens to all at a time cancels out. For aggregates that share no
    /// bottleneck.
    #[default]
    Each,
    /// All at once: for aggregates that do.
    Together,
}

/// How the arms are kept apart. By flow is none of them: see the [module](super).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Design {
    /// Whole aggregates have one arm all the time.
    Prefixes {
        /// The share of them that has the treatment, above 0 and below 1.
        share: f64,
    },
    /// Aggregates have one arm and then the other, in pairs of neighbouring blocks; which one goes first is drawn for each
    /// pair.
    Switchback {
        /// The length of a block, in intervals.
        block: u32,
        /// Who switches when.
        #[serde(default)]
        schedule: Schedule,
    },
}

/// An experiment of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What is compared with.
    pub control: Arm,
    /// What is tried.
    pub treatment: Arm,
    /// How they are kept apart.
    pub design: Design,
    /// Its first interval.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Interval,
    /// How long it is, in intervals; of a switchback, a whole number of pairs of blocks.
    pub length: u32,
    /// Intervals after each change of arms that are left out.
    pub wash_out: u32,
    /// What says which arm is better: a formula, more of which is better, or `reward` for the service's. None, in experiments
    /// from before it had to be named: the reward.
    #[serde(default)]
    pub metric: Option<String>,
    /// What must not become worse, as `mean(loss) < +20%`.
    #[serde(default)]
    pub guards: Vec<String>,
    /// The seed of the draws.
    #[serde(default)]
    pub seed: u64,
}

/// Why an experiment or a rollout cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// The share is none.
    #[error("share = {0}: the share of aggregates with the treatment is above 0 and below 1")]
    Share(f64),
    /// It has no length.
    #[error("length = {0}: an experiment is 2 to {LENGTH_MAX} intervals long")]
    Length(u32),
    /// The length is no whole number of pairs.
    #[error(
        "length = {length}: a switchback with blocks of {block} intervals is a whole number of pairs long, at least \
         4: {} or {}, say", 2 * block * (length / (2 * block)).max(4), 2 * block * (length / (2 * block) + 1).max(5)
    )]
    Pairs {
        /// As given.
        length: u32,
        /// As given.
        block: u32,
    },
    /// The wash-out leaves nothing.
    #[error("wash_out = {wash_out}: of {of} intervals nothing would be left: make it shorter")]
    WashOut {
        /// As given.
        wash_out: u32,
        /// Of how many.
        of: u32,
    },
    /// An algorithm that the service does not have.
    #[error(
        "the service has no other algorithm {name:?}: there are {known}; incumbent and others in its \
         description name them"
    )]
    Algorithm {
        /// As given.
        name: String,
        /// Those that it has.
        known: String,
    },
    /// A knob that may not be set.
    #[error("no knob {name:?} may be set here: there are {known}")]
    Knob {
        /// As given.
        name: String,
        /// Those that may.
        known: String,
    },
    /// A value that the service does not permit.
    #[error("{name} = {value} is outside what the service permits, {min} to {max}")]
    Value {
        /// The knob.
        name: String,
        /// As given.
        value: f64,
        /// The least.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// The metric is no formula.
    #[error("metric {text:?}: {cause}; \"reward\" is the service's reward")]
    Metric {
        /// As given.
        text: String,
        /// What is wrong with it.
        cause: FormulaError,
    },
    /// Nothing says what is better.
    #[error(
        "a success metric is needed, which says what is better: metric = \"reward\" for the \
         service's reward, or a formula of which more is better, e.g. \"mean(throughput)\""
    )]
    NoMetric,
    /// A guard is none.
    #[error(transparent)]
    Guard(#[from] GuardMetricError),
    /// There are too many guards.
    #[error("at most {GUARDS_MAX} guard metrics: with more, one of them breaks by chance")]
    Guards,
    /// The stages are none.
    #[error(
        "stages = {0:?}: shares of the aggregates that ascend from above 0 to 1, as [0.01, 0.05, 0.25, 1]"
    )]
    Stages(Vec<f64>),
    /// A rollout that nothing could stop.
    #[error(
        "a rollout needs a guard metric, as `mean(loss) < +20%`: without, nothing would ever roll it back"
    )]
    NoGuard,
}

impl Experiment {
    /// Whether it can be, as far as it can be seen without its service.
    ///
    /// # Errors
    /// Says what cannot be.
    pub fn check(&self) -> Result<(), SpecError> {
        if !(2..=LENGTH_MAX).contains(&self.length) {
            return Err(SpecError::Length(self.length));
        }
        if self.guards.len() > GUARDS_MAX {
            return Err(SpecError::Guards);
        }
        let of = match self.design {
            Design::Prefixes { share } if !(share > 0.0 && share < 1.0) => {
                return Err(SpecError::Share(share));
            }
            Design::Prefixes { .. } => self.length,
            Design::Switchback { block, .. } => {
                let block = block.clamp(1, LENGTH_MAX);
                if !self.length.is_multiple_of(2 * block) || self.length / (2 * block) < 4 {
                    return Err(SpecError::Pairs { length: self.length, block });
                }
                block
            }
        };
        if self.wash_out >= of {
            return Err(SpecError::WashOut { wash_out: self.wash_out, of });
        }
        Ok(())
    }

    /// The interval after its last one.
    pub fn end(&self) -> Interval {
        Interval(self.start.0.saturating_add(u64::from(self.length)))
    }

    /// The length of a block, in intervals.
    pub fn block(&self) -> u32 {
        match self.design {
            Design::Prefixes { .. } => self.length.div_ceil(LOOKS),
            Design::Switchback { block, .. } => block.max(1),
        }
    }

    /// Blocks between one look at the result and the next: those of a pair are looked at together.
    pub(super) fn blocks_of_look(&self) -> i64 {
        if matches!(self.design, Design::Prefixes { .. }) { 1 } else { 2 }
    }

    /// How often the result can be looked at, the last time included.
    pub fn looks(&self) -> u32 {
        self.length.div_ceil(self.block() * self.blocks_of_look() as u32)
    }

    /// Block, arm, and whether it is left out, of an aggregate's interval; none outside of the experiment.
    pub(super) fn part(
        &self,
        key: &[u8],
        place: i64,
        interval: Interval,
    ) -> Option<(i64, u8, bool)> {
        if !(self.start..self.end()).contains(&interval) {
            return None;
        }
        let since = (interval.0 - self.start.0) as u32;
        let block = since / self.block();
        Some(match self.design {
            Design::Prefixes { .. } => (i64::from(block), place as u8, since < self.wash_out),
            Design::Switchback { schedule, .. } => {
                let whose = if schedule == Schedule::Each { key } else { b"" };
                let pair = block / 2;
                let treatment_first = chance(self.seed, whose, u64::from(pair)) & 1 == 1;
                let arm = u8::from(block.is_multiple_of(2) == treatment_first);
                (i64::from(block), arm, since % self.block() < self.wash_out)
            }
        })
    }
}

/// An aggregate that takes part.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub key: String,
    /// What the service's reward was before, on average.
    pub baseline: Option<f64>,
}

/// Deals aggregates to control (0) and treatment (1): those with alike rewards before are dealt out among both, so that
/// neither has the better ones. The order of `members` does not matter.
pub fn assign(members: &[Member], share: f64, seed: u64) -> Vec<i64> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    let by = |&i: &usize| {
        (members[i].baseline.is_none(), chance(seed, members[i].key.as_bytes(), u64::MAX))
    };
    order.sort_by(|a, b| {
        let rewards = members[*a].baseline.partial_cmp(&members[*b].baseline);
        let both = members[*a].baseline.is_some() && members[*b].baseline.is_some();
        let alike = rewards.filter(|_| both).unwrap_or(core::cmp::Ordering::Equal);
        by(a).0.cmp(&by(b).0).then(alike).then(by(a).1.cmp(&by(b).1))
    });
    deal(&order, |i| &members[i].key, share, seed)
}

/// The same for members that are in the order of their rewards.
pub(super) fn deal<'a>(
    order: &[usize],
    key: impl Fn(usize) -> &'a str,
    share: f64,
    seed: u64,
) -> Vec<i64> {
    let mut places = vec![0; order.len()];
    let stratum = ((1.0 / share.min(1.0 - share)).ceil() as usize).max(2);
    // Everybody is as likely to have the treatment, and of any number of strata the share is kept to within one.
    let offset = (chance(seed, b"", 0) >> 11) as f64 / (1u64 << 53) as f64;
    let treated = |end: usize| (share * end as f64 + offset).floor() as usize;
    for (number, members) in order.chunks(stratum).enumerate() {
        let begin = number * stratum;
        let count = treated(begin + members.len()) - treated(begin);
        let mut drawn = members.to_vec();
        drawn.sort_by_key(|&i| chance(seed, key(i).as_bytes(), 1));
        drawn.iter().take(count).for_each(|&i| places[i] = 1);
    }
    places
}

/// The stage of a rollout, from 1 on, with which each aggregate is switched: by the order of a hash. A stage has at least
/// one aggregate more than the one before it, while there are any.
pub fn places(keys: &[String], stages: &[f64], seed: u64) -> Vec<i64> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&i| (chance(seed, keys[i].as_bytes(), 2), &keys[i]));
    let mut places = vec![stages.len() as i64; keys.len()];
    let mut from = 0;
    for (stage, share) in stages.iter().enumerate() {
        // What floating point adds to a product is no aggregate: 0.14 of 50 are 7, not 8.
        let switched = (share * keys.len() as f64 - 1e-6).ceil() as usize;
        let until = switched.max(from + 1).min(keys.len());
        // What floating point makes of a share of one is one.
        let until = if stage + 1 == stages.len() { keys.len() } else { until };
        order[from..until].iter().for_each(|&i| places[i] = stage as i64 + 1);
        from = until;
    }
    places
}
