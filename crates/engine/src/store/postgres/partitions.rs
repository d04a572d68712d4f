//! The table of decisions in partitions, one for each day of their intervals (UTC), so that old ones
//! go as a whole: one `DROP TABLE` in place of a `DELETE` for each row, and no rows that are dead.
//!
//! A partition is made a day ahead, or when the first decision wants it, and goes when no decision
//! in it is younger than what is kept. It is made apart and then attached, which holds up nobody who
//! reads or writes. To drop it locks the whole table for a moment: where that is not to be had soon,
//! it is tried again later. Two engines exclude each other by a lock of PostgreSQL's.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::error::SqlState;

use super::link::{Failed, Link, Links};
use super::{SCHEMA, since};
use crate::logging::log;
use crate::store::StoreError;

/// What a partition has, in ms.
pub(in crate::store) const DAY_MS: i64 = 24 * 3_600_000;
/// Who makes or drops partitions holds this lock. An arbitrary number.
const LOCK: i64 = 0x7472_696d_7461_6232;
/// How often to look for partitions that are old enough to go.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// A partition: its name, and the intervals that it has.
type Partition = (String, Range<i64>);

/// All partitions, the oldest first.
fn list(link: &mut Link) -> Result<Vec<Partition>, Failed> {
    let rows = link.query(
        "SELECT c.relname::text, substring(b.bounds FROM 'FROM \\(''?(-?[0-9]+)')::bigint,
             substring(b.bounds FROM 'TO \\(''?(-?[0-9]+)')::bigint
         FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid,
             LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid)) b (bounds)
         WHERE i.inhparent = to_regclass('decisions') AND b.bounds <> 'DEFAULT' ORDER BY 2 NULLS FIRST",
        &[],
    )?;
    let range =
        |from: Option<i64>, to: Option<i64>| from.unwrap_or(i64::MIN)..to.unwrap_or(i64::MAX);
    Ok(rows.iter().map(|row| (row.get(0), range(row.get(1), row.get(2)))).collect())
}

/// Makes the partition of an interval, where there is none, and says what there is then; to be
/// called in a transaction.
pub(in crate::store) fn make(link: &mut Link, interval: i64) -> Result<Vec<Partition>, Failed> {
    link.query("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
    let mut all = list(link)?;
    if !all.iter().any(|(_, has)| has.contains(&interval)) {
        let day = interval.div_euclid(DAY_MS);
        let has = day.saturating_mul(DAY_MS)..(day + 1).saturating_mul(DAY_MS);
        let name = format!("decisions_{day}");
        link.batch(&format!(
            "CREATE TABLE \"{name}\" (LIKE decisions INCLUDING DEFAULTS);
             ALTER TABLE decisions ATTACH PARTITION \"{name}\" FOR VALUES FROM ({}) TO ({})",
            has.start, has.end
        ))?;
        all.push((name, has));
    }
    Ok(all)
}

/// Makes a partition of the table of decisions that version 6 had, with all its rows where they are:
/// it goes as a whole, too. To be called in a transaction.
pub(super) fn from_6(link: &mut Link) -> Result<(), Failed> {
    link.batch(
        "ALTER TABLE decisions RENAME TO decisions_before;
         ALTER INDEX decisions_pkey RENAME TO decisions_before_pkey;
         ALTER INDEX decisions_at RENAME TO decisions_before_at",
    )?;
    link.batch(since(SCHEMA, 7))?;
    let last = link.first("SELECT max(interval) FROM decisions_before", &[])?;
    let Some(last): Option<i64> = last.and_then(|row| row.get(0)) else {
        link.batch("DROP TABLE decisions_before")?;
        return Ok(());
    };
    let end = (last.div_euclid(DAY_MS) + 1).saturating_mul(DAY_MS);
    link.batch(&format!(
        "ALTER TABLE decisions ATTACH PARTITION decisions_before
             FOR VALUES FROM (MINVALUE) TO ({end})"
    ))?;
    Ok(())
}

/// What an engine knows of the partitions.
#[derive(Default)]
pub(super) struct Partitions {
    /// What they have; another engine may have dropped one since.
    known: Mutex<Vec<Range<i64>>>,
    /// When it last looked for old ones, and found none to drop.
    looked: Mutex<Option<Instant>>,
}

impl Partitions {
    fn covers(&self, interval: i64) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|has| has.contains(&interval))
    }

    fn learn(&self, all: Vec<Partition>) {
        let all = all.into_iter().map(|(_, has)| has).collect();
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Makes sure that there is a partition for an interval.
    pub(super) fn cover(&self, links: &Links, interval: i64) -> Result<(), StoreError> {
        if !self.covers(interval) {
            self.learn(links.write(|link| make(link, interval))?);
        }
        Ok(())
    }

    /// Looks anew from now on: another engine may have dropped what was wanted.
    pub(super) fn doubt(&self) {
        self.learn(Vec::new());
    }

    /// Drops the oldest partition where all of it may go, and says whether it did.
    pub(super) fn drop_old(&self, links: &Links, before_ms: i64) -> Result<bool, StoreError> {
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Ok(false);
        }
        // Somebody reads all of it, as `pg_dump` does: there is time.
        let mut is_read = false;
        let dropped = links.write(|link| {
            drop_oldest(link, before_ms).inspect_err(|e| {
                is_read = matches!(e, Failed::Server(e) if e.code() == Some(&SqlState::LOCK_NOT_AVAILABLE));
            })
        });
        let dropped = if is_read { Ok(None) } else { dropped };
        if let Ok(Some(name)) = &dropped {
            log(&format!("drops decisions that are too old: {name}"));
            self.doubt();
        } else {
            *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        dropped.map(|name| name.is_some())
    }
}

/// Drops the oldest partition that has nothing to keep, and names it.
fn drop_oldest(link: &mut Link, before_ms: i64) -> Result<Option<String>, Failed> {
    let mine = link.first("SELECT pg_try_advisory_xact_lock($1)", &[&LOCK])?;
    if !mine.is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    for (name, has) in list(link)?.into_iter().filter(|(_, has)| has.end <= before_ms) {
        // What was closed late is as young as any other decision.
        let is_young = |link: &mut Link| -> Result<bool, Failed> {
            let young = link.first(
                "SELECT EXISTS (SELECT FROM decisions
                     WHERE interval >= $1 AND interval < $2 AND at_ms >= $3)",
                &[&has.start, &has.end, &before_ms],
            )?;
            Ok(young.is_none_or(|row| row.get(0)))
        };
        if is_young(link)? {
            continue;
        }
        // Everybody waits who comes after; the table itself is locked first, as by who writes.
        link.batch(
            "SET LOCAL lock_timeout TO '1s'; LOCK TABLE ONLY decisions IN ACCESS EXCLUSIVE MODE",
        )?;
        if is_young(link)? {
            return Ok(None);
        }
        link.batch(&format!("DROP TABLE \"{name}\""))?;
        return Ok(Some(name));
    }
    Ok(None)
}
