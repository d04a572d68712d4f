//! What operators and viewers ask for.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use trimtab_fleet_client::{
    AggregateBody, AggregatesBody, AuditBody, DecisionBody, DecisionsBody, Hold, Name,
    ServicesBody, StatusBody,
};

use super::damage::{self, Known, aside_since};
use super::gate::{Asked, Asker};
use super::refusal::Refusal;
use crate::clock::now_ms;
use crate::engine::Engine;
use crate::safe;
use crate::store::{Decided, Row, Search};

/// Rows of one page.
pub(super) const PAGE_MAX: usize = 1000;
const PAGE: usize = 50;

/// Rows of a page, and one more, which tells whether there are more.
fn page(limit: Option<usize>) -> usize {
    limit.unwrap_or(PAGE).clamp(1, PAGE_MAX) + 1
}

/// Drops the row that only tells whether there are more.
fn cut<T>(mut rows: Vec<T>, limit: usize) -> (Vec<T>, bool) {
    let more = rows.len() >= limit;
    rows.truncate(limit - 1);
    (rows, more)
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// `GET /v1/status`
pub(super) async fn status(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, expires_ms }): Extension<Asker>,
) -> Result<Json<StatusBody>, Refusal> {
    let counts = engine.ask(|engine| engine.store.counts()).await?;
    Ok(Json(StatusBody {
        schema: "trimtab.engine.status/1".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        up_s: (now_ms() - engine.started_ms) as f64 / 1000.0,
        counts,
        role: token.role,
        expires_ms,
        expiring: engine.who.expiring(now_ms()),
        damaged: engine.store.damaged(),
        safe: engine.safe.all().to_vec(),
        services: engine.learning().services(),
    }))
}

/// `GET /v1/services`
pub(super) async fn services(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { expires_ms, .. }): Extension<Asker>,
) -> Json<ServicesBody> {
    Json(ServicesBody { services: engine.learning().services(), expires_ms })
}

/// Which aggregates.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// A part of the service's name, a space, and the prefix
    q: Option<String>,
    /// Of this service only
    service: Option<String>,
    /// Filter by hold state
    hold: Option<Hold>,
    /// After this one: service of the last one of the page before
    after_service: Option<String>,
    /// After this one: prefix of the last one of the page before
    after_prefix: Option<String>,
    /// Maximum number of entries, up to 1000; default: 50
    limit: Option<usize>,
}

/// `GET /v1/aggregates`
pub(super) async fn aggregates(
    State(engine): State<Arc<Engine>>,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<AggregatesBody>, Refusal> {
    let limit = page(query.limit);
    let after = query
        .after_service
        .map(|service| Name { service, prefix: query.after_prefix.unwrap_or_default() });
    let search = Search {
        text: query.q.unwrap_or_default().trim().to_owned(),
        service: query.service,
        hold: query.hold,
        after,
        limit,
    };
    let mut all = engine.ask(move |engine| engine.store.aggregates(&search)).await?;
    let more = all.iter().flatten().count() >= limit;
    if more {
        // What cannot be read after the last row of this page belongs to the next one.
        all.pop();
        while all.last().is_some_and(Result::is_err) {
            all.pop();
        }
    }
    let aside = engine.store.damaged();
    let (mut aggregates, mut unreadable) = (Vec::new(), Vec::new());
    for one in all {
        match one {
            Ok(row) => {
                let damaged = aside_since(&aside, &row.name);
                aggregates.push(AggregateBody { damaged, ..body(&engine, row) });
            }
            Err(one) => unreadable.push(damage::unreadable(&aside, one)),
        }
    }
    Ok(Json(AggregatesBody { aggregates, unreadable, more }))
}

/// How long the intervals of a service are, in ms.
pub(super) fn length_ms(engine: &Engine, service: &str) -> i64 {
    let service = engine.learning().service(service);
    service.map_or(1000, |service| service.interval().as_millis() as i64)
}

pub(super) fn body(engine: &Engine, row: Row) -> AggregateBody {
    let length_ms = length_ms(engine, &row.name.service);
    let safe = engine.safe.of(&row.name.service).is_some();
    let configuration = if row.version == 0 || safe {
        engine.learning().first(&row.name).unwrap_or_default()
    } else {
        row.configuration
    };
    AggregateBody {
        service: row.name.service,
        prefix: row.name.prefix,
        hold: row.hold,
        version: row.version as u64,
        configuration: json(&configuration),
        changed_ms: row.changed_ms,
        closed: row.closed.map(|begins_ms| begins_ms.div_euclid(length_ms)),
        reward: row.reward,
        decisions: row.decisions,
        safe,
        damaged: None,
    }
}

/// Which aggregate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneQuery {
    /// The service
    service: String,
    /// The destination subnet
    prefix: String,
}

/// `GET /v1/aggregate`
pub(super) async fn aggregate(
    State(engine): State<Arc<Engine>>,
    Asked(OneQuery { service, prefix }): Asked<OneQuery>,
) -> Result<Json<AggregateBody>, Refusal> {
    let known = Known::ask(&engine, &Name { service, prefix }).await?;
    let damaged = known.damaged.clone();
    Ok(Json(AggregateBody { damaged, ..body(&engine, known.row()?) }))
}

/// Which decisions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionsQuery {
    /// The service
    service: String,
    /// The destination subnet
    prefix: String,
    /// About intervals before this one only
    before: Option<i64>,
    /// Maximum number of entries, up to 1000; default: 50
    limit: Option<usize>,
}

/// `GET /v1/decisions`
pub(super) async fn decisions(
    State(engine): State<Arc<Engine>>,
    Asked(query): Asked<DecisionsQuery>,
) -> Result<Json<DecisionsBody>, Refusal> {
    let name = Name { service: query.service, prefix: query.prefix };
    let limit = page(query.limit);
    let length_ms = length_ms(&engine, &name.service);
    let before = query.before.map_or(i64::MAX, |before| before.saturating_mul(length_ms));
    let known = Known::ask(&engine, &name).await?;
    let (rows, damaged) =
        engine.ask(move |engine| known.decisions(&*engine.store, before, limit)).await?;
    let (rows, more) = cut(rows, limit);
    let learning = engine.learning();
    let first = learning.first(&name).unwrap_or_default();
    let decisions = rows
        .iter()
        .map(|row| decision(row, length_ms, &first, learning.explain(&name, row)))
        .collect();
    Ok(Json(DecisionsBody { interval_ms: length_ms, decisions, more, damaged }))
}

fn decision(row: &Decided, length_ms: i64, first: &str, why: Value) -> DecisionBody {
    let version = if safe::was(&why) { 0 } else { row.version };
    let configuration = if version == 0 { first } else { &row.configuration };
    DecisionBody {
        interval: row.interval.div_euclid(length_ms),
        begins_ms: row.interval,
        at_ms: row.at_ms,
        hold: row.hold,
        version: version as u64,
        configuration: json(configuration),
        reports: row.reports,
        reward: row.reward,
        why,
    }
}

/// Where a page begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditQuery {
    /// Lines before this one only
    before: Option<i64>,
    /// Only what was refused, or only the rest; default: both
    refused: Option<bool>,
    /// Maximum number of entries, up to 1000; default: 50
    limit: Option<usize>,
}

/// `GET /v1/audit`
pub(super) async fn audit(
    State(engine): State<Arc<Engine>>,
    Asked(query): Asked<AuditQuery>,
) -> Result<Json<AuditBody>, Refusal> {
    let limit = page(query.limit);
    let before = query.before.unwrap_or(i64::MAX);
    let refused = query.refused;
    let lines = engine.ask(move |engine| engine.store.audit(before, refused, limit)).await?;
    let (lines, more) = cut(lines, limit);
    Ok(Json(AuditBody { lines, more }))
}
