//! What another choice would have brought, by a log of decisions that chance made.
//!
//! Where the learner chooses by chance, a decision has the probability of each arm. So an interval
//! in which an arm was in force that was as likely as one in five stands for five intervals: the
//! mean reward by these weights is what the arm would have brought in all of them (inverse
//! propensity weighting: Horvitz and Thompson, JASA 1952). Divided by the sum of the weights it is
//! *self-normalised*, which has less variance (Swaminathan and Joachims, NIPS 2015). The *doubly
//! robust* estimate weighs only what rewards were off from what was expected of them, so that it
//! has less variance still where expectations were good, and no bias where they were not (Dudík,
//! Langford and Li, ICML 2011). Expectations are the learner's own from before the interval, so
//! nothing is fitted to what is estimated from it.
//!
//! The question is about the learner restricted to what is asked for: of the arms that fit, it
//! takes each by the share of its probability.

use serde::{Deserialize, Serialize};

use crate::bootstrap::{Estimate, Sums, bca};
use crate::experiment::Effect;
use crate::{Chosen, Decision, Interval, Key, Service};

/// An arm has the value of a knob that is asked for where it is no further away than this share of
/// the permitted range, on the scale of the knob.
const WITHIN: f64 = 0.1;
/// Fewer intervals than this, by Kish's effective sample size, show nothing.
const EFFECTIVE_MIN: f64 = 20.0;
/// Intervals of an aggregate that tell of the hour of the one after them.
const BEFORE: usize = 3;

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    text: String,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// Another algorithm.
    Other(String),
    /// The algorithm whose knobs are learnt, with these knobs at these places of the unit cube; the
    /// others as they were chosen.
    Knobs(Vec<(usize, f64)>),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WhatIfError {
    /// Nothing is asked for.
    #[error("nothing is asked for: name an algorithm of the service, or knobs with their values")]
    Nothing,
    /// The service has no such algorithm.
    #[error("the service has no algorithm {name:?}: there are {known}")]
    Algorithm {
        /// What is asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Another algorithm with knobs.
    #[error("{0} runs as the service describes it: leave the knobs out")]
    KnobsOfOther(String),
    /// The service learns no such knob.
    #[error("the service learns no knob {name:?}: there are {known}")]
    Knob {
        /// What is asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A value outside of the permitted range.
    #[error("{knob} = {value} is outside what the service permits, {min} to {max}")]
    Range {
        /// The knob.
        knob: String,
        /// Its value.
        value: f64,
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// There are no decisions with a reward.
    #[error("no estimate for {target}: no decision of the log has a reward")]
    NoReward {
        /// What is asked for.
        target: String,
    },
    /// The log has no choice that chance made.
    #[error(
        "no estimate for {target}: each of the {decisions} decisions of the log was certain, which \
         says nothing of other choices; set acquisition = \"thompson\" under [learning] of the \
         service, and ask again later"
    )]
    Certain {
        /// What is asked for.
        target: String,
        /// Decisions with a reward.
        decisions: u64,
    },
    /// Too little of the log is about what is asked for.
    #[error(
        "no estimate for {target}: it was in force in {matched} of {intervals} intervals that \
         chance decided on, which count as {effective:.1} by their weights, and {EFFECTIVE_MIN} are \
         needed; ask for a longer log, all aggregates of the service, or fewer knobs"
    )]
    Overlap {
        /// What is asked for.
        target: String,
        /// Intervals in which it was in force.
        matched: u64,
        /// Intervals that chance decided on.
        intervals: u64,
        /// The effective sample size.
        effective: f64,
    },
}

/// What would have come of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// What was asked for: an algorithm, or knobs as `gamma=900,omega=2`.
    pub target: String,
    /// Decisions that were read.
    pub decisions: u64,
    /// Left out of these: without a reward.
    pub unrewarded: u64,
    /// Left out: the choice was certain, e.g. a look at the safe configuration, or an operator's.
    pub certain: u64,
    /// Left out: no arm fitted what was asked for.
    pub impossible: u64,
    /// Intervals that all figures below are over.
    pub intervals: u64,
    /// In so many of these it was in force.
    pub matched: u64,
    /// Kish's effective sample size: as many intervals of equal weight would show as much.
    pub effective: f64,
    /// The mean reward that there was.
    pub actual: f64,
    /// The mean reward that there would have been, by self-normalised inverse propensity weighting,
    /// with its 95% interval by bootstrap over the intervals.
    pub weighted: Effect,
    /// The same by the doubly robust estimate, which is the better one where both differ little.
    pub robust: Effect,
    /// The doubly robust estimate less the reward that there was.
    pub gain: Effect,
}

impl Target {
    /// An algorithm of the service, or some of its knobs with their values, in which case the other
    /// knobs are as they were chosen.
    ///
    /// # Errors
    /// The service has none of this name or permits no such value, or nothing is asked for.
    pub fn new(
        service: &Service,
        algorithm: Option<&str>,
        knobs: &[(String, f64)],
    ) -> Result<Self, WhatIfError> {
        let own = service.algorithm().name;
        if let Some(name) = algorithm.filter(|name| *name != own) {
            let others = service.others().iter().map(crate::Other::name);
            let known: Vec<&str> = std::iter::once(own).chain(others).collect();
            if !known.contains(&name) {
                let (name, known) = (name.to_owned(), known.join(", "));
                return Err(WhatIfError::Algorithm { name, known });
            }
            if !knobs.is_empty() {
                return Err(WhatIfError::KnobsOfOther(name.to_owned()));
            }
            return Ok(Self { text: name.to_owned(), what: What::Other(name.to_owned()) });
        }
        if algorithm.is_none() && knobs.is_empty() {
            return Err(WhatIfError::Nothing);
        }
        let places: Result<Vec<_>, _> =
            knobs.iter().map(|(name, value)| place(service, name, *value)).collect();
        let values = knobs.iter().map(|(name, value)| format!("{name}={value}"));
        let text =
            if knobs.is_empty() { own.to_owned() } else { values.collect::<Vec<_>>().join(",") };
        Ok(Self { text, what: What::Knobs(places?) })
    }

    /// Whether an arm is what is asked for.
    fn fits(&self, service: &Service, arm: &Chosen) -> bool {
        match (&self.what, arm) {
            (What::Other(name), Chosen::Other { algorithm }) => name == algorithm,
            (What::Knobs(places), Chosen::Knobs(values)) => {
                let dimensions = service.space().dimensions();
                let is_near = |&(knob, at): &(usize, f64)| {
                    values.get(knob).is_some_and(|value| {
                        (dimensions[knob].unit(*value) - at).abs() <= WITHIN + 1e-9
                    })
                };
                values.len() == dimensions.len() && places.iter().all(is_near)
            }
            _ => false,
        }
    }
}

/// Which knob it is, and where in the unit cube a value of it is.
fn place(service: &Service, name: &str, value: f64) -> Result<(usize, f64), WhatIfError> {
    let Some(knob) = service.knobs().iter().position(|knob| knob.name == name) else {
        let known: Vec<&str> = service.knobs().iter().map(|knob| knob.name.as_str()).collect();
        return Err(WhatIfError::Knob { name: name.to_owned(), known: known.join(", ") });
    };
    let dimension = service.knobs()[knob].dimension;
    if !(dimension.min..=dimension.max).contains(&value) {
        let (knob, min, max) = (name.to_owned(), dimension.min, dimension.max);
        return Err(WhatIfError::Range { knob, value, min, max });
    }
    Ok((knob, dimension.unit(value)))
}

/// An interval that chance decided on.
struct Drawn<'a> {
    key: &'a Key,
    interval: Interval,
    reward: f64,
    /// One over the probability of what is asked for; 0 where something else was in force.
    weight: f64,
    /// What was expected of what is asked for.
    expected: f64,
    /// What the reward was off from what was expected of what was in force.
    off: f64,
}

impl<'a> Drawn<'a> {
    /// None where no arm fits.
    fn new(
        service: &Service,
        target: &Target,
        decision: &'a Decision,
        reward: f64,
    ) -> Option<Self> {
        let chances = &decision.chances;
        let fitting = chances.iter().filter(|odds| target.fits(service, &odds.arm));
        let (probability, sum) = fitting.fold((0.0, 0.0), |(probability, sum), odds| {
            (probability + odds.probability, sum + odds.probability * odds.expected)
        });
        let tried = chances.first()?;
        (probability > 0.0).then(|| Self {
            key: &decision.key,
            interval: decision.interval,
            reward,
            weight: if target.fits(service, &tried.arm) { 1.0 / probability } else { 0.0 },
            expected: sum / probability,
            off: reward - tried.expected,
        })
    }
}

/// Moves what was expected by what rewards of the aggregate were off by in the intervals before it,
/// as far as that goes with what they are off by: a busy hour outlasts an interval. It is known
/// before the arm is drawn, so that it makes no bias (CUPED: Deng et al., WSDM 2013).
fn move_by_before(drawn: &mut [Drawn<'_>]) {
    drawn.sort_by(|a, b| (a.key, a.interval).cmp(&(b.key, b.interval)));
    let before = |n: usize| {
        let from = n.saturating_sub(BEFORE);
        let same = drawn[from..n].iter().filter(|one| one.key == drawn[n].key);
        let (sum, count) = same.fold((0.0, 0.0), |(sum, count), one| (sum + one.off, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    };
    let before: Vec<f64> = (0..drawn.len()).map(before).collect();
    let both: f64 = drawn.iter().zip(&before).map(|(one, before)| one.off * before).sum();
    let squares: f64 = before.iter().map(|before| before * before).sum();
    let slope = if squares > 0.0 { (both / squares).clamp(0.0, 1.0) } else { 0.0 };
    for (one, before) in drawn.iter_mut().zip(before) {
        one.expected += slope * before;
        one.off -= slope * before;
    }
}

/// What each interval adds to the doubly robust estimate, whose mean they have. Its weights are
/// divided by their mean, and so that chance in this counts, too, each interval's part is that of
/// the delta method.
fn robust(drawn: &[Drawn<'_>]) -> Vec<f64> {
    let weights: f64 = drawn.iter().map(|one| one.weight).sum();
    let off: f64 = drawn.iter().map(|one| one.weight * one.off).sum::<f64>() / weights;
    let mean = weights / drawn.len() as f64;
    drawn.iter().map(|one| one.expected + off + one.weight / mean * (one.off - off)).collect()
}

impl WhatIf {
    /// What a target would have brought, by some decisions of the service.
    ///
    /// # Errors
    /// The log shows too little of it, or nothing.
    pub fn estimate<'a>(
        service: &Service,
        target: &Target,
        decisions: impl IntoIterator<Item = &'a Decision>,
    ) -> Result<Self, WhatIfError> {
        let (mut read, mut unrewarded, mut certain, mut impossible) = (0, 0, 0, 0);
        let mut drawn: Vec<Drawn<'_>> = Vec::new();
        for decision in decisions {
            read += 1;
            match (decision.reward, &decision.chances[..]) {
                (None, _) => unrewarded += 1,
                (Some(_), []) => certain += 1,
                (Some(reward), _) => match Drawn::new(service, target, decision, reward) {
                    Some(one) => drawn.push(one),
                    None => impossible += 1,
                },
            }
        }
        let text = || target.text.clone();
        if read == unrewarded {
            return Err(WhatIfError::NoReward { target: text() });
        }
        if drawn.is_empty() && impossible == 0 {
            return Err(WhatIfError::Certain { target: text(), decisions: certain });
        }
        let matched = drawn.iter().filter(|one| one.weight > 0.0).count() as u64;
        let (sum, squares) = drawn.iter().fold((0.0, 0.0), |(sum, squares), one| {
            (sum + one.weight, squares + one.weight * one.weight)
        });
        let effective = if squares > 0.0 { sum * sum / squares } else { 0.0 };
        if effective < EFFECTIVE_MIN {
            let intervals = drawn.len() as u64 + impossible;
            return Err(WhatIfError::Overlap { target: text(), matched, intervals, effective });
        }
        move_by_before(&mut drawn);
        let robust = robust(&drawn);
        let by_weight = drawn.iter().map(|one| Sums::of(one.weight * one.reward, one.weight));
        let gain = robust.iter().zip(&drawn).map(|(robust, one)| robust - one.reward);
        let of_mean = |value: f64| Sums::of(value, 1.0);
        Ok(Self {
            target: text(),
            decisions: read,
            unrewarded,
            certain,
            impossible,
            intervals: drawn.len() as u64,
            matched,
            effective,
            actual: drawn.iter().map(|one| one.reward).sum::<f64>() / drawn.len() as f64,
            // With twenty effective intervals one resample in 10⁸ has it in force nowhere.
            weighted: effect(by_weight, |sums| sums.a / sums.b.max(f64::MIN_POSITIVE)),
            gain: effect(gain.map(of_mean), Sums::mean),
            robust: effect(robust.iter().copied().map(of_mean), Sums::mean),
        })
    }
}

/// A statistic with its interval. Where all resamples are alike, that is a point.
fn effect(units: impl Iterator<Item = Sums>, statistic: fn(&Sums) -> f64) -> Effect {
    // There are intervals, or nothing would be estimated.
    let units: Vec<Sums> = units.collect();
    let found = bca(&units, statistic).unwrap_or(Estimate { value: 0.0, ci95: None });
    let [low, high] = found.ci95.unwrap_or([found.value; 2]);
    Effect { value: found.value, low, high }
}

#[cfg(test)]
mod tests;
