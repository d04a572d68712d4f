//! The tables: made where there are none, and brought up to date where an older engine made them.

use std::path::Path;
use std::sync::Mutex;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::audit::write_audit;
use super::error_of;
use super::shapes::FileShapes;
use crate::logging::log;
use crate::store::pack::Seen;
use crate::store::{FROM_3, Lengths, SCHEMA_VERSION, StoreError, since};

const SCHEMA: &str = include_str!("../schema.sql");

/// Makes the tables, or brings them up to date where lengths of intervals are given, in one transaction.
pub(super) fn prepare(
    path: &Path,
    db: &mut Connection,
    lengths: Option<&Lengths>,
) -> Result<(), StoreError> {
    let fail = |e: rusqlite::Error| error_of(path, "open", &e);
    let place = path.display().to_string();
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let tables: i64 =
        tx.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fail)?;
    if tables == 0 {
        tx.execute_batch(SCHEMA).map_err(fail)?;
        tx.execute("INSERT INTO meta VALUES ('schema', ?1)", [SCHEMA_VERSION.to_string()])
            .map_err(fail)?;
        return tx.commit().map_err(fail);
    }
    let found: Result<String, _> =
        tx.query_row("SELECT value FROM meta WHERE key = 'schema'", [], |row| row.get(0));
    match found.as_deref().map(|found| (found, found.parse::<u32>())) {
        Ok((_, Ok(SCHEMA_VERSION))) => return Ok(()),
        Ok((_, Ok(old @ 1..SCHEMA_VERSION))) => {
            let Some(lengths) = lengths else {
                return Err(StoreError::Older { place, found: old, known: SCHEMA_VERSION });
            };
            log(&format!(
                "{place} has tables of version {old}: brings them up to version {SCHEMA_VERSION}"
            ));
            if old == 1 {
                from_1(&tx).map_err(fail)?;
            }
            if old <= 2 {
                tx.execute_batch(since(SCHEMA, 3)).map_err(fail)?;
            }
            if old <= 3 {
                tx.execute_batch(FROM_3).map_err(fail)?;
                lengths.iter().try_for_each(|one| ms_of(&tx, one)).map_err(fail)?;
            }
            if old <= 4 {
                from_4(&tx).map_err(fail)?;
            }
            if old <= 5 {
                tx.execute_batch(since(SCHEMA, 6)).map_err(fail)?;
            }
            // Version 7 is another one in PostgreSQL alone.
        }
        Ok((found, _)) => {
            let found = found.to_owned();
            return Err(StoreError::Version { place, found, known: SCHEMA_VERSION });
        }
        Err(e) => {
            let reason = format!("it has tables, but does not say of which version: {e}");
            return Err(StoreError::Damaged { place, reason });
        }
    }
    tx.execute("UPDATE meta SET value = ?1 WHERE key = 'schema'", [SCHEMA_VERSION.to_string()])
        .map_err(fail)?;
    tx.commit().map_err(fail)
}

/// Makes times of a service's numbers of intervals. No number is as large as a time, so none gets in another's way.
fn ms_of(tx: &Transaction<'_>, (service, length): (&String, &i64)) -> rusqlite::Result<()> {
    for sql in [
        "UPDATE reports SET interval = interval * ?2 WHERE service = ?1",
        "UPDATE decisions SET interval = interval * ?2, previous = previous * ?2
         WHERE aggregate IN (SELECT id FROM aggregates WHERE service = ?1)",
        "UPDATE aggregates SET closed = closed * ?2 WHERE service = ?1",
    ] {
        tx.execute(sql, params![service, length])?;
    }
    Ok(())
}

/// Version 4 had an audit without a chain. Its lines begin the new one.
fn from_4(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch("ALTER TABLE audit RENAME TO audit_4;")?;
    tx.execute_batch(since(SCHEMA, 5))?;
    let mut all =
        tx.prepare("SELECT at_ms, who, action, subject, detail FROM audit_4 ORDER BY id")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| row.get::<_, String>(column);
        let texts = [text(1)?, text(2)?, text(3)?, text(4)?];
        write_audit(tx, row.get(0)?, texts.each_ref().map(String::as_str))?;
    }
    drop(rows);
    drop(all);
    tx.execute_batch("DROP TABLE audit_4;")
}

/// Version 1 kept documents as they are, and decisions by aggregate.
fn from_1(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch("DROP INDEX decisions_at; ALTER TABLE decisions RENAME TO decisions_1;")?;
    let parts = |from: &str| {
        let begin = SCHEMA.find(from)?;
        let end = begin + SCHEMA[begin..].find("\n\n")?;
        Some(&SCHEMA[begin..end])
    };
    for part in ["CREATE TABLE decisions", "CREATE TABLE shapes"] {
        tx.execute_batch(parts(part).expect("the schema has it"))?;
    }
    let seen = Mutex::default();
    pack_decisions(tx, &seen)?;
    pack_states(tx, &seen)?;
    tx.execute_batch("DROP TABLE decisions_1;")
}

fn pack_decisions(tx: &Transaction<'_>, seen: &Mutex<Seen>) -> rusqlite::Result<()> {
    let mut all = tx.prepare(
        "SELECT aggregate, interval, at_ms, hold, version, configuration, reports, reward, detail FROM decisions_1
         ORDER BY aggregate, interval",
    )?;
    let mut rows = all.query([])?;
    let mut last: Option<(i64, i64)> = None;
    while let Some(row) = rows.next()? {
        let (aggregate, interval): (i64, i64) = (row.get(0)?, row.get(1)?);
        let previous = last.filter(|last| last.0 == aggregate).map(|last| last.1);
        let (configuration, detail): (String, String) = (row.get(5)?, row.get(8)?);
        let packed = FileShapes { db: tx, seen }.pack(&[&configuration, &detail])?;
        tx.prepare_cached("INSERT INTO decisions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
            .execute(params![
                interval,
                aggregate,
                previous,
                row.get::<_, i64>(2)?,
                row.get::<_, String>(3)?,
                row.get::<_, i64>(4)?,
                row.get::<_, i64>(6)?,
                row.get::<_, Option<f64>>(7)?,
                packed
            ])?;
        last = Some((aggregate, interval));
    }
    Ok(())
}

fn pack_states(tx: &Transaction<'_>, seen: &Mutex<Seen>) -> rusqlite::Result<()> {
    let mut all = tx.prepare("SELECT id FROM aggregates WHERE state IS NOT NULL")?;
    let ids: Vec<i64> = all.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in ids {
        let state: Vec<u8> =
            tx.query_row("SELECT state FROM aggregates WHERE id = ?1", [id], |row| row.get(0))?;
        let state = String::from_utf8_lossy(&state);
        let packed = FileShapes { db: tx, seen }.pack(&[&state])?;
        tx.prepare_cached("UPDATE aggregates SET state = ?2 WHERE id = ?1")?
            .execute(params![id, packed])?;
    }
    Ok(())
}
