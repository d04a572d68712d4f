//! The HTTP API. Its routes come from one table (`routes.rs`), as does its description.

mod comparisons;
mod damage;
mod edge;
mod fit_surrogate;
mod gate;
mod log;
mod operator;
mod orders;
mod overview;
mod refusal;
mod routes;
mod safe;
mod sharing;
mod studies;
mod tokens;
mod trace;
mod what_if;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router, middleware};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub(crate) use tokens::{check_scope, new_token, rotation};
use trimtab_fleet_client::ErrorBody;

use self::routes::{READERS, routes, schema};
use crate::clock::now_ms;
use crate::dashboard;
use crate::engine::Engine;
use crate::metrics;
use crate::safe::keeping;

/// What orchestrators ask for, without a token: they would end the engine where they get no answer.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

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
        .layer(middleware::from_fn_with_state(Arc::clone(engine), trace::request))
        .with_state(Arc::clone(engine))
}

async fn metrics_page(State(engine): State<Arc<Engine>>) -> Result<Response, refusal::Refusal> {
    let now = now_ms();
    let (counts, seen) =
        engine.ask(|engine| Ok((engine.store.counts()?, engine.store.edges_seen()?))).await?;
    let edges = engine.who.edges(now);
    let ages = seen.iter().filter(|(token, _)| edges.contains(token)).map(|(_, at)| now - at);
    engine.metrics.edges(ages.collect(), engine.silent_ms());
    let kind = [(CONTENT_TYPE, metrics::CONTENT_TYPE)];
    let damaged = engine.store.damaged().len();
    let orders = engine.safe.all();
    let services = engine.learning().services();
    let safe = services.iter().filter(|one| keeping(&orders, &one.name).is_some()).count();
    engine.metrics.tokens(engine.who.standing(now));
    let page = engine.metrics.page(&counts, (damaged, safe), engine.health.behind_s());
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
    let policy = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri \
                  'none'; form-action 'none'";
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
