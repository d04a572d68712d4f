//! What travels between the engine, edges and operators: JSON, with the units in the names.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trimtab_fleet::{Sharing, SurrogateFit, WhatIf};

use super::state::{Audit, Counts, Damaged, Hold, Name, Role, SafeOrder, ServiceInfo};

/// Reports of an edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReportBatch {
    /// Larger than that of any batch of this edge before; a batch without an answer is sent again with the same number and
    /// reports, however long that takes.
    pub sequence: u64,
    /// The edge's clock when it sent this, in ms since 1970.
    pub sent_ms: i64,
    /// How long the intervals of these reports are, in ms, for the service may have others by now. Default: the service's.
    #[serde(default)]
    pub interval_ms: Option<i64>,
    /// One for each aggregate, interval and version, that of a control included:
    /// `trimtab_fleet::Report`, encoded, in base64.
    pub reports: Vec<String>,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReportAnswer {
    /// Reports that are kept, whatever happens.
    pub kept: u32,
    /// Reports that came after their interval was closed, and are not kept.
    pub late: u32,
    /// Reports that were kept before, under another number.
    #[serde(default)]
    pub repeated: u32,
    /// Reports that are not kept, and never will be.
    #[serde(default)]
    pub refused: u32,
    /// Why the first of them is not.
    #[serde(default)]
    pub refused_why: Option<String>,
    /// This batch had been kept before.
    pub again: bool,
    /// The engine's clock, in ms since 1970.
    pub now_ms: i64,
}

/// The configurations that an edge has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfigurationQuery {
    /// Of each aggregate that it serves; at most 1000.
    pub have: Vec<Held>,
    /// Wait so long at most for one to change, in s; 0 to 60.
    #[serde(default)]
    pub wait_s: u32,
}

/// The configuration of an aggregate that an edge has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// The service.
    pub service: String,
    /// The destination subnet.
    pub prefix: String,
    /// Its version; none where it has none.
    pub version: Option<u64>,
}

/// Configurations that an edge does not have yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigurationAnswer {
    /// One for each aggregate that has another version.
    pub configurations: Vec<ConfigurationItem>,
    /// The engine's clock, in ms since 1970.
    pub now_ms: i64,
}

/// The configuration of an aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigurationItem {
    /// The service.
    pub service: String,
    /// The destination subnet.
    pub prefix: String,
    /// Grows with each change; 0 is the service's first.
    pub version: u64,
    /// `algorithm` and its `knobs`. Where arms run side by side `control`, too: the `version`,
    /// `algorithm` and `knobs` that a `share` of the clusters of clients runs instead, drawn anew in
    /// each interval with `seed`. An edge that does not know it runs `algorithm` everywhere.
    pub configuration: Value,
}

/// How the engine does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatusBody {
    /// Names this form: `trimtab.engine.status/1`.
    pub schema: String,
    /// The engine's.
    pub version: String,
    /// Since it came, in s.
    pub up_s: f64,
    /// How much there is.
    pub counts: Counts,
    /// What the token that asks may do.
    pub role: Role,
    /// When the secret expires that asks, in ms since 1970; none: never.
    #[serde(default)]
    pub expires_ms: Option<i64>,
    /// Tokens whose secret expires within 14 days, the next one first; at most 20.
    #[serde(default)]
    pub expiring: Vec<Expiring>,
    /// Aggregates of which this engine decides nothing, since what is kept of them is damaged or of another version.
    #[serde(default)]
    pub damaged: Vec<Damaged>,
    /// Orders that keep services on their safe configurations.
    #[serde(default)]
    pub safe: Vec<SafeOrder>,
    /// The services.
    pub services: Vec<ServiceInfo>,
}

/// A token whose secret expires soon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expiring {
    /// Whose it is.
    pub name: String,
    /// When, in ms since 1970.
    pub expires_ms: i64,
}

/// The services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServicesBody {
    /// In the order of their names.
    pub services: Vec<ServiceInfo>,
    /// When the secret expires that asks, in ms since 1970; none: never.
    #[serde(default)]
    pub expires_ms: Option<i64>,
}

/// Aggregates of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AggregatesBody {
    /// In the order of their names.
    pub aggregates: Vec<AggregateBody>,
    /// Those between them whose rows cannot be read. They do not count towards the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableBody>,
    /// There are more, after the last of these.
    pub more: bool,
}

/// An aggregate of a list whose row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreadableBody {
    /// The service, as far as it can be read.
    pub service: String,
    /// The destination subnet, as far as it can be read.
    pub prefix: String,
    /// What is damaged of it, and what to do.
    pub damaged: String,
}

/// An aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AggregateBody {
    /// The service.
    pub service: String,
    /// The destination subnet.
    pub prefix: String,
    /// Whether it learns.
    pub hold: Hold,
    /// Of the configuration in force; 0 for the service's first.
    pub version: u64,
    /// The configuration in force.
    pub configuration: Value,
    /// When it changed, in ms since 1970.
    pub changed_ms: i64,
    /// The last interval that was closed.
    pub closed: Option<i64>,
    /// What it brought.
    pub reward: Option<f64>,
    /// How many decisions there were.
    pub decisions: i64,
    /// An order keeps the whole service on its safe configuration: that one is in force as version
    /// 0, and `version` is what comes back afterwards.
    #[serde(default)]
    pub safe: bool,
    /// What is damaged of it, so that nothing is decided about it, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

/// Puts services on their safe configurations, all aggregates at once, until the order ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewSafe {
    /// Which ones. Default: every one, those to come, too.
    #[serde(default)]
    pub services: Vec<String>,
    /// Why; everybody who looks at the engine sees it.
    pub why: String,
}

/// Ends such orders: what was in force before is so again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EndSafe {
    /// Of which services. Default: all.
    #[serde(default)]
    pub services: Vec<String>,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// Which orders keep services on their safe configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SafeBody {
    /// All that are in force, the oldest first.
    pub orders: Vec<SafeOrder>,
}

/// Decisions about an aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionsBody {
    /// The length of an interval, in ms.
    pub interval_ms: i64,
    /// The latest first.
    pub decisions: Vec<DecisionBody>,
    /// There are more, before the last of these.
    pub more: bool,
    /// What is damaged of the aggregate, and what to do; its decisions are those before which none is
    /// damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
}

/// What was tried in an interval, what came back, and what followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionBody {
    /// The interval that was closed, counted from 1970 in the length that the service's intervals have now.
    pub interval: i64,
    /// When it began, in ms since 1970.
    pub begins_ms: i64,
    /// When it was closed, in ms since 1970.
    pub at_ms: i64,
    /// Whether it learnt then.
    pub hold: Hold,
    /// Of the configuration in force.
    pub version: u64,
    /// That configuration.
    pub configuration: Value,
    /// Reports that came.
    pub reports: i64,
    /// What it brought.
    pub reward: Option<f64>,
    /// Why what followed followed.
    pub why: Value,
}

/// What another choice would have brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIfBody {
    /// The service.
    pub service: String,
    /// The destination subnet; none where it is about all of the service.
    pub prefix: Option<String>,
    /// Aggregates whose decisions were read.
    pub aggregates: u64,
    /// What their log says.
    pub estimate: WhatIf,
}

/// Which aggregates of a service share bottlenecks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharedBody {
    /// The service.
    pub service: String,
    /// Groups of prefixes, as lines of the file that edges read.
    pub together: Vec<String>,
    /// What its log says.
    pub sharing: Sharing,
}

/// A surrogate of a service's reward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SurrogateBody {
    /// The service.
    pub service: String,
    /// What was fitted to its log.
    pub fit: SurrogateFit,
}

/// What an operator wants of an aggregate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OrderBody {
    /// The service.
    pub service: String,
    /// The destination subnet.
    pub prefix: String,
    /// What to do.
    pub action: Action,
    /// The version that the operator looked at: refused where it is another by now.
    pub version: Option<u64>,
    /// For `pin`: the knobs, as `{"gamma": 100}`; those left out are the safe ones. Another algorithm
    /// of the service as `{"algorithm": "bbr"}`; `{}` is the safe configuration.
    pub knobs: Option<Value>,
    /// For `rollback`: to what was in force in this interval.
    pub interval: Option<i64>,
    /// Why, for the audit log.
    #[serde(default)]
    pub reason: String,
}

/// What an operator can do to an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Keep the configuration in force.
    Pause,
    /// Learn again.
    Resume,
    /// Put a configuration in force, and keep it.
    Pin,
    /// Put a configuration of before in force, and keep it.
    Rollback,
    /// Forget what was learnt, and learn anew.
    Reset,
}

impl Action {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Pin => "pin",
            Self::Rollback => "rollback",
            Self::Reset => "reset",
        }
    }
}

/// The audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditBody {
    /// The latest first.
    pub lines: Vec<Audit>,
    /// There are more, before the last of these.
    pub more: bool,
}

/// It was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Done {
    /// Always true.
    pub done: bool,
}

impl Held {
    /// The aggregate's name.
    pub fn name(&self) -> Name {
        Name { service: self.service.clone(), prefix: self.prefix.clone() }
    }
}
