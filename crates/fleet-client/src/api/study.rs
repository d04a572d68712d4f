//! What travels about experiments and rollouts. Lengths are intervals of the service, as are starts, counted from 1970.

use serde::{Deserialize, Deserializer, Serialize};
use trimtab_fleet::experiment::{Arm, Design, Experiment, Judgement, Phase, Report, Rollout};

/// Clients of before send `null` for what was not told. What is empty is refused with what to do.
fn or_empty<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    Option::deserialize(text).map(Option::unwrap_or_default)
}

/// An experiment to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewExperiment {
    /// The service.
    pub service: String,
    /// Its name; no two of a service have the same.
    pub name: String,
    /// What is compared with.
    pub control: Arm,
    /// What is tried.
    pub treatment: Arm,
    /// How they are kept apart.
    pub design: Design,
    /// How many intervals; of a switchback, a whole number of pairs of blocks.
    pub length: u32,
    /// Its first interval; default: the next one.
    pub start: Option<u64>,
    /// Intervals after each change that are left out; default: 1.
    pub wash_out: Option<u32>,
    /// What says which arm is better: a formula of which more is better, or `reward` for the service's. It must be named.
    #[serde(default, deserialize_with = "or_empty")]
    pub metric: String,
    /// What must not become worse, as `mean(loss) < +20%`.
    #[serde(default)]
    pub guards: Vec<String>,
    /// The seed of the draws; default: from the clock.
    pub seed: Option<u64>,
    /// Why, for the audit log.
    #[serde(default)]
    pub reason: String,
}

/// An experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentBody {
    /// The service.
    pub service: String,
    /// Its name.
    pub name: String,
    /// `waiting`, `running`, `over` or `stopped`.
    pub state: String,
    /// The length of an interval, in ms.
    pub interval_ms: i64,
    /// Who began it.
    pub begun_by: String,
    /// When, in ms since 1970.
    pub begun_ms: i64,
    /// Why.
    pub reason: String,
    /// What it is.
    pub spec: Experiment,
    /// By whom it was stopped, and why.
    pub stopped: Option<String>,
    /// What it has shown; none in a list where it is still running.
    pub report: Option<Report>,
}

/// Experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentsBody {
    /// The latest first.
    pub experiments: Vec<ExperimentBody>,
}

/// An experiment to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StopExperiment {
    /// The service.
    pub service: String,
    /// Its name.
    pub name: String,
    /// Why, for the audit log.
    #[serde(default)]
    pub reason: String,
}

/// A rollout to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRollout {
    /// The service.
    pub service: String,
    /// Its name; no two of a service have the same.
    pub name: String,
    /// The arm before the switch; default: `learn`, or `safe` where learning is rolled out.
    pub from: Option<Arm>,
    /// What is rolled out.
    pub to: Arm,
    /// Shares of the aggregates, stage by stage; default: 0.01, 0.05, 0.25, 1.
    pub stages: Option<Vec<f64>>,
    /// The fewest intervals of a stage; default: 6.
    pub intervals: Option<u32>,
    /// Intervals after each switch that are left out; default: 1.
    pub wash_out: Option<u32>,
    /// What says whether it is better: a formula of which more is better, or `reward` for the service's. It must be named.
    #[serde(default, deserialize_with = "or_empty")]
    pub metric: String,
    /// What must hold, as `mean(loss) < +20%`.
    pub guards: Vec<String>,
    /// The seed of the draws; default: from the clock.
    pub seed: Option<u64>,
    /// Why, for the audit log.
    #[serde(default)]
    pub reason: String,
}

/// A rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolloutBody {
    /// The service.
    pub service: String,
    /// Its name.
    pub name: String,
    /// How it is.
    pub phase: Phase,
    /// Whether it decides what aggregates run: while it goes on, and for good where it put a configuration in force.
    pub in_force: bool,
    /// Its stage; 0 before anything is switched.
    pub stage: u32,
    /// The first interval of the stage.
    pub since: u64,
    /// Why it is so.
    pub why: String,
    /// The length of an interval, in ms.
    pub interval_ms: i64,
    /// Who began it.
    pub begun_by: String,
    /// When, in ms since 1970.
    pub begun_ms: i64,
    /// Why.
    pub reason: String,
    /// What it is.
    pub spec: Rollout,
    /// What is known of the stage; none in a list where it is still running.
    pub judgement: Option<Judgement>,
}

/// Rollouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RolloutsBody {
    /// The latest first.
    pub rollouts: Vec<RolloutBody>,
}

/// What an operator can tell a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RolloutAction {
    /// Stay in this stage.
    Hold,
    /// Go on.
    Resume,
    /// End it: everything goes back. Of one that went back and keeps what was before in force: let go of that.
    Abort,
}

/// What an operator tells a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RolloutOrder {
    /// The service.
    pub service: String,
    /// Its name.
    pub name: String,
    /// What to do.
    pub action: RolloutAction,
    /// Why, for the audit log.
    #[serde(default)]
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_is_null_is_one_that_was_not_named() {
        let experiment = r#"{ "service": "tv", "name": "x", "control": "learn", "treatment": "safe",
            "design": { "kind": "prefixes", "share": 0.5 }, "length": 8, "metric": null }"#;
        let experiment: NewExperiment = serde_json::from_str(experiment).unwrap();
        let rollout =
            r#"{ "service": "tv", "name": "x", "to": "safe", "guards": [], "metric": null }"#;
        let rollout: NewRollout = serde_json::from_str(rollout).unwrap();
        assert_eq!((experiment.metric.as_str(), rollout.metric.as_str()), ("", ""));
    }
}
