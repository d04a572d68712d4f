//! The table of routes: from it come the routes, who may use each, and their description.

use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;
use trimtab_fleet_client::{
    AggregateBody, AggregatesBody, AuditBody, BulkBody, BulkOrder, ComparisonsBody,
    ConfigurationAnswer, ConfigurationQuery, DecisionsBody, Done, EndSafe, ExperimentBody,
    ExperimentsBody, HostComparisons, NewExperiment, NewRollout, NewSafe, NewToken, OrderBody,
    OverviewBody, ReportAnswer, ReportBatch, RevokeToken, Role, RolloutBody, RolloutOrder,
    RolloutsBody, RotateToken, SafeBody, ServicesBody, SharedBody, StatusBody, StopExperiment,
    SurrogateBody, TokenSecret, TokensBody, WhatIfBody,
};

use super::{
    comparisons, edge, fit_surrogate, operator, orders, overview, safe, sharing, studies, tokens,
    what_if,
};
use crate::engine::Engine;

/// Writes the schema of a body, a query or an answer.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Value;

/// A reference to the schema.
pub(super) fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// The schema itself: its properties are the parameters of a query.
fn inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

/// A method of a path.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) roles: &'static [Role],
    pub(super) query: Option<SchemaOf>,
    pub(super) body: Option<SchemaOf>,
    pub(super) answer: SchemaOf,
    pub(super) handler: MethodRouter<Arc<Engine>>,
}

const EDGES: &[Role] = &[Role::Edge];
pub(super) const READERS: &[Role] = &[Role::Viewer, Role::Operator];
const OPERATORS: &[Role] = &[Role::Operator];
const ALL: &[Role] = &[Role::Edge, Role::Viewer, Role::Operator];

/// Makes routes of lines: method, path, roles, handler, what is sent, `=>` the answer, and a
/// summary.
macro_rules! table {
    ($($method:ident $path:literal $roles:ident $handler:path
        $([query $query:ty])? $([body $body:ty])? => $answer:ty, $summary:literal;)*) => {
        vec![$(Route {
            method: stringify!($method),
            path: $path,
            summary: $summary,
            roles: $roles,
            query: None$(.or(Some(inline::<$query> as SchemaOf)))?,
            body: None$(.or(Some(schema::<$body> as SchemaOf)))?,
            answer: schema::<$answer>,
            handler: $method($handler),
        },)*]
    };
}

/// Every route of the API.
pub(super) fn routes() -> Vec<Route> {
    table! {
        post "/v1/reports" EDGES edge::report [body ReportBatch]
            => ReportAnswer, "Keep reports of an edge; when it answers, they are on the disk";
        post "/v1/configurations" EDGES edge::configurations [body ConfigurationQuery]
            => ConfigurationAnswer,
            "The configurations that an edge does not have yet, at once or when one changes";
        post "/v1/comparisons" EDGES comparisons::tell [body HostComparisons]
            => Done, "Keep what a host found by comparing its rules, in place of its last";
        get "/v1/comparisons" READERS comparisons::list
            => ComparisonsBody, "What hosts found by comparing their rules with control arms";
        get "/v1/services" ALL operator::services
            => ServicesBody, "The services";
        get "/v1/status" READERS operator::status
            => StatusBody, "How the engine does";
        get "/v1/overview" READERS overview::overview
            => OverviewBody, "Each service at a glance: what runs, what it gains, what is held";
        get "/v1/aggregates" READERS operator::aggregates [query operator::ListQuery]
            => AggregatesBody, "Aggregates, in the order of their names";
        get "/v1/aggregate" READERS operator::aggregate [query operator::OneQuery]
            => AggregateBody, "An aggregate";
        post "/v1/aggregate" OPERATORS orders::order [body OrderBody]
            => AggregateBody, "Pause, resume, pin or roll back an aggregate";
        post "/v1/aggregates/order" OPERATORS orders::order_all [body BulkOrder]
            => BulkBody, "The same for all that fit, or for none; or what it would change";
        get "/v1/decisions" READERS operator::decisions [query operator::DecisionsQuery]
            => DecisionsBody, "What was tried with an aggregate, what came back, and what followed";
        get "/v1/what-if" READERS what_if::answer [query what_if::WhatIfQuery]
            => WhatIfBody, "What another choice would have brought, by the decisions so far";
        get "/v1/shared" READERS sharing::answer [query sharing::SharedQuery]
            => SharedBody, "Which aggregates of a service share bottlenecks, by the decisions so far";
        get "/v1/fit-surrogate" READERS fit_surrogate::answer
            [query fit_surrogate::FitSurrogateQuery]
            => SurrogateBody, "A surrogate of the reward, fitted to the decisions so far";
        post "/v1/safe" OPERATORS safe::begin [body NewSafe]
            => SafeBody, "Put services on their safe configurations, all aggregates at once";
        post "/v1/safe/end" OPERATORS safe::end [body EndSafe]
            => SafeBody, "End that: what was in force before is so again";
        get "/v1/experiments" READERS studies::experiments [query studies::OfService]
            => ExperimentsBody, "Experiments, the latest first";
        get "/v1/experiment" READERS studies::experiment [query studies::OfName]
            => ExperimentBody, "An experiment, with what it has shown";
        post "/v1/experiments" OPERATORS studies::begin_experiment [body NewExperiment]
            => ExperimentBody, "Begin an experiment";
        post "/v1/experiment/stop" OPERATORS studies::stop_experiment [body StopExperiment]
            => ExperimentBody, "Stop an experiment before its end";
        get "/v1/rollouts" READERS studies::rollouts [query studies::OfService]
            => RolloutsBody, "Staged rollouts, the latest first";
        get "/v1/rollout" READERS studies::rollout [query studies::OfName]
            => RolloutBody, "A staged rollout, with what is known of its stage";
        post "/v1/rollouts" OPERATORS studies::begin_rollout [body NewRollout]
            => RolloutBody, "Begin a staged rollout";
        post "/v1/rollout/order" OPERATORS studies::order_rollout [body RolloutOrder]
            => RolloutBody, "Hold, resume or abort a staged rollout";
        get "/v1/audit" READERS operator::audit [query operator::AuditQuery]
            => AuditBody, "What operators and the engine did, and what was refused";
        get "/v1/tokens" OPERATORS tokens::list
            => TokensBody, "Every token, without its secret";
        post "/v1/tokens" OPERATORS tokens::add [body NewToken]
            => TokenSecret, "Make a token";
        post "/v1/tokens/rotate" OPERATORS tokens::rotate [body RotateToken]
            => TokenSecret, "Give a token another secret; the one before is valid for a while";
        post "/v1/tokens/revoke" OPERATORS tokens::revoke [body RevokeToken]
            => Done, "Revoke a token";
    }
}
