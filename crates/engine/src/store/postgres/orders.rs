//! Orders about aggregates, on the server: each transaction has all of them, or none. Rows are locked
//! in the order of their numbers, as where intervals are closed, so that nobody waits in a circle.

use trimtab_fleet_client::Name;

use super::audit::write_audit;
use super::link::{Failed, Link};
use super::shapes::ServerShapes;
use super::studies;
use crate::store::{Order, Row};

/// Carries out orders on aggregates that are as they were read; false where one is not.
pub(super) fn order(
    link: &mut Link,
    shapes: ServerShapes<'_>,
    orders: &[(Row, Order)],
) -> Result<bool, Failed> {
    let mut sorted: Vec<&(Row, Order)> = orders.iter().collect();
    sorted.sort_by_key(|(seen, _)| seen.id);
    for (seen, _) in &sorted {
        let as_seen = link.first(
            "SELECT 1 FROM aggregates WHERE id = $1 AND version = $2 AND hold = $3 AND decisions = $4
             FOR UPDATE",
            &[&seen.id, &seen.version, &seen.hold.name(), &seen.decisions],
        )?;
        if as_seen.is_none() {
            return Ok(false);
        }
    }
    for (seen, order) in orders {
        let state = order.state.as_ref().map(|state| shapes.pack(&[state])).transpose()?;
        let version = order.configuration.as_ref().map(|c| c.0);
        let next = order.configuration.as_ref().map(|c| c.1.as_str());
        link.execute(
            "UPDATE aggregates SET hold = $1, state = coalesce($2, state), version = coalesce($3, version),
                 configuration = coalesce($4, configuration),
                 changed_ms = CASE WHEN $4::text IS NULL THEN changed_ms ELSE $5 END
             WHERE id = $6",
            &[&order.hold.name(), &state, &version, &next, &order.now_ms, &seen.id],
        )?;
        let subject = seen.name.to_string();
        write_audit(link, order.now_ms, [&order.who, order.action, &subject, &order.detail])?;
        studies::leave(link, (seen.id, &seen.name), &order.who, order.now_ms)?;
    }
    Ok(true)
}

/// Forgets what aggregates have learnt, and gives their numbers; none where one is not there.
pub(super) fn reset(
    link: &mut Link,
    names: &[Name],
    (who, detail): (&str, &str),
    now_ms: i64,
) -> Result<Option<Vec<i64>>, Failed> {
    let mut ids: Vec<i64> = Vec::with_capacity(names.len());
    for name in names {
        let row = link.first(
            "SELECT id FROM aggregates WHERE service = $1 AND prefix = $2",
            &[&name.service, &name.prefix],
        )?;
        let Some(row) = row else { return Ok(None) };
        ids.push(row.get(0));
    }
    link.query("SELECT id FROM aggregates WHERE id = ANY($1) ORDER BY id FOR UPDATE", &[&ids])?;
    link.execute(
        "UPDATE aggregates SET state = NULL, hold = 'learning' WHERE id = ANY($1)",
        &[&ids],
    )?;
    for (id, name) in ids.iter().zip(names) {
        write_audit(link, now_ms, [who, "reset", &name.to_string(), detail])?;
        studies::leave(link, (*id, name), who, now_ms)?;
    }
    Ok(Some(ids))
}
