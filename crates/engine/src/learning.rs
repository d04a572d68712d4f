//! What the engine asks of the learning, and nothing more: the rest of the engine moves texts and bytes.

use std::sync::Arc;

use trimtab_fleet::Service;
use trimtab_fleet_client::{Name, ServiceInfo};

use crate::store::{Closed, Decided, Open};

/// What an operator wants of an aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wish {
    /// Stay at the best guess of each context.
    Pause,
    /// Learn; from what is pinned, where something is.
    Resume,
    /// These knobs, as `{"gamma": 100}`; the others have their safe values.
    Pin(serde_json::Value),
    /// The knobs of a configuration that was in force before.
    Back(String),
}

/// What it leads to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) state: String,
    /// With its version.
    pub(crate) configuration: Option<(i64, String)>,
}

/// What a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) name: Name,
    /// Its number, in lengths of the sender.
    pub(crate) interval: i64,
    /// Of the configuration that it was measured under.
    pub(crate) version: i64,
    /// Why no edge can have seen this, where that is so.
    pub(crate) implausible: Option<String>,
}

/// Learning, service by service. Deterministic: the same calls in the same order have the same answers.
pub(crate) trait Learning: Send + Sync {
    /// The services, in the order of their names.
    fn services(&self) -> Vec<ServiceInfo>;

    /// A service.
    fn service(&self, name: &str) -> Option<Arc<Service>>;

    /// What a report is about; else what is wrong with it.
    fn read(&self, report: &[u8]) -> Result<About, String>;

    /// The configuration of an aggregate of which nobody has heard; none where there is no such service.
    fn first(&self, name: &Name) -> Option<String>;

    /// Closes intervals, each of another aggregate, on all cores, and says of each what is in force
    /// from now on; or why nothing can be decided, since what is kept of the aggregate is not
    /// understood. Then nothing of it is changed. None goes by what another of them found.
    fn decide(&self, open: &[Open], now_ms: i64) -> Vec<Result<Closed, String>>;

    /// Takes what the aggregates of a service found until now, as [`Learning::found`] left it; none
    /// where nothing is kept.
    fn heed(&self, service: &str, kept: Option<&str>);

    /// Whether the decisions since [`Learning::heed`] found something for other aggregates.
    fn has_found(&self, service: &str) -> bool;

    /// What to keep for other aggregates, where `kept` is kept now; none where nothing is to change.
    fn found(&self, service: &str, kept: Option<&str>) -> Option<String>;

    /// Why it was decided so, as JSON for people and programs, from what [`Learning::decide`] left of it.
    fn explain(&self, name: &Name, decided: &Decided) -> serde_json::Value;

    /// Carries out an operator's wish on an aggregate with a version and a state: the learner's
    /// state after it, and what is in force from now on where that changes; or what is wrong with
    /// it.
    fn wish(
        &self,
        name: &Name,
        before: (i64, Option<&str>),
        wish: &Wish,
        now_ms: i64,
    ) -> Result<Held, String>;
}
