//! The span of each request, with the names of OpenTelemetry's semantic conventions for HTTP
//! servers.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::context::FutureExt;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::propagation::TraceContextPropagator;

use super::PROBES;
use super::gate::Asker;
use super::refusal::Refused;
use crate::engine::Engine;
use crate::traces::Begin;

/// Answers a request within a span, which continues the caller's trace where the caller has one.
pub(super) async fn request(
    State(engine): State<Arc<Engine>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    if !engine.traces.are_on() || route.as_deref().is_some_and(|route| PROBES.contains(&route)) {
        return next.run(request).await;
    }
    let caller = TraceContextPropagator::new().extract(&Parent(request.headers()));
    let method = method(request.method());
    let span = engine.traces.begin(|| Begin {
        // What nobody serves is not named: its path is somebody else's text.
        name: match &route {
            Some(route) => format!("{} {route}", method.unwrap_or("HTTP")),
            None => method.unwrap_or("HTTP").to_owned(),
        },
        kind: SpanKind::Server,
        parent: Some(&caller),
        at: None,
        links: Vec::new(),
    });
    span.set("http.request.method", method.unwrap_or("_OTHER"));
    span.set("url.scheme", engine.scheme);
    if let Some(route) = route {
        // No route has a variable part.
        span.set("url.path", route.clone());
        span.set("http.route", route);
    }
    let within = span.context().cloned().unwrap_or_default();
    let response = next.run(request).with_context(within).await;
    let status = response.status();
    span.set("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.fail(status.as_str().to_owned());
    }
    if let Some(asker) = response.extensions().get::<Asker>() {
        span.set("enduser.id", asker.token.name.clone());
    }
    if let Some(Refused(refusal)) = response.extensions().get::<Refused>() {
        span.set("trimtab.refusal", refusal.reason);
    }
    response
}

/// A method that there is.
fn method(method: &Method) -> Option<&'static str> {
    let known = [
        (Method::GET, "GET"),
        (Method::POST, "POST"),
        (Method::HEAD, "HEAD"),
        (Method::PUT, "PUT"),
        (Method::DELETE, "DELETE"),
        (Method::OPTIONS, "OPTIONS"),
        (Method::PATCH, "PATCH"),
    ];
    known.into_iter().find(|(one, _)| one == method).map(|(_, name)| name)
}

/// The caller's `traceparent` (W3C Trace Context §3.2), and no other header: `tracestate` would be in
/// the span, and anything may be in it.
struct Parent<'a>(&'a HeaderMap);

impl Extractor for Parent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).filter(|_| key == "traceparent")?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}
