//! What the engine has, as its answers give it: services, aggregates, and the audit log.

use serde::{Deserialize, Serialize};

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reports for its services, and asks for their configurations.
    Edge,
    /// Sees all, and may pause, pin and roll back.
    Operator,
    /// Sees all.
    Viewer,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Operator => "operator",
            Self::Viewer => "viewer",
        }
    }

    /// The role of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Edge, Self::Operator, Self::Viewer].into_iter().find(|role| role.name() == name)
    }
}

/// Whether an aggregate learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// It learns, and its configuration changes.
    Learning,
    /// An operator keeps the configuration that it had.
    Paused,
    /// An operator keeps a configuration that they chose.
    Pinned,
}

impl Hold {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Learning => "learning",
            Self::Paused => "paused",
            Self::Pinned => "pinned",
        }
    }

    /// That of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Learning, Self::Paused, Self::Pinned].into_iter().find(|hold| hold.name() == name)
    }
}

/// An aggregate's name: what the traffic is, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Name {
    /// The service.
    pub service: String,
    /// The destination subnet.
    pub prefix: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.service, self.prefix)
    }
}

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Audit {
    /// Grows with each line.
    pub id: i64,
    /// In ms since 1970.
    pub at_ms: i64,
    /// Whose token.
    pub who: String,
    /// What they did.
    pub action: String,
    /// To what.
    pub subject: String,
    /// How.
    pub detail: String,
}

/// An order that keeps every aggregate of a service on its safe configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SafeOrder {
    /// The service; none: every one, those to come, too.
    pub service: Option<String>,
    /// Whose token.
    pub who: String,
    /// Since when, in ms since 1970.
    pub at_ms: i64,
    /// Why.
    pub why: String,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Aggregates.
    pub aggregates: i64,
    /// Of these, paused.
    pub paused: i64,
    /// Of these, pinned.
    pub pinned: i64,
    /// Edges that ever reported.
    pub edges: i64,
    /// Reports that wait for their interval to be closed.
    pub waiting_reports: i64,
    /// Decisions, those among them that are no longer kept, too.
    pub decisions: i64,
}

/// An aggregate of which nothing is decided, since what is kept of it is damaged or of another version. Edges keep the
/// configuration that they have, and its reports wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Damaged {
    /// The service.
    pub service: String,
    /// The destination subnet.
    pub prefix: String,
    /// When it was found so, in ms since 1970.
    pub since_ms: i64,
    /// What is wrong.
    pub reason: String,
}

/// A service, as edges and operators need to know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceInfo {
    /// Its name.
    pub name: String,
    /// How long its intervals are, in ms; they are counted from 1970.
    pub interval_ms: i64,
    /// The algorithm whose knobs are learnt.
    pub algorithm: String,
    /// What was installed before, to which everything falls back; none: the safe knobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incumbent: Option<String>,
    /// Algorithms that may take its place, the incumbent first where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// The reward, as it is written.
    pub reward: String,
    /// The share of the clusters of clients that run the safe configuration next to each trial; none:
    /// all run the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_by_side: Option<f64>,
    /// The knobs that may be learnt, with their ranges.
    pub knobs: Vec<KnobInfo>,
}

/// A knob that may be learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnobInfo {
    /// Its name.
    pub name: String,
    /// The least value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// `log` where equal steps are equal factors, else `linear`.
    #[serde(default)]
    pub scale: String,
    /// The value of a pin that leaves it out; none where the engine is older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe: Option<f64>,
}

/// Whether the engine is ready.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadyBody {
    /// Whether intervals are closed, in time, and the store answers.
    pub ready: bool,
    /// Since intervals were last closed without trouble, in s.
    pub closed_s: f64,
    /// How long ago the oldest interval that is not closed might have been, in s.
    pub behind_s: f64,
    /// Aggregates that are set aside; they make no engine unready.
    pub damaged: usize,
    /// What is wrong.
    pub trouble: Option<String>,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// One word, for programs: as `token`, `clock` or `malformed`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}
