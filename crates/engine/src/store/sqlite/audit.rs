//! The audit, in the file.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, Transaction, params};
use trimtab_fleet_client::Audit;

use super::bad;
use crate::store::{AUDIT_SLACK_MS, AuditCheck, AuditMark, Chained, Line, REFUSED, Turn, Walk};

fn audit_row(row: &SqlRow<'_>) -> rusqlite::Result<Audit> {
    Ok(Audit {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        who: row.get(2)?,
        action: row.get(3)?,
        subject: row.get(4)?,
        detail: row.get(5)?,
    })
}

/// The last line, as it is written down; none where that is gone.
fn end(db: &Connection) -> rusqlite::Result<Option<AuditMark>> {
    let end: Option<String> = db
        .prepare_cached("SELECT value FROM meta WHERE key = 'audit'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(end.and_then(|end| end.parse().ok()))
}

/// Adds a line: who, action, subject and detail.
pub(super) fn write_audit(
    tx: &Transaction<'_>,
    at_ms: i64,
    texts: [&str; 4],
) -> rusqlite::Result<()> {
    let end = end(tx)?.ok_or_else(|| bad(0, "no last line of the audit in the table `meta`"))?;
    let next = end.next(at_ms, texts);
    let [who, action, subject, detail] = texts;
    tx.prepare_cached(
        "INSERT INTO audit (id, at_ms, who, action, subject, detail, previous, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![next.line, at_ms, who, action, subject, detail, end.hash, next.hash])?;
    tx.prepare_cached("UPDATE meta SET value = ?1 WHERE key = 'audit'")?
        .execute([next.to_string()])?;
    Ok(())
}

pub(super) fn list(
    db: &Connection,
    before: i64,
    refused: Option<bool>,
    limit: usize,
) -> rusqlite::Result<Vec<Audit>> {
    db.prepare_cached(
        "SELECT id, at_ms, who, action, subject, detail FROM audit
         WHERE id < ?1 AND (?2 IS NULL OR (action = ?3) = ?2) ORDER BY id DESC LIMIT ?4",
    )?
    .query_map(params![before, refused, REFUSED, limit as i64], audit_row)?
    .collect()
}

fn chained(row: &SqlRow<'_>) -> rusqlite::Result<Chained> {
    Ok(Chained { line: audit_row(row)?, previous: row.get(6)?, hash: row.get(7)? })
}

/// Lines after one, in their order.
pub(super) fn after(db: &Connection, line: i64, limit: usize) -> rusqlite::Result<Vec<Chained>> {
    db.prepare_cached(
        "SELECT id, at_ms, who, action, subject, detail, previous, hash FROM audit
         WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?
    .query_map(params![line, limit as i64], chained)?
    .collect()
}

/// Takes the turn of sending a webhook's events, or gives it up.
pub(super) fn take_turn(tx: &Transaction<'_>, turn: &Turn<'_>) -> rusqlite::Result<Option<i64>> {
    let kept: Option<String> = tx
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([turn.key()], |row| row.get(0))
        .optional()?;
    let last = end(tx)?.map_or(0, |end| end.line);
    let Some(taken) = turn.taken(kept.as_deref(), last) else { return Ok(None) };
    tx.prepare_cached(
        "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
    )?
    .execute([turn.key(), taken.to_string()])?;
    Ok(Some(taken.line))
}

pub(super) fn check(db: &Connection, known: Option<&AuditMark>) -> rusqlite::Result<AuditCheck> {
    // What is written meanwhile is not seen.
    let tx = db.unchecked_transaction()?;
    let mut walk = Walk::new(known);
    let end = end(&tx)?;
    let mut ask = tx.prepare_cached(
        "SELECT id, at_ms, who, action, subject, detail, previous, hash FROM audit ORDER BY id",
    )?;
    let mut rows = ask.query([])?;
    while let Some(row) = rows.next()? {
        walk.add(&chained(row)?);
    }
    Ok(walk.end(end))
}

pub(super) fn forget(tx: &Transaction<'_>, before_ms: i64, now_ms: i64) -> rusqlite::Result<usize> {
    let oldest: Option<(i64, i64)> = tx
        .query_row("SELECT id, at_ms FROM audit ORDER BY id LIMIT 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((first, _)) = oldest.filter(|(_, at_ms)| *at_ms < before_ms - AUDIT_SLACK_MS) else {
        return Ok(0);
    };
    let kept: Option<i64> = tx
        .query_row(
            "SELECT id FROM audit WHERE at_ms >= ?1 ORDER BY id LIMIT 1",
            [before_ms],
            |row| row.get(0),
        )
        .optional()?;
    let last = tx.query_row(
        "SELECT id, hash FROM audit WHERE ?1 IS NULL OR id < ?1 ORDER BY id DESC LIMIT 1",
        [kept],
        |row| Ok(AuditMark { line: row.get(0)?, hash: row.get(1)? }),
    )?;
    let line = Line::forgotten(first, &last, now_ms);
    write_audit(tx, now_ms, line.texts())?;
    tx.execute("DELETE FROM audit WHERE id <= ?1", [last.line])
}
