//! Batches, taken into the file.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Transaction, params};
use trimtab_fleet_client::Name;

use crate::store::{Batch, Outcome};

/// Names whose numbers are remembered; beyond, they are asked for again.
const KNOWN_MAX: usize = 1 << 20;

/// The numbers of aggregates, and the last interval of each that was closed.
pub(super) type Known = HashMap<Name, (i64, i64)>;

/// The number of an aggregate, which is made where there is none, and the last interval of it that was closed.
fn find(
    tx: &Transaction<'_>,
    known: &mut Known,
    name: &Name,
    now_ms: i64,
) -> rusqlite::Result<(i64, i64)> {
    if let Some(found) = known.get(name) {
        return Ok(*found);
    }
    let there = tx
        .prepare_cached("SELECT id, closed FROM aggregates WHERE service = ?1 AND prefix = ?2")?
        .query_row(params![name.service, name.prefix], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(i64::MIN)))
        })
        .optional()?;
    let found = match there {
        Some(found) => found,
        None => {
            tx.prepare_cached(
                "INSERT INTO aggregates (service, prefix, hold, version, configuration, decisions, changed_ms)
                 VALUES (?1, ?2, 'learning', 0, '', 0, ?3)",
            )?
            .execute(params![name.service, name.prefix, now_ms])?;
            (tx.last_insert_rowid(), i64::MIN)
        }
    };
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(name.clone(), found);
    Ok(found)
}

/// Keeps a batch, wholly or not at all.
pub(super) fn accept_one(
    tx: &Transaction<'_>,
    known: &mut Known,
    batch: &Batch,
) -> rusqlite::Result<Outcome> {
    let last: Option<(i64, Vec<u8>, u32)> = tx
        .prepare_cached("SELECT sequence, digest, late FROM edges WHERE token = ?1")?
        .query_row([batch.token], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    match last {
        Some((last, digest, late)) if last == batch.sequence && digest == batch.digest => {
            return Ok(Outcome::Again { late });
        }
        Some((last, ..)) if last >= batch.sequence => return Ok(Outcome::Replayed { last }),
        _ => {}
    }
    let (mut late, mut repeated) = (0, 0);
    for report in &batch.reports {
        let (aggregate, closed) = find(tx, known, &report.name, batch.received_ms)?;
        if report.interval <= closed {
            late += 1;
            continue;
        }
        let added = tx
            .prepare_cached(
                "INSERT INTO reports (aggregate, service, interval, edge, version, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                aggregate,
                report.name.service,
                report.interval,
                batch.token,
                report.version,
                report.bytes
            ])?;
        repeated += u32::from(added == 0);
    }
    let kept = batch.reports.len() as i64 - i64::from(late) - i64::from(repeated);
    tx.prepare_cached(
        "INSERT INTO edges VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (token) DO UPDATE
         SET sequence = ?2, digest = ?3, seen_ms = ?4, reports = reports + ?5, late = ?6",
    )?
    .execute(params![
        batch.token,
        batch.sequence,
        batch.digest,
        batch.received_ms,
        kept,
        late
    ])?;
    Ok(Outcome::Accepted { late, repeated })
}
