//! What hosts found by comparing their rules, in and out.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use trimtab_fleet_client::{ComparisonsBody, Done, HostComparisons};

use super::gate::{Asker, Sent};
use super::refusal::Refusal;
use crate::clock::now_ms;
use crate::engine::Engine;

/// `POST /v1/comparisons`
pub(super) async fn tell(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<HostComparisons>,
) -> Result<Json<Done>, Refusal> {
    engine.comparisons.keep(&token, sent.value, now_ms()).map_err(Refusal::oversized)?;
    Ok(Json(Done { done: true }))
}

/// `GET /v1/comparisons`
pub(super) async fn list(State(engine): State<Arc<Engine>>) -> Json<ComparisonsBody> {
    Json(ComparisonsBody { comparisons: engine.comparisons.all(now_ms()) })
}
