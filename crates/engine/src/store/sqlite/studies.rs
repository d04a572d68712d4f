//! Experiments and rollouts, in the file.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, Transaction, params};
use trimtab_fleet_client::Name;

use super::audit::write_audit;
use super::{bad, hold};
use crate::store::study::{
    Begun, Candidate, CellRow, InStudy, Measured, MemberRow, NewStudy, Standing, Study, StudyKind,
    StudyStep, added, unreadable,
};

const STUDY: &str = "id, service, name, kind, standing, revision, document, changed_ms";

fn study_row(row: &SqlRow<'_>) -> rusqlite::Result<Study> {
    let kind: String = row.get(3)?;
    let standing: String = row.get(4)?;
    Ok(Study {
        id: row.get(0)?,
        service: row.get(1)?,
        name: row.get(2)?,
        kind: StudyKind::from_name(&kind).ok_or_else(|| bad(3, "no such kind"))?,
        standing: Standing::from_name(&standing).ok_or_else(|| bad(4, "no such standing"))?,
        revision: row.get(5)?,
        document: row.get(6)?,
        changed_ms: row.get(7)?,
    })
}

/// Those of a service that decide what aggregates run, the running one first.
pub(super) fn active(db: &Connection, service: &str) -> rusqlite::Result<Vec<Arc<Study>>> {
    db.prepare_cached(&format!(
        "SELECT {STUDY} FROM studies WHERE service = ?1 AND standing <> 'past' ORDER BY standing DESC"
    ))?
    .query_map([service], |row| study_row(row).map(Arc::new))?
    .collect()
}

/// What they are to an aggregate.
pub(super) fn of_aggregate(
    db: &Connection,
    active: &[Arc<Study>],
    aggregate: i64,
) -> rusqlite::Result<Vec<InStudy>> {
    let mut ask = db.prepare_cached(
        "SELECT place FROM members WHERE study = ?1 AND aggregate = ?2 AND left_ms IS NULL",
    )?;
    active
        .iter()
        .map(|study| {
            let place = ask.query_row([study.id, aggregate], |row| row.get(0)).optional()?;
            Ok(InStudy { study: Arc::clone(study), place })
        })
        .collect()
}

pub(super) fn measure(
    tx: &Connection,
    aggregate: i64,
    measured: &Measured,
) -> rusqlite::Result<()> {
    let key = params![measured.study, aggregate, measured.block];
    let sums: Option<String> = tx
        .prepare_cached(
            "SELECT sums FROM cells WHERE study = ?1 AND aggregate = ?2 AND block = ?3",
        )?
        .query_row(key, |row| row.get(0))
        .optional()?;
    let Some(sums) = added(sums.as_deref(), &measured.observation) else {
        unreadable(measured.study, aggregate);
        return Ok(());
    };
    tx.prepare_cached(
        "INSERT INTO cells VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (study, aggregate, block) DO UPDATE SET sums = ?5",
    )?
    .execute(params![measured.study, aggregate, measured.block, measured.arm, sums])?;
    Ok(())
}

/// An operator's order takes an aggregate out of what is running.
pub(super) fn leave(
    tx: &Transaction<'_>,
    (aggregate, of): (i64, &Name),
    who: &str,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let left: Vec<(i64, String)> = tx
        .prepare_cached(
            "SELECT s.id, s.name FROM studies s JOIN members m ON m.study = s.id
             WHERE s.service = ?1 AND s.standing = 'running' AND m.aggregate = ?2 AND m.left_ms IS NULL",
        )?
        .query_map(params![of.service, aggregate], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (study, name) in left {
        tx.prepare_cached("UPDATE members SET left_ms = ?3 WHERE study = ?1 AND aggregate = ?2")?
            .execute([study, aggregate, now_ms])?;
        let detail = format!("from now on it is no part of {name}");
        write_audit(tx, now_ms, [who, "leave", &of.to_string(), &detail])?;
    }
    Ok(())
}

pub(super) fn studies(
    db: &Connection,
    service: Option<&str>,
    kind: StudyKind,
) -> rusqlite::Result<Vec<Study>> {
    db.prepare_cached(&format!(
        "SELECT {STUDY} FROM studies WHERE kind = ?1 AND (?2 IS NULL OR service = ?2) ORDER BY id DESC"
    ))?
    .query_map(params![kind.name(), service], study_row)?
    .collect()
}

pub(super) fn candidates(
    db: &Connection,
    service: &str,
    from: i64,
) -> rusqlite::Result<Vec<Candidate>> {
    db.prepare_cached(
        "SELECT a.id, a.service, a.prefix, a.hold, d.mean FROM aggregates a LEFT JOIN (
             SELECT aggregate, avg(reward) AS mean FROM decisions WHERE interval >= ?2 GROUP BY aggregate
         ) d ON d.aggregate = a.id WHERE a.service = ?1 AND a.closed >= ?2 ORDER BY a.id",
    )?
    .query_map(params![service, from], |row| {
        Ok(Candidate {
            aggregate: row.get(0)?,
            name: Name { service: row.get(1)?, prefix: row.get(2)? },
            hold: hold(row, 3)?,
            baseline: row.get(4)?,
        })
    })?
    .collect()
}

pub(super) fn begin(tx: &Transaction<'_>, new: &NewStudy) -> rusqlite::Result<Begun> {
    let mut ask =
        tx.prepare_cached("SELECT name, standing = 'running' FROM studies WHERE service = ?1")?;
    let there: Vec<(String, bool)> = ask
        .query_map([&new.service], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    if let Some((running, _)) = there.iter().find(|(_, running)| *running) {
        return Ok(Begun::Running(running.clone()));
    }
    if there.iter().any(|(name, _)| *name == new.name) {
        return Ok(Begun::NameTaken);
    }
    tx.execute(
        "INSERT INTO studies (service, name, kind, standing, revision, document, changed_ms)
         VALUES (?1, ?2, ?3, 'running', 1, ?4, ?5)",
        params![new.service, new.name, new.kind.name(), new.document, new.now_ms],
    )?;
    let study = tx.last_insert_rowid();
    let mut add = tx.prepare_cached(
        "INSERT INTO members (study, aggregate, place, baseline) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (aggregate, place, baseline) in &new.members {
        add.execute(params![study, aggregate, place, baseline])?;
    }
    let subject = Study::subject(&new.service, &new.name);
    let action = format!("{} begun", new.kind.name());
    write_audit(tx, new.now_ms, [&new.who, &action, &subject, &new.detail])?;
    Ok(Begun::Yes)
}

pub(super) fn step(
    tx: &Transaction<'_>,
    study: &Study,
    step: &StudyStep,
) -> rusqlite::Result<bool> {
    if step.standing == Standing::Kept {
        // What was rolled out before is so no longer.
        tx.execute(
            "UPDATE studies SET standing = 'past', revision = revision + 1
             WHERE service = ?1 AND standing = 'kept' AND id <> ?2",
            params![study.service, study.id],
        )?;
    }
    let changed = tx.execute(
        "UPDATE studies SET document = ?1, standing = ?2, revision = revision + 1, changed_ms = ?3
         WHERE id = ?4 AND revision = ?5",
        params![step.document, step.standing.name(), step.now_ms, study.id, study.revision],
    )?;
    if changed > 0 {
        let subject = Study::subject(&study.service, &study.name);
        write_audit(tx, step.now_ms, [&step.who, step.action, &subject, &step.detail])?;
    }
    Ok(changed > 0)
}

pub(super) fn members(db: &Connection, study: i64) -> rusqlite::Result<Vec<MemberRow>> {
    db.prepare_cached(
        "SELECT m.aggregate, a.service, a.prefix, m.place, m.baseline, m.left_ms
         FROM members m JOIN aggregates a ON a.id = m.aggregate WHERE m.study = ?1 ORDER BY m.aggregate",
    )?
    .query_map([study], |row| {
        Ok(MemberRow {
            aggregate: row.get(0)?,
            name: Name { service: row.get(1)?, prefix: row.get(2)? },
            place: row.get(3)?,
            baseline: row.get(4)?,
            left_ms: row.get(5)?,
        })
    })?
    .collect()
}

pub(super) fn cells(db: &Connection, study: i64) -> rusqlite::Result<Vec<CellRow>> {
    db.prepare_cached(
        "SELECT aggregate, block, arm, sums FROM cells WHERE study = ?1 ORDER BY aggregate, block",
    )?
    .query_map([study], |row| {
        let sums: String = row.get(3)?;
        Ok(CellRow {
            aggregate: row.get(0)?,
            block: row.get(1)?,
            arm: row.get(2)?,
            cell: serde_json::from_str(&sums).unwrap_or_default(),
        })
    })?
    .collect()
}

/// Forgets what those showed that are past for long; what came of it stays in their documents.
pub(super) fn forget(
    tx: &Transaction<'_>,
    before_ms: i64,
    limit: usize,
) -> rusqlite::Result<usize> {
    let mut forgotten = 0;
    for table in ["cells", "members"] {
        forgotten += tx.execute(
            &format!(
                "DELETE FROM {table} WHERE (study, aggregate) IN (SELECT t.study, t.aggregate FROM {table} t
                     JOIN studies s ON s.id = t.study WHERE s.standing = 'past' AND s.changed_ms < ?1 LIMIT ?2)"
            ),
            params![before_ms, limit as i64],
        )?;
    }
    Ok(forgotten)
}
