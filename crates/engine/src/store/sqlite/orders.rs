//! Orders about aggregates, in the file: each transaction has all of them, or none.

use rusqlite::{OptionalExtension, Transaction, named_params, params};
use trimtab_fleet_client::Name;

use super::audit::write_audit;
use super::shapes::FileShapes;
use super::studies;
use crate::store::{Order, Row};

/// Carries out orders on aggregates that are as they were read; false where one is not.
pub(super) fn order(
    tx: &Transaction<'_>,
    shapes: &mut FileShapes<'_>,
    orders: &[(Row, Order)],
) -> rusqlite::Result<bool> {
    let mut as_seen = tx.prepare_cached(
        "SELECT 1 FROM aggregates WHERE id = ?1 AND version = ?2 AND hold = ?3 AND decisions = ?4",
    )?;
    for (seen, _) in orders {
        let Row { id, version, hold, decisions, .. } = seen;
        if !as_seen.exists(params![id, version, hold.name(), decisions])? {
            return Ok(false);
        }
    }
    for (seen, order) in orders {
        let state = order.state.as_ref().map(|state| shapes.pack(&[state])).transpose()?;
        tx.prepare_cached(
            "UPDATE aggregates SET hold = :hold, state = coalesce(:state, state),
                 version = coalesce(:version, version), configuration = coalesce(:next, configuration),
                 changed_ms = CASE WHEN :next IS NULL THEN changed_ms ELSE :now END
             WHERE id = :id",
        )?
        .execute(named_params! {
            ":hold": order.hold.name(), ":state": state,
            ":next": order.configuration.as_ref().map(|c| &c.1),
            ":version": order.configuration.as_ref().map(|c| c.0),
            ":now": order.now_ms, ":id": seen.id,
        })?;
        let subject = seen.name.to_string();
        write_audit(tx, order.now_ms, [&order.who, order.action, &subject, &order.detail])?;
        studies::leave(tx, (seen.id, &seen.name), &order.who, order.now_ms)?;
    }
    Ok(true)
}

/// Forgets what aggregates have learnt, and gives their numbers; none where one is not there.
pub(super) fn reset(
    tx: &Transaction<'_>,
    names: &[Name],
    (who, detail): (&str, &str),
    now_ms: i64,
) -> rusqlite::Result<Option<Vec<i64>>> {
    let mut find =
        tx.prepare_cached("SELECT id FROM aggregates WHERE service = ?1 AND prefix = ?2")?;
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        let id = find.query_row(params![name.service, name.prefix], |row| row.get(0)).optional()?;
        let Some(id) = id else { return Ok(None) };
        ids.push(id);
    }
    for (id, name) in ids.iter().zip(names) {
        tx.prepare_cached("UPDATE aggregates SET state = NULL, hold = 'learning' WHERE id = ?1")?
            .execute([id])?;
        write_audit(tx, now_ms, [who, "reset", &name.to_string(), detail])?;
        studies::leave(tx, (*id, name), who, now_ms)?;
    }
    Ok(Some(ids))
}
