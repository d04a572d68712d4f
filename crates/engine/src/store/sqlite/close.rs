//! Intervals that are over, closed in the file.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, Transaction, named_params, params};
use trimtab_fleet_client::Name;

use super::accept::Known;
use super::audit::write_audit;
use super::shapes::FileShapes;
use super::{ROW, Sqlite, is_damage, name_of, studies, whole_row};
use crate::store::{Closed, Decide, Due, InStudy, Line, Open, found_key, waves};

/// Closes intervals that are due, in one transaction: how many, and whose configuration changed.
pub(super) fn close(
    store: &Sqlite,
    tx: &Transaction<'_>,
    known: &mut Known,
    due: &Due<'_>,
    decide: &mut dyn Decide,
) -> rusqlite::Result<(usize, Vec<Name>)> {
    let found = find_due(tx, due, &store.aside.left_out(due.now_ms))?;
    if found.is_empty() {
        return Ok((0, Vec::new()));
    }
    decide.heed(found_by_all(tx, due.service)?.as_deref());
    let active = studies::active(tx, due.service)?;
    let (mut done, mut changed, mut fell_back) = (0, Vec::new(), Vec::new());
    let mut damaged = BTreeSet::new();
    for wave in waves(&found, |&(_, id)| id) {
        let mut shapes = FileShapes { db: tx, seen: &store.seen };
        let (mut places, mut all) = (Vec::new(), Vec::new());
        for &(interval, id) in wave {
            if damaged.contains(&id) {
                continue;
            }
            let studies = studies::of_aggregate(tx, &active, id)?;
            match load(&mut shapes, due.service, interval, id, studies) {
                Ok((open, previous)) => {
                    places.push((id, previous));
                    all.push(open);
                }
                Err(e) if is_damage(&e) => {
                    store.aside.add(id, &name_of_number(tx, id)?, &e.to_string(), due.now_ms);
                    damaged.insert(id);
                }
                Err(e) => return Err(e),
            }
        }
        let decided = decide.on(&all);
        for ((open, (id, previous)), decided) in all.into_iter().zip(places).zip(decided) {
            let closed = match decided {
                Ok(closed) => closed,
                Err(reason) => {
                    store.aside.add(id, &open.name, &reason, due.now_ms);
                    damaged.insert(id);
                    continue;
                }
            };
            store.aside.mended(id);
            done += 1;
            keep(&mut shapes, (id, previous, due.now_ms), &open, &closed)?;
            if let Some(measured) = &closed.measured {
                studies::measure(tx, id, measured)?;
            }
            if let Some(why) = &closed.leaves {
                studies::leave(tx, (id, &open.name), why, due.now_ms)?;
            }
            fell_back.extend(closed.alarm().map(|alarm| (open.name.clone(), alarm)));
            if let Some(known) = known.get_mut(&open.name) {
                known.1 = open.interval;
            }
            if closed.configuration.is_some() {
                changed.push(open.name);
            }
        }
    }
    if decide.has_found() {
        let kept = found_by_all(tx, due.service)?;
        if let Some(text) = decide.found(kept.as_deref()) {
            tx.prepare_cached(
                "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
            )?
            .execute([found_key(due.service), text])?;
        }
    }
    if let Some(line) = Line::fell_back(due.service, &fell_back, due.now_ms) {
        write_audit(tx, line.at_ms, line.texts())?;
    }
    Ok((done, changed))
}

/// What the aggregates of a service found, as it is kept.
fn found_by_all(tx: &Transaction<'_>, service: &str) -> rusqlite::Result<Option<String>> {
    tx.prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([found_key(service)], |row| row.get(0))
        .optional()
}

/// The name of an aggregate, as far as it can be told.
fn name_of_number(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<Name> {
    let found = tx
        .prepare_cached("SELECT service, prefix FROM aggregates WHERE id = ?1")?
        .query_row([id], |row| Ok(name_of(row, 0)?.0))
        .optional()?;
    Ok(found.unwrap_or_else(|| Name { service: "?".to_owned(), prefix: format!("number {id}") }))
}

/// The intervals that are due, with the numbers of their aggregates.
fn find_due(
    tx: &Transaction<'_>,
    due: &Due<'_>,
    left_out: &[i64],
) -> rusqlite::Result<Vec<(i64, i64)>> {
    let left_out = serde_json::Value::from(left_out).to_string();
    tx.prepare_cached(
        "SELECT interval, aggregate FROM reports WHERE service = ?1 AND interval <= ?2
             AND aggregate NOT IN (SELECT value FROM json_each(?4))
         GROUP BY interval, aggregate ORDER BY interval, aggregate LIMIT ?3",
    )?
    .query_map(params![due.service, due.through, due.limit as i64, left_out], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?
    .collect()
}

fn load(
    shapes: &mut FileShapes<'_>,
    service: &str,
    interval: i64,
    id: i64,
    studies: Vec<InStudy>,
) -> rusqlite::Result<(Open, Option<i64>)> {
    let reports: Vec<(Vec<u8>, Option<i64>)> = shapes
        .db
        .prepare_cached(
            "SELECT bytes, edge FROM reports WHERE service = ?1 AND interval = ?2 AND aggregate = ?3
             ORDER BY id",
        )?
        .query_map(params![service, interval, id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let (reports, edges) = reports.into_iter().unzip();
    let row = shapes
        .db
        .prepare_cached(&format!("SELECT {ROW} FROM aggregates WHERE id = ?1"))?
        .query_row([id], |row| whole_row(row, shapes))?;
    let open = Open {
        name: row.name,
        interval,
        hold: row.hold,
        version: row.version,
        configuration: row.configuration,
        state: row.state,
        reports,
        edges,
        studies,
    };
    Ok((open, row.closed))
}

fn keep(
    shapes: &mut FileShapes<'_>,
    (id, previous, now_ms): (i64, Option<i64>, i64),
    open: &Open,
    closed: &Closed,
) -> rusqlite::Result<()> {
    let db = shapes.db;
    db.prepare_cached(
        "DELETE FROM reports WHERE service = ?1 AND interval = ?2 AND aggregate = ?3",
    )?
    .execute(params![open.name.service, open.interval, id])?;
    let packed = shapes.pack(&[&open.configuration, &closed.detail])?;
    db.prepare_cached("INSERT INTO decisions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
            open.interval,
            id,
            previous,
            now_ms,
            open.hold.name(),
            open.version,
            open.reports.len() as i64,
            closed.reward,
            packed
        ])?;
    let state = closed.state.as_ref().map(|state| shapes.pack(&[state])).transpose()?;
    db.prepare_cached(
        "UPDATE aggregates SET state = coalesce(:state, state), closed = :closed, reward = :reward,
             decisions = decisions + 1, version = coalesce(:version, version),
             configuration = coalesce(:next, configuration),
             changed_ms = CASE WHEN :next IS NULL THEN changed_ms ELSE :now END
         WHERE id = :id",
    )?
    .execute(named_params! {
        ":state": state, ":closed": open.interval, ":reward": closed.reward,
        ":version": closed.configuration.as_ref().map(|c| c.0),
        ":next": closed.configuration.as_ref().map(|c| &c.1), ":now": now_ms, ":id": id,
    })?;
    Ok(())
}
