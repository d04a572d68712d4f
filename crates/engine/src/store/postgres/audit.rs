//! The audit, on the server. Who adds a line holds the row of `meta` with the last one until the
//! transaction ends, so that several engines write one chain.

use postgres::Row as SqlRow;
use trimtab_fleet_client::Audit;

use super::link::{Failed, Link};
use crate::store::{AUDIT_SLACK_MS, AuditCheck, AuditMark, Chained, Line, REFUSED, Turn, Walk};

/// Lines that a check reads at a time.
const PAGE: usize = 5000;

fn audit_row(row: &SqlRow) -> Audit {
    Audit {
        id: row.get(0),
        at_ms: row.get(1),
        who: row.get(2),
        action: row.get(3),
        subject: row.get(4),
        detail: row.get(5),
    }
}

/// The last line, which no other engine follows until the transaction ends.
fn lock(link: &mut Link) -> Result<AuditMark, Failed> {
    let row = link.first("SELECT value FROM meta WHERE key = 'audit' FOR UPDATE", &[])?;
    row.and_then(|row| row.get::<_, &str>(0).parse().ok()).ok_or(Failed::Document)
}

/// Adds a line: who, action, subject and detail.
pub(super) fn write_audit(link: &mut Link, at_ms: i64, texts: [&str; 4]) -> Result<(), Failed> {
    let end = lock(link)?;
    let next = end.next(at_ms, texts);
    let [who, action, subject, detail] = texts;
    link.execute(
        "INSERT INTO audit (id, at_ms, who, action, subject, detail, previous, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            &next.line,
            &at_ms,
            &who,
            &action,
            &subject,
            &detail,
            &end.hash.as_slice(),
            &next.hash.as_slice(),
        ],
    )?;
    link.execute("UPDATE meta SET value = $1 WHERE key = 'audit'", &[&next.to_string()])?;
    Ok(())
}

pub(super) fn list(
    link: &mut Link,
    before: i64,
    refused: Option<bool>,
    limit: usize,
) -> Result<Vec<Audit>, Failed> {
    let rows = link.query(
        "SELECT id, at_ms, who, action, subject, detail FROM audit
         WHERE id < $1 AND ($2::boolean IS NULL OR (action = $3) = $2) ORDER BY id DESC LIMIT $4",
        &[&before, &refused, &REFUSED, &(limit as i64)],
    )?;
    Ok(rows.iter().map(audit_row).collect())
}

fn chained(row: &SqlRow) -> Chained {
    Chained { line: audit_row(row), previous: row.get(6), hash: row.get(7) }
}

/// Lines after one, in their order.
pub(super) fn after(link: &mut Link, line: i64, limit: usize) -> Result<Vec<Chained>, Failed> {
    let rows = link.query(
        "SELECT id, at_ms, who, action, subject, detail, previous, hash FROM audit
         WHERE id > $1 ORDER BY id LIMIT $2",
        &[&line, &(limit as i64)],
    )?;
    Ok(rows.iter().map(chained).collect())
}

/// Takes the turn of sending a webhook's events, or gives it up.
pub(super) fn take_turn(link: &mut Link, turn: &Turn<'_>) -> Result<Option<i64>, Failed> {
    let key = turn.key();
    // Of two engines that begin together, the second one waits here.
    link.execute("INSERT INTO meta VALUES ($1, '') ON CONFLICT (key) DO NOTHING", &[&key])?;
    let row = link.first("SELECT value FROM meta WHERE key = $1 FOR UPDATE", &[&key])?;
    let kept: Option<String> = row.map(|row| row.get(0));
    let last = link.first("SELECT coalesce(max(id), 0) FROM audit", &[])?;
    let last = last.map_or(0, |row| row.get(0));
    let Some(taken) = turn.taken(kept.as_deref(), last) else { return Ok(None) };
    link.execute("UPDATE meta SET value = $2 WHERE key = $1", &[&key, &taken.to_string()])?;
    Ok(Some(taken.line))
}

pub(super) fn check(link: &mut Link, known: Option<&AuditMark>) -> Result<AuditCheck, Failed> {
    // What is written meanwhile is not seen.
    link.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let done = walk(link, known);
    // Where this fails the connection is gone, and the transaction with it.
    let _ = link.batch("ROLLBACK");
    done
}

fn walk(link: &mut Link, known: Option<&AuditMark>) -> Result<AuditCheck, Failed> {
    let row = link.first("SELECT value FROM meta WHERE key = 'audit'", &[])?;
    let end = row.and_then(|row| row.get::<_, &str>(0).parse().ok());
    let mut walk = Walk::new(known);
    let mut line = i64::MIN;
    loop {
        let lines = after(link, line, PAGE)?;
        let Some(last) = lines.last() else { break };
        line = last.line.id;
        lines.iter().for_each(|chained| walk.add(chained));
    }
    Ok(walk.end(end))
}

pub(super) fn forget(link: &mut Link, before_ms: i64, now_ms: i64) -> Result<usize, Failed> {
    let oldest = "SELECT id FROM audit WHERE at_ms < $1 AND id = (SELECT min(id) FROM audit)";
    let limit_ms = before_ms - AUDIT_SLACK_MS;
    if link.first(oldest, &[&limit_ms])?.is_none() {
        return Ok(0);
    }
    // Another engine may have been here since.
    lock(link)?;
    let Some(first) = link.first(oldest, &[&limit_ms])? else { return Ok(0) };
    let last = link.first(
        "SELECT id, hash FROM audit WHERE id < coalesce(
             (SELECT min(id) FROM audit WHERE at_ms >= $1), 9223372036854775807)
         ORDER BY id DESC LIMIT 1",
        &[&before_ms],
    )?;
    let last = last.ok_or(Failed::Document)?;
    let hash: Vec<u8> = last.get(1);
    let hash = hash.try_into().map_err(|_| Failed::Document)?;
    let last = AuditMark { line: last.get(0), hash };
    let line = Line::forgotten(first.get(0), &last, now_ms);
    write_audit(link, now_ms, line.texts())?;
    Ok(link.execute("DELETE FROM audit WHERE id <= $1", &[&last.line])? as usize)
}

/// Version 4 had an audit without a chain. Its lines begin the new one, whose tables these are.
pub(super) fn from_4(link: &mut Link, tables: &str) -> Result<(), Failed> {
    link.batch("ALTER TABLE audit RENAME TO audit_4")?;
    link.batch(tables)?;
    let old =
        link.query("SELECT id, at_ms, who, action, subject, detail FROM audit_4 ORDER BY id", &[])?;
    for Audit { at_ms, who, action, subject, detail, .. } in old.iter().map(audit_row) {
        write_audit(link, at_ms, [&who, &action, &subject, &detail])?;
    }
    link.batch("DROP TABLE audit_4")?;
    Ok(())
}
