//! The orders that keep services on their safe configurations.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use trimtab_fleet_client::{EndSafe, NewSafe, SafeBody};

use super::gate::{Asker, Sent};
use super::refusal::Refusal;
use crate::clock::now_ms;
use crate::engine::Engine;
use crate::safe;
use crate::store::Line;

/// `POST /v1/safe`
pub(super) async fn begin(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<NewSafe>,
) -> Result<Json<SafeBody>, Refusal> {
    let new = sent.value;
    if new.why.trim().is_empty() {
        return Err(Refusal::malformed("say `why`: everybody who looks at the engine sees it"));
    }
    let learning = engine.learning();
    if let Some(stray) = new.services.iter().find(|name| learning.service(name).is_none()) {
        return Err(Refusal::unknown(format!("the engine has no service {stray:?}")));
    }
    change(&engine, move |text| Ok(safe::with(text, &new, &token.name, now_ms()))).await
}

/// `POST /v1/safe/end`
pub(super) async fn end(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<EndSafe>,
) -> Result<Json<SafeBody>, Refusal> {
    let end = sent.value;
    change(&engine, move |text| safe::without(text, &end, &token.name, now_ms())).await
}

async fn change(
    engine: &Arc<Engine>,
    mut change: impl FnMut(&str) -> Result<(String, Line), String> + Send + 'static,
) -> Result<Json<SafeBody>, Refusal> {
    let done = engine
        .ask(move |engine| {
            let done = engine.store.change_safe_orders(&mut change)?;
            engine.read_safe()?;
            Ok(done)
        })
        .await?;
    done.map_err(Refusal::changed)?;
    Ok(Json(SafeBody { orders: engine.safe.all().to_vec() }))
}
