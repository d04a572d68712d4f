//! What hosts found by comparing their rules with control arms. A host compares on its own, whether
//! or not the engine steers there; no client's address is part of it.

use serde::{Deserialize, Serialize};
use trimtab_fleet::experiment::Effect;

/// A metric under steering and under a control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricCompared {
    /// `score`, `throughput_mbps`, `rtt_ms`, `loss` or `completion_s`.
    pub metric: String,
    /// The mean when steered.
    pub steered: f64,
    /// The mean under the control.
    pub control: f64,
    /// Steered less control, as a share of the control, with its 95% interval; `null` where the
    /// control may be zero.
    pub change: Option<Effect>,
    /// Steered less control, in the metric's unit.
    pub difference: Option<Effect>,
    /// Pairs of blocks that have it.
    pub pairs: u64,
}

/// A rule of a host compared with a control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleCompared {
    /// The rule, as the host names it.
    pub rule: String,
    /// The control: `former` or `holdback`.
    pub control: String,
    /// Whether the comparison is over, and its intervals are as narrow as they get.
    pub over: bool,
    /// Networks of clients that took part.
    pub networks: u64,
    /// What is known, by metric.
    pub metrics: Vec<MetricCompared>,
}

/// What a host knows of its rules. It replaces what the host sent before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostComparisons {
    /// The host's name.
    pub host: String,
    /// One for each rule and control.
    pub rules: Vec<RuleCompared>,
}

/// A comparison that the engine has from a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCompared {
    /// The name of the token by which the host sent it.
    pub token: String,
    /// The host's name.
    pub host: String,
    /// When the engine received it, in ms since 1970.
    pub received_ms: i64,
    /// What the host found.
    pub found: RuleCompared,
}

/// The last comparison of each host, rule and control, by their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonsBody {
    /// The comparisons.
    pub comparisons: Vec<HostCompared>,
}
