//! The HTTP API: one table of routes, from which come the routes, who may use each, and their description.

mod edge;
mod gate;
mod operator;
mod refusal;
mod studies;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router, middleware};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub(crate) use operator::new_token;
use trimtab_fleet_client::{
    AggregateBody, AggregatesBody, AuditBody, ConfigurationAnswer, ConfigurationQuery,
    DecisionsBody, Done, ErrorBody, ExperimentBody, ExperimentsBody, NewExperiment, NewRollout,
    NewToken, OrderBody, ReportAnswer, ReportBatch, RevokeToken, Role, RolloutBody, RolloutOrder,
    RolloutsBody, ServicesBody, StatusBody, StopExperiment, TokenSecret, TokensBody,
};

use crate::clock::now_ms;
use crate::dashboard;
use crate::engine::Engine;
use crate::metrics;

/// What a request has: a body or a query.
type SchemaOf = fn(&mut SchemaGenerator) -> Value;

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// The schema itself, and not a reference to it: its properties are the parameters of a query.
fn inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

struct Route {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    roles: &'static [Role],
    query: Option<SchemaOf>,
    body: Option<SchemaOf>,
    answer: SchemaOf,
    handler: MethodRouter<Arc<Engine>>,
}

const EDGES: &[Role] = &[Role::Edge];
const READERS: &[Role] = &[Role::Viewer, Role::Operator];
const OPERATORS: &[Role] = &[Role::Operator];
const ALL: &[Role] = &[Role::Edge, Role::Viewer, Role::Operator];

fn routes() -> Vec<Route> {
    let ask = |path, summary, roles, query, answer, handler| Route {
        method: "get",
        path,
        summary,
        roles,
        query,
        body: None,
        answer,
        handler,
    };
    let say = |path, summary, roles, body, answer, handler| Route {
        method: "post",
        path,
        summary,
        roles,
        query: None,
        body: Some(body),
        answer,
        handler,
    };
    vec![
        say(
            "/v1/reports",
            "Keep reports of an edge; when it answers, they are on the disk",
            EDGES,
            schema::<ReportBatch>,
            schema::<ReportAnswer>,
            post(edge::report),
        ),
        say(
            "/v1/configurations",
            "The configurations that an edge does not have yet, at once or when one changes",
            EDGES,
            schema::<ConfigurationQuery>,
            schema::<ConfigurationAnswer>,
            post(edge::configurations),
        ),
        ask(
            "/v1/services",
            "The services",
            ALL,
            None,
            schema::<ServicesBody>,
            get(operator::services),
        ),
        ask(
            "/v1/status",
            "How the engine does",
            READERS,
            None,
            schema::<StatusBody>,
            get(operator::status),
        ),
        ask(
            "/v1/aggregates",
            "Aggregates, in the order of their names",
            READERS,
            Some(inline::<operator::ListQuery>),
            schema::<AggregatesBody>,
            get(operator::aggregates),
        ),
        ask(
            "/v1/aggregate",
            "An aggregate",
            READERS,
            Some(inline::<operator::OneQuery>),
            schema::<AggregateBody>,
            get(operator::aggregate),
        ),
        say(
            "/v1/aggregate",
            "Pause, resume, pin or roll back an aggregate",
            OPERATORS,
            schema::<OrderBody>,
            schema::<AggregateBody>,
            post(operator::order),
        ),
        ask(
            "/v1/decisions",
            "What was tried with an aggregate, what came back, and what followed",
            READERS,
            Some(inline::<operator::DecisionsQuery>),
            schema::<DecisionsBody>,
            get(operator::decisions),
        ),
        ask(
            "/v1/experiments",
            "Experiments, the latest first",
            READERS,
            Some(inline::<studies::OfService>),
            schema::<ExperimentsBody>,
            get(studies::experiments),
        ),
        ask(
            "/v1/experiment",
            "An experiment, with what it has shown",
            READERS,
            Some(inline::<studies::OfName>),
            schema::<ExperimentBody>,
            get(studies::experiment),
        ),
        say(
            "/v1/experiments",
            "Begin an experiment",
            OPERATORS,
            schema::<NewExperiment>,
            schema::<ExperimentBody>,
            post(studies::begin_experiment),
        ),
        say(
            "/v1/experiment/stop",
            "Stop an experiment before its end",
            OPERATORS,
            schema::<StopExperiment>,
            schema::<ExperimentBody>,
            post(studies::stop_experiment),
        ),
        ask(
            "/v1/rollouts",
            "Staged rollouts, the latest first",
            READERS,
            Some(inline::<studies::OfService>),
            schema::<RolloutsBody>,
            get(studies::rollouts),
        ),
        ask(
            "/v1/rollout",
            "A staged rollout, with what is known of its stage",
            READERS,
            Some(inline::<studies::OfName>),
            schema::<RolloutBody>,
            get(studies::rollout),
        ),
        say(
            "/v1/rollouts",
            "Begin a staged rollout",
            OPERATORS,
            schema::<NewRollout>,
            schema::<RolloutBody>,
            post(studies::begin_rollout),
        ),
        say(
            "/v1/rollout/order",
            "Hold, resume or abort a staged rollout",
            OPERATORS,
            schema::<RolloutOrder>,
            schema::<RolloutBody>,
            post(studies::order_rollout),
        ),
        ask(
            "/v1/audit",
            "What operators did",
            READERS,
            Some(inline::<operator::AuditQuery>),
            schema::<AuditBody>,
            get(operator::audit),
        ),
        ask(
            "/v1/tokens",
            "Every token, without its secret",
            OPERATORS,
            None,
            schema::<TokensBody>,
            get(operator::tokens),
        ),
        say(
            "/v1/tokens",
            "Make a token",
            OPERATORS,
            schema::<NewToken>,
            schema::<TokenSecret>,
            post(operator::add_token),
        ),
        say(
            "/v1/tokens/revoke",
            "Revoke a token",
            OPERATORS,
            schema::<RevokeToken>,
            schema::<Done>,
            post(operator::revoke_token),
        ),
    ]
}

/// All that the engine answers.
pub(crate) fn router(engine: &Arc<Engine>) -> Router {
    let guarded = |roles, handler: MethodRouter<Arc<Engine>>| {
        let gate = gate::Gate { engine: Arc::clone(engine), roles };
        handler.layer(middleware::from_fn_with_state(gate, gate::pass))
    };
    let mut router = Router::new();
    for route in routes() {
        router = router.route(route.path, guarded(route.roles, route.handler));
    }
    router
        .route("/metrics", guarded(READERS, get(metrics_page)))
        .route("/openapi.json", get(|| async { Json(openapi()) }))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .merge(dashboard::router())
        .fallback(|| async {
            refusal::Refusal::unknown(
                "there is nothing here: /openapi.json describes what there is",
            )
        })
        .layer(middleware::from_fn_with_state(Arc::clone(engine), gate::note))
        .layer(middleware::map_response(harden))
        .with_state(Arc::clone(engine))
}

async fn metrics_page(State(engine): State<Arc<Engine>>) -> Result<Response, refusal::Refusal> {
    let counts = engine.ask(|engine| engine.store.counts()).await?;
    let kind = [(CONTENT_TYPE, metrics::CONTENT_TYPE)];
    let damaged = engine.store.damaged().len();
    let page = engine.metrics.page(&counts, damaged, engine.health.behind_s());
    Ok((kind, page).into_response())
}

/// `GET /healthz`: whether to leave the process alone. What a start would not mend is for `/readyz`.
async fn health(State(engine): State<Arc<Engine>>) -> Response {
    if engine.health.lives(now_ms()) {
        return "ok\n".into_response();
    }
    let message = "what closes intervals gives no sign of life: start the engine again\n";
    (StatusCode::SERVICE_UNAVAILABLE, message).into_response()
}

/// `GET /readyz`: whether intervals are closed in time, and the store answers.
async fn ready(State(engine): State<Arc<Engine>>) -> Response {
    let now = now_ms();
    let store = engine.ask(move |engine| engine.store_answers(now)).await;
    let store = store.err().map(|_| "the store does not answer: see the log".to_owned());
    let body = engine.health.ready(now_ms(), engine.store.damaged().len(), store);
    let status = if body.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(body)).into_response()
}

/// Browsers load nothing from elsewhere, keep nothing, and show this in no frame.
async fn harden(mut response: Response) -> Response {
    let policy = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The description of the API, OpenAPI 3.1.
pub(crate) fn openapi() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let mut paths: Map<String, Value> = Map::new();
    let error = schema::<ErrorBody>(&mut generator);
    for route in routes() {
        let content = |schema: Value| json!({ "application/json": { "schema": schema } });
        let roles: Vec<&str> = route.roles.iter().map(|role| role.name()).collect();
        let mut operation = json!({
            "summary": route.summary,
            "description": format!("For tokens of role {}.", roles.join(", ")),
            "x-roles": roles,
            "security": [{ "token": [] }],
            "responses": {
                "200": { "description": "Done", "content": content((route.answer)(&mut generator)) },
                "default": { "description": "Refused", "content": content(error.clone()) },
            },
        });
        if let Some(body) = route.body {
            operation["requestBody"] =
                json!({ "required": true, "content": content(body(&mut generator)) });
        }
        if let Some(query) = route.query {
            operation["parameters"] = parameters(&query(&mut generator));
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Trimtab's engine",
            "description": "Reports in, configurations out; and what operators may ask and do.",
            "version": "1",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn parameters(query: &Value) -> Value {
    let empty = Map::new();
    let properties = query["properties"].as_object().unwrap_or(&empty);
    let required = query["required"].as_array().cloned().unwrap_or_default();
    let one = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let said = schema.as_object_mut().and_then(|object| object.remove("description"));
        json!({
            "name": name, "in": "query", "required": required.iter().any(|r| r == name),
            "description": said, "schema": schema,
        })
    };
    properties.iter().map(one).collect()
}
