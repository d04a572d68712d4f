//! Experiments over a fleet: two arms, by whole aggregates or by time slots, and staged rollouts.
//!
//! Never by flow: flows of two arms that share a bottleneck take from each other, and the difference between them says
//! nothing of what happens when all run one arm (Spang et al., "Unbiased experiments in congested networks", IMC 2021).
//! So the unit is the aggregate, or a pair of time slots in which all of an aggregate ran one arm and then the other.
//!
//! Like the rest of the crate this is pure: [`Plan`] says what an aggregate runs in an interval,
//! [`Observation`] what came of it, [`Cell`] adds those up, and [`Experiment::report`] and
//! [`Rollout::judge`] say what they amount to. The same input gives the same output.

mod analysis;
#[cfg(test)]
mod arithmetic;
mod arms;
mod design;
mod guard;
mod measure;
mod report;
mod rollout;
#[cfg(test)]
mod simulation;
mod stats;
mod verdict;

pub(crate) use arms::place;
pub use arms::{
    CONTROLS, Estimated, ThreeArms, ThreeArmsSpec, Turn, excess, is_mostly_beyond, is_reached,
};
pub use design::{
    Arm, Design, Experiment, LENGTH_MAX, Member, Schedule, SpecError, assign, places,
};
pub use guard::{GuardMetric, GuardMetricError, GuardReport, Limit, Verdict};
pub use measure::{Cell, CellOf, LeftOut, Observation};
pub use report::{Effect, Point, Report, UnitsReport};
pub use rollout::{Judgement, Phase, Rollout, RolloutState, Step};
pub use stats::mean_effect;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trimtab_qoe::AggregateFormula;

use crate::aggregate::mix;
use crate::{Chosen, Interval, Service, Summary};

/// The name of the service's reward as a success metric.
const REWARD: &str = "reward";

/// Which part of an experiment or a rollout an aggregate's interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The number of the experiment.
    pub study: i64,
    /// The block of time: slots of a switchback, stages of a rollout.
    pub block: i64,
    /// 0: control; 1: treatment.
    pub arm: u8,
    /// It comes right after a change, and is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wash_out: bool,
}

impl Part {
    /// `control` or `treatment`.
    pub fn arm_name(&self) -> &'static str {
        if self.arm == 0 { "control" } else { "treatment" }
    }
}

/// What an experiment wants of an aggregate in an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Values of the knobs under `[knobs]`, in their order, or another algorithm; none: what is
    /// learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Chosen>,
    /// What it is part of; none where nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// An experiment or a rollout as it is carried out: checked against its service, its formulas parsed.
#[derive(Clone, Debug)]
pub struct Plan {
    what: What,
    /// Of control and treatment.
    arms: [Option<Chosen>; 2],
    /// What says which arm is better.
    metric: AggregateFormula,
    guards: Vec<GuardMetric>,
}

#[derive(Clone, Debug)]
enum What {
    Experiment(Experiment),
    Rollout(Rollout, RolloutState),
}

impl Plan {
    /// The plan of an experiment.
    ///
    /// # Errors
    /// It does not go with the service, or with itself.
    pub fn of_experiment(experiment: &Experiment, service: &Service) -> Result<Self, SpecError> {
        experiment.check()?;
        let arms = [&experiment.control, &experiment.treatment];
        let what = What::Experiment(experiment.clone());
        Self::new(what, arms, experiment.metric.as_deref(), &experiment.guards, service)
    }

    /// The plan of a rollout, where it stands.
    ///
    /// # Errors
    /// It does not go with the service, or with itself.
    pub fn of_rollout(
        rollout: &Rollout,
        state: &RolloutState,
        service: &Service,
    ) -> Result<Self, SpecError> {
        rollout.check()?;
        let what = What::Rollout(rollout.clone(), state.clone());
        let arms = [&rollout.from, &rollout.to];
        Self::new(what, arms, Some(&rollout.metric), &rollout.guards, service)
    }

    fn new(
        what: What,
        arms: [&Arm; 2],
        metric: Option<&str>,
        guards: &[String],
        service: &Service,
    ) -> Result<Self, SpecError> {
        let names: Vec<&str> = service.statistics().collect();
        let [control, treatment] = arms.map(|arm| arm.values(service));
        let metric = match metric {
            None | Some(REWARD) => service.reward().clone(),
            Some(text) if text.trim().is_empty() => return Err(SpecError::NoMetric),
            Some(text) => AggregateFormula::parse(text, &names)
                .map_err(|cause| SpecError::Metric { text: text.to_owned(), cause })?,
        };
        let guards: Result<Vec<GuardMetric>, _> =
            guards.iter().map(|text| GuardMetric::parse(text, &names)).collect();
        Ok(Self { what, arms: [control?, treatment?], metric, guards: guards? })
    }

    /// What an aggregate runs in an interval: none where the plan does not concern it. `place` is what [`assign`] or
    /// [`places`] gave it; without one, it is in the plan only where a rollout that is over keeps everything.
    pub fn assignment(
        &self,
        study: i64,
        key: &str,
        place: Option<i64>,
        interval: Interval,
    ) -> Option<Assignment> {
        let (block, arm, wash_out) = match &self.what {
            What::Experiment(experiment) => experiment.part(key.as_bytes(), place?, interval)?,
            What::Rollout(rollout, state) => match state.kept() {
                Some(arm) => {
                    let values = self.arms[usize::from(arm)].clone();
                    return Some(Assignment { values, part: None });
                }
                None => rollout.part(state, place?, interval)?,
            },
        };
        let part = Part { study, block, arm, wash_out };
        Some(Assignment { values: self.arms[usize::from(arm)].clone(), part: Some(part) })
    }

    /// What an interval amounts to that was such a part. `ran` says whether the reports are about what was to be run.
    pub fn observe(
        &self,
        part: &Part,
        summary: &Summary,
        service: &Service,
        ran: bool,
    ) -> Observation {
        if part.wash_out {
            return Observation::WashOut;
        }
        if !ran {
            return Observation::OtherVersion;
        }
        if summary.connections() < service.connections_min() {
            return Observation::NoValue;
        }
        let formulas =
            std::iter::once(&self.metric).chain(self.guards.iter().map(GuardMetric::formula));
        let values: Vec<Option<f64>> =
            formulas.map(|formula| Service::value(formula, summary)).collect();
        if values.iter().all(Option::is_none) {
            Observation::NoValue
        } else {
            Observation::Values(values)
        }
    }
}

/// A number for a draw: the same for the same seed, key and count, and like chance between them.
pub(crate) fn chance(seed: u64, key: &[u8], count: u64) -> u64 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(mix(hash ^ seed.rotate_left(32)) ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Values of knobs by name.
pub type Knobs = BTreeMap<String, f64>;
