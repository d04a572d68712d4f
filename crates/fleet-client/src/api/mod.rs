//! Requests and answers of the engine's HTTP API: JSON, with the units in the names.

mod bulk;
mod compare;
mod overview;
mod state;
mod study;
mod token;
mod types;

pub use bulk::{BulkBody, BulkChange, BulkOrder, BulkState};
pub use compare::{ComparisonsBody, HostCompared, HostComparisons, MetricCompared, RuleCompared};
pub use overview::{FellBack, Gain, HeldAggregate, InForceCount, OverviewBody, ServiceOverview};
pub use state::{
    Audit, Counts, Damaged, ErrorBody, Hold, KnobInfo, Name, ReadyBody, Role, SafeOrder,
    ServiceInfo,
};
pub use study::{
    ExperimentBody, ExperimentsBody, NewExperiment, NewRollout, RolloutAction, RolloutBody,
    RolloutOrder, RolloutsBody, StopExperiment,
};
pub use token::{
    EXPIRES_SOON_MS, FormerSecret, NewToken, RevokeToken, RotateToken, Token, TokenSecret,
    TokensBody, Validity,
};
pub use types::{
    Action, AggregateBody, AggregatesBody, AuditBody, ConfigurationAnswer, ConfigurationItem,
    ConfigurationQuery, DecisionBody, DecisionsBody, Done, EndSafe, Expiring, Held, NewSafe,
    OrderBody, ReportAnswer, ReportBatch, SafeBody, ServicesBody, SharedBody, StatusBody,
    SurrogateBody, UnreadableBody, WhatIfBody,
};
