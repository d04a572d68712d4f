//! What the engine does with each service, at a glance.

use serde::{Deserialize, Serialize};
use trimtab_fleet::experiment::Effect;

use super::state::Hold;

/// Every service at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverviewBody {
    /// The services, in the order of their names.
    pub services: Vec<ServiceOverview>,
}

/// A service at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceOverview {
    /// Its name.
    pub name: String,
    /// Aggregates that were looked at: the first 1000, in the order of their names.
    pub aggregates: u32,
    /// Whether there are more.
    pub more: bool,
    /// What these run.
    pub in_force: Vec<InForceCount>,
    /// What was learnt, compared with the safe configuration; none where too little is known.
    pub gain: Option<Gain>,
    /// Aggregates that an operator holds, at most 20 of each kind.
    pub held: Vec<HeldAggregate>,
    /// When aggregates fell back to the safe configuration within a day; the latest first.
    pub fell_back: Vec<FellBack>,
}

/// How many aggregates run an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InForceCount {
    /// The algorithm.
    pub algorithm: String,
    /// Whether it is the safe configuration.
    pub safe: bool,
    /// So many.
    pub aggregates: u32,
}

/// The rewards of what was learnt, compared with those of the safe configuration on the same
/// aggregates. Intervals were not drawn by lot, so an experiment says it better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// The mean of the differences of the aggregates, with its interval of 95%.
    pub effect: Effect,
    /// The mean reward of the safe configuration on them.
    pub safe: f64,
    /// Aggregates that had both.
    pub aggregates: u32,
    /// Their intervals under what was learnt.
    pub learnt_intervals: u32,
    /// Their intervals under the safe configuration, those after alarms left out.
    pub safe_intervals: u32,
}

/// An aggregate that an operator holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldAggregate {
    /// The destination subnet.
    pub prefix: String,
    /// How it is held.
    pub hold: Hold,
    /// Whose order that was; none where it is not among the audit's last 1000 lines.
    pub who: Option<String>,
    /// When, in ms since 1970.
    pub at_ms: Option<i64>,
    /// Why.
    pub why: String,
}

/// Aggregates that fell back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FellBack {
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// How many and which, each with its alarm.
    pub detail: String,
}
