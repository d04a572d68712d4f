//! Orders of operators about aggregates: about one, or about all that fit.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use trimtab_fleet::Prefix;
use trimtab_fleet_client::{
    Action, AggregateBody, BulkBody, BulkChange, BulkOrder, BulkState, Hold, Name, OrderBody,
};

use super::damage::{self, Known};
use super::gate::{Asker, Sent};
use super::operator::{PAGE_MAX, body, json, length_ms};
use super::refusal::Refusal;
use crate::clock::now_ms;
use crate::engine::Engine;
use crate::learning::Wish;
use crate::safe;
use crate::store::{Order, Row, Search, StoreError};

/// How often an order that names no version is tried where an aggregate changes meanwhile.
const ORDER_TRIES: u32 = 16;
/// Aggregates of one order: one transaction has all of them, and others wait for its end.
const BULK_MAX: usize = 1000;

/// `POST /v1/aggregate`
pub(super) async fn order(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<OrderBody>,
) -> Result<Json<AggregateBody>, Refusal> {
    let wanted = sent.value;
    let name = Name { service: wanted.service.clone(), prefix: wanted.prefix.clone() };
    let changed =
        || Refusal::changed(format!("{name} has changed meanwhile: look again, then say it again"));
    if wanted.action == Action::Reset {
        let names = vec![name.clone()];
        if !reset(&engine, names, &token.name, wanted.reason).await? {
            return Err(Refusal::unknown(format!("no reports for {name}")));
        }
        let row = Known::ask(&engine, &name).await?.whole()?;
        return Ok(Json(body(&engine, row)));
    }
    // Who names no version means the aggregate as it is, and the end of an interval comes at any time.
    let mut left = if wanted.version.is_some() { 1 } else { ORDER_TRIES };
    loop {
        let row = Known::ask(&engine, &name).await?.whole()?;
        if wanted.version.is_some_and(|version| version as i64 != row.version) {
            return Err(changed());
        }
        let order = plan(&engine, &row, &wanted, &token.name).await?;
        if engine.ask(move |engine| engine.store.order(&[(row, order)])).await? {
            break;
        }
        left -= 1;
        if left == 0 {
            return Err(changed());
        }
    }
    engine.tell(vec![name.clone()]);
    let row = Known::ask(&engine, &name).await?.whole()?;
    Ok(Json(body(&engine, row)))
}

/// `POST /v1/aggregates/order`
pub(super) async fn order_all(
    State(engine): State<Arc<Engine>>,
    Extension(Asker { token, .. }): Extension<Asker>,
    sent: Sent<BulkOrder>,
) -> Result<Json<BulkBody>, Refusal> {
    let wanted = sent.value;
    check(&engine, &wanted)?;
    for _ in 0..ORDER_TRIES {
        let planned = plan_all(&engine, &wanted, &token.name).await?;
        let Planned { orders, changes, unchanged } = planned;
        let is_done = !wanted.dry_run && !orders.is_empty();
        let names: Vec<Name> = orders.iter().map(|(row, _)| row.name.clone()).collect();
        let is_carried_out = match wanted.action {
            _ if !is_done => true,
            Action::Reset => {
                reset(&engine, names.clone(), &token.name, wanted.reason.clone()).await?
            }
            _ => engine.ask(move |engine| engine.store.order(&orders)).await?,
        };
        if is_carried_out {
            if is_done {
                engine.tell(names);
            }
            return Ok(Json(BulkBody { done: !wanted.dry_run, changes, unchanged }));
        }
    }
    Err(Refusal::changed("aggregates changed meanwhile, so nothing was done: say it again"))
}

/// What an order for many makes of them.
#[derive(Default)]
struct Planned {
    orders: Vec<(Row, Order)>,
    changes: Vec<BulkChange>,
    unchanged: u32,
}

fn check(engine: &Engine, wanted: &BulkOrder) -> Result<(), Refusal> {
    if let Some(name) = &wanted.service
        && engine.learning().service(name).is_none()
    {
        return Err(Refusal::unknown(format!("the engine has no service {name:?}")));
    }
    if let Some(within) = &wanted.within {
        within.parse::<Prefix>().map_err(|e| Refusal::malformed(format!("within: {e}")))?;
    }
    Ok(())
}

/// The aggregates that an order is for, without what they have learnt.
fn fitting(engine: &Engine, wanted: &BulkOrder) -> Result<Result<Vec<Row>, Refusal>, StoreError> {
    let within: Option<Prefix> = wanted.within.as_ref().and_then(|within| within.parse().ok());
    let is_within = |name: &Name| {
        let Some(within) = within else { return true };
        let own = name.prefix.parse::<Prefix>();
        own.is_ok_and(|own| within.len() <= own.len() && within.contains(own.address()))
    };
    let mut found = Vec::new();
    let mut after = None;
    while found.len() <= BULK_MAX {
        let service = wanted.service.clone();
        let search = Search { service, after, limit: PAGE_MAX, ..Search::default() };
        let page = engine.store.aggregates(&search)?;
        let is_last = page.iter().flatten().count() < PAGE_MAX;
        after = page.iter().flatten().last().map(|row| row.name.clone());
        for one in page {
            match one {
                Ok(row) if is_within(&row.name) => found.push(row),
                // Nobody can name one without a name, so no order is for it.
                Err(one) if one.is_named && is_within(&one.name) => {
                    let name = one.name.clone();
                    let why = damage::unreadable(&engine.store.damaged(), one).damaged;
                    return Ok(Err(damage::refusal(&name, &why)));
                }
                Ok(_) | Err(_) => {}
            }
        }
        if is_last {
            break;
        }
    }
    Ok(Ok(found))
}

async fn plan_all(engine: &Arc<Engine>, wanted: &BulkOrder, who: &str) -> Result<Planned, Refusal> {
    let asked = wanted.clone();
    let rows = engine.ask(move |engine| fitting(engine, &asked)).await??;
    if rows.len() > BULK_MAX {
        return Err(Refusal::malformed(format!(
            "more than {BULK_MAX} aggregates fit: name a service, or a smaller subnet within"
        )));
    }
    let mut planned = Planned::default();
    for row in rows {
        // What a damaged aggregate has learnt cannot be read, and a reset need not.
        let row = if wanted.action == Action::Reset {
            row
        } else {
            Known::ask(engine, &row.name).await?.whole()?
        };
        let before = body(engine, row.clone());
        let service = engine.learning().services().into_iter().find(|s| s.name == row.name.service);
        let knobs = match (&wanted.knobs, service) {
            (Some(named), Some(service)) if named.get("algorithm").is_none() => {
                let named = named.as_object().ok_or_else(|| {
                    Refusal::malformed("knobs are an object, e.g. {\"gamma\": 100}")
                })?;
                Some(service.knobs_with(&before.configuration, named).into())
            }
            (knobs, _) => knobs.clone(),
        };
        let one = OrderBody {
            service: row.name.service.clone(),
            prefix: row.name.prefix.clone(),
            action: wanted.action,
            version: None,
            knobs,
            interval: wanted.interval,
            reason: wanted.reason.clone(),
        };
        let order = plan(engine, &row, &one, who).await?;
        let mut next = Row { hold: order.hold, ..row.clone() };
        if let Some((version, configuration)) = order.configuration.clone() {
            next = Row { version, configuration, ..next };
        }
        let is_as_ordered = order.hold == row.hold
            && match wanted.action {
                Action::Pause | Action::Resume => true,
                Action::Pin | Action::Rollback => {
                    json(&next.configuration) == json(&row.configuration)
                }
                Action::Reset => row.decisions == 0,
            };
        if is_as_ordered {
            planned.unchanged += 1;
            continue;
        }
        let state = |one: AggregateBody| BulkState {
            hold: one.hold,
            version: one.version,
            configuration: one.configuration,
        };
        planned.changes.push(BulkChange {
            service: one.service,
            prefix: one.prefix,
            before: state(before),
            after: state(body(engine, next)),
        });
        planned.orders.push((row, order));
    }
    Ok(planned)
}

/// What an order makes of an aggregate as it was read.
async fn plan(
    engine: &Arc<Engine>,
    row: &Row,
    wanted: &OrderBody,
    who: &str,
) -> Result<Order, Refusal> {
    let reason = wanted.reason.trim();
    let mut order = Order {
        who: who.to_owned(),
        action: wanted.action.name(),
        hold: Hold::Learning,
        configuration: None,
        state: None,
        detail: reason.to_owned(),
        now_ms: now_ms(),
    };
    let Some((hold, wish)) = wish(engine, row, wanted).await? else { return Ok(order) };
    let held = engine
        .learning()
        .wish(&row.name, (row.version, row.state.as_deref()), &wish, order.now_ms)
        .map_err(|message| Refusal::malformed(format!("{}: {message}", row.name)))?;
    order.hold = hold;
    if let Some((version, text)) = &held.configuration {
        let before = if reason.is_empty() { String::new() } else { format!("{reason}; ") };
        order.detail = format!("{before}version {version}: {text}");
    }
    Ok(Order { configuration: held.configuration, state: Some(held.state), ..order })
}

/// Forgets what aggregates have learnt: for one that is set aside there is no other order.
async fn reset(
    engine: &Arc<Engine>,
    names: Vec<Name>,
    who: &str,
    reason: String,
) -> Result<bool, Refusal> {
    let who = who.to_owned();
    Ok(engine.ask(move |engine| engine.store.reset(&names, &who, &reason, now_ms())).await?)
}

/// What an order asks of the learning, and how the aggregate is held afterwards; none of a reset.
async fn wish(
    engine: &Arc<Engine>,
    row: &Row,
    wanted: &OrderBody,
) -> Result<Option<(Hold, Wish)>, Refusal> {
    let needs = |what: &str| Refusal::malformed(format!("{} needs `{what}`", wanted.action.name()));
    Ok(Some(match wanted.action {
        Action::Pause => (Hold::Paused, Wish::Pause),
        Action::Resume => (Hold::Learning, Wish::Resume),
        Action::Reset => return Ok(None),
        Action::Pin => {
            let knobs = wanted.knobs.clone().ok_or_else(|| needs("knobs"))?;
            (Hold::Pinned, Wish::Pin(knobs))
        }
        Action::Rollback => {
            let interval = wanted.interval.ok_or_else(|| needs("interval"))?;
            let length_ms = length_ms(engine, &row.name.service);
            let id = row.id;
            let before = interval.saturating_add(1).saturating_mul(length_ms);
            let found = engine.ask(move |engine| engine.store.decisions(id, before, 1)).await?;
            let found = found
                .into_iter()
                .find(|decided| decided.interval.div_euclid(length_ms) == interval);
            let found = found.ok_or_else(|| {
                Refusal::unknown(format!("{}: nothing is kept of interval {interval}", row.name))
            })?;
            let first = || engine.learning().first(&row.name).unwrap_or_default();
            let is_first = found.version == 0 || safe::was(&json(&found.detail));
            let back = if is_first { first() } else { found.configuration };
            (Hold::Pinned, Wish::Back(back))
        }
    }))
}
