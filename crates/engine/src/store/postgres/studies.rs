//! Experiments and rollouts, on the server.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use postgres::Row as SqlRow;
use trimtab_fleet_client::Name;

use super::audit::write_audit;
use super::hold;
use super::link::{Failed, Link};
use crate::store::study::{
    Begun, Candidate, CellRow, InStudy, Measured, MemberRow, NewStudy, Standing, Study, StudyKind,
    StudyStep, added, unreadable,
};

/// The engine that begins a study holds this lock, so that two of a service do not begin at once. An arbitrary number.
const BEGIN_LOCK: i64 = 0x7472_696d_7461_6232;

fn study_row(row: &SqlRow) -> Result<Study, Failed> {
    Ok(Study {
        id: row.get(0),
        service: row.get(1),
        name: row.get(2),
        kind: StudyKind::from_name(row.get(3)).ok_or(Failed::Document)?,
        standing: Standing::from_name(row.get(4)).ok_or(Failed::Document)?,
        revision: row.get(5),
        document: row.get(6),
        changed_ms: row.get(7),
    })
}

/// Those of a service that decide what aggregates run, the running one first.
pub(super) fn active(link: &mut Link, service: &str) -> Result<Vec<Arc<Study>>, Failed> {
    let rows = link.query(
        "SELECT id, service, name, kind, standing, revision, document, changed_ms FROM studies
         WHERE service = $1 AND standing <> 'past' ORDER BY standing DESC",
        &[&service],
    )?;
    rows.iter().map(|row| study_row(row).map(Arc::new)).collect()
}

/// What those that are active are to aggregates.
pub(super) struct Places {
    active: Vec<Arc<Study>>,
    places: HashMap<(i64, i64), i64>,
}

impl Places {
    pub(super) fn read(link: &mut Link, service: &str, aggregates: &[i64]) -> Result<Self, Failed> {
        let active = active(link, service)?;
        let mut places = HashMap::new();
        if !active.is_empty() {
            let ids: Vec<i64> = active.iter().map(|study| study.id).collect();
            let rows = link.query(
                "SELECT study, aggregate, place FROM members
                 WHERE study = ANY($1) AND aggregate = ANY($2) AND left_ms IS NULL",
                &[&ids, &aggregates],
            )?;
            places.extend(rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))));
        }
        Ok(Self { active, places })
    }

    pub(super) fn of(&self, aggregate: i64) -> Vec<InStudy> {
        let one = |study: &Arc<Study>| InStudy {
            study: Arc::clone(study),
            place: self.places.get(&(study.id, aggregate)).copied(),
        };
        self.active.iter().map(one).collect()
    }
}

/// Adds what intervals of aggregates amount to.
pub(super) fn measure(link: &mut Link, all: &[(i64, Measured)]) -> Result<(), Failed> {
    if all.is_empty() {
        return Ok(());
    }
    let key =
        |(aggregate, measured): &(i64, Measured)| (measured.study, *aggregate, measured.block);
    let studies: Vec<i64> = all.iter().map(|one| key(one).0).collect();
    let aggregates: Vec<i64> = all.iter().map(|one| key(one).1).collect();
    let blocks: Vec<i64> = all.iter().map(|one| key(one).2).collect();
    let rows = link.query(
        "SELECT c.study, c.aggregate, c.block, c.arm, c.sums FROM cells c
         JOIN (SELECT DISTINCT s, a, b FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (s, a, b)) k
         ON c.study = k.s AND c.aggregate = k.a AND c.block = k.b",
        &[&studies, &aggregates, &blocks],
    )?;
    let mut cells: BTreeMap<(i64, i64, i64), (i32, String)> = rows
        .iter()
        .map(|row| ((row.get(0), row.get(1), row.get(2)), (row.get(3), row.get(4))))
        .collect();
    for one in all {
        let sums = cells.get(&key(one)).map(|(_, sums)| sums.as_str());
        let Some(sums) = added(sums, &one.1.observation) else {
            unreadable(one.1.study, one.0);
            continue;
        };
        cells.insert(key(one), (i32::from(one.1.arm), sums));
    }
    let (keys, values): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
    let studies: Vec<i64> = keys.iter().map(|k| k.0).collect();
    let aggregates: Vec<i64> = keys.iter().map(|k| k.1).collect();
    let blocks: Vec<i64> = keys.iter().map(|k| k.2).collect();
    let (arms, sums): (Vec<i32>, Vec<String>) = values.into_iter().unzip();
    link.execute(
        "INSERT INTO cells (study, aggregate, block, arm, sums)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::text[])
         ON CONFLICT (study, aggregate, block) DO UPDATE SET sums = excluded.sums",
        &[&studies, &aggregates, &blocks, &arms, &sums],
    )?;
    Ok(())
}

/// An operator's order takes an aggregate out of what is running.
pub(super) fn leave(
    link: &mut Link,
    (aggregate, of): (i64, &Name),
    who: &str,
    now_ms: i64,
) -> Result<(), Failed> {
    let left = link.query(
        "UPDATE members m SET left_ms = $3 FROM studies s WHERE s.id = m.study AND s.service = $1
             AND s.standing = 'running' AND m.aggregate = $2 AND m.left_ms IS NULL RETURNING s.name",
        &[&of.service, &aggregate, &now_ms],
    )?;
    for study in &left {
        let detail = format!("from now on it is no part of {}", study.get::<_, String>(0));
        write_audit(link, now_ms, [who, "leave", &of.to_string(), &detail])?;
    }
    Ok(())
}

pub(super) fn studies(
    link: &mut Link,
    service: Option<&str>,
    kind: StudyKind,
) -> Result<Vec<Study>, Failed> {
    let rows = link.query(
        "SELECT id, service, name, kind, standing, revision, document, changed_ms FROM studies
         WHERE kind = $1 AND ($2::text IS NULL OR service = $2) ORDER BY id DESC",
        &[&kind.name(), &service],
    )?;
    rows.iter().map(study_row).collect()
}

pub(super) fn candidates(
    link: &mut Link,
    service: &str,
    from: i64,
) -> Result<Vec<Candidate>, Failed> {
    let rows = link.query(
        "SELECT a.id, a.service, a.prefix, a.hold, d.mean FROM aggregates a LEFT JOIN (
             SELECT aggregate, avg(reward) AS mean FROM decisions WHERE interval >= $2 GROUP BY aggregate
         ) d ON d.aggregate = a.id WHERE a.service = $1 AND a.closed >= $2 ORDER BY a.id",
        &[&service, &from],
    )?;
    rows.iter()
        .map(|row| {
            Ok(Candidate {
                aggregate: row.get(0),
                name: Name { service: row.get(1), prefix: row.get(2) },
                hold: hold(row, 3)?,
                baseline: row.get(4),
            })
        })
        .collect()
}

pub(super) fn begin(link: &mut Link, new: &NewStudy) -> Result<Begun, Failed> {
    link.query("SELECT pg_advisory_xact_lock($1)", &[&BEGIN_LOCK])?;
    let there = link.query(
        "SELECT name, standing = 'running' FROM studies WHERE service = $1",
        &[&new.service],
    )?;
    if let Some(running) = there.iter().find(|row| row.get(1)) {
        return Ok(Begun::Running(running.get(0)));
    }
    if there.iter().any(|row| row.get::<_, &str>(0) == new.name) {
        return Ok(Begun::NameTaken);
    }
    let row = link.first(
        "INSERT INTO studies (service, name, kind, standing, revision, document, changed_ms)
         VALUES ($1, $2, $3, 'running', 1, $4, $5) RETURNING id",
        &[&new.service, &new.name, &new.kind.name(), &new.document, &new.now_ms],
    )?;
    let study: i64 = row.ok_or(Failed::Document)?.get(0);
    let aggregates: Vec<i64> = new.members.iter().map(|member| member.0).collect();
    let places: Vec<i64> = new.members.iter().map(|member| member.1).collect();
    let baselines: Vec<Option<f64>> = new.members.iter().map(|member| member.2).collect();
    link.execute(
        "INSERT INTO members (study, aggregate, place, baseline)
         SELECT $1, a, p, b FROM unnest($2::bigint[], $3::bigint[], $4::double precision[]) AS u (a, p, b)",
        &[&study, &aggregates, &places, &baselines],
    )?;
    let subject = Study::subject(&new.service, &new.name);
    let action = format!("{} begun", new.kind.name());
    write_audit(link, new.now_ms, [&new.who, &action, &subject, &new.detail])?;
    Ok(Begun::Yes)
}

pub(super) fn step(link: &mut Link, study: &Study, step: &StudyStep) -> Result<bool, Failed> {
    if step.standing == Standing::Kept {
        // What was rolled out before is so no longer.
        link.execute(
            "UPDATE studies SET standing = 'past', revision = revision + 1
             WHERE service = $1 AND standing = 'kept' AND id <> $2",
            &[&study.service, &study.id],
        )?;
    }
    let changed = link.execute(
        "UPDATE studies SET document = $1, standing = $2, revision = revision + 1, changed_ms = $3
         WHERE id = $4 AND revision = $5",
        &[&step.document, &step.standing.name(), &step.now_ms, &study.id, &study.revision],
    )?;
    if changed > 0 {
        let subject = Study::subject(&study.service, &study.name);
        write_audit(link, step.now_ms, [&step.who, step.action, &subject, &step.detail])?;
    }
    Ok(changed > 0)
}

pub(super) fn members(link: &mut Link, study: i64) -> Result<Vec<MemberRow>, Failed> {
    let rows = link.query(
        "SELECT m.aggregate, a.service, a.prefix, m.place, m.baseline, m.left_ms
         FROM members m JOIN aggregates a ON a.id = m.aggregate WHERE m.study = $1 ORDER BY m.aggregate",
        &[&study],
    )?;
    let one = |row: &SqlRow| MemberRow {
        aggregate: row.get(0),
        name: Name { service: row.get(1), prefix: row.get(2) },
        place: row.get(3),
        baseline: row.get(4),
        left_ms: row.get(5),
    };
    Ok(rows.iter().map(one).collect())
}

pub(super) fn cells(link: &mut Link, study: i64) -> Result<Vec<CellRow>, Failed> {
    let rows = link.query(
        "SELECT aggregate, block, arm, sums FROM cells WHERE study = $1 ORDER BY aggregate, block",
        &[&study],
    )?;
    rows.iter()
        .map(|row| {
            Ok(CellRow {
                aggregate: row.get(0),
                block: row.get(1),
                arm: row.get::<_, i32>(2) as u8,
                cell: serde_json::from_str(row.get(3)).unwrap_or_default(),
            })
        })
        .collect()
}

/// Forgets what those showed that are past for long; what came of it stays in their documents.
pub(super) fn forget(link: &mut Link, before_ms: i64, limit: usize) -> Result<usize, Failed> {
    let cells = link.execute(
        "DELETE FROM cells WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM cells t JOIN studies s ON s.id = t.study
             WHERE s.standing = 'past' AND s.changed_ms < $1 LIMIT $2 FOR UPDATE OF t SKIP LOCKED))",
        &[&before_ms, &(limit as i64)],
    )?;
    let members = link.execute(
        "DELETE FROM members WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM members t JOIN studies s ON s.id = t.study
             WHERE s.standing = 'past' AND s.changed_ms < $1 LIMIT $2 FOR UPDATE OF t SKIP LOCKED))",
        &[&before_ms, &(limit as i64)],
    )?;
    Ok((cells + members) as usize)
}
