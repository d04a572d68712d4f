//! What is asked of the tables, and what operators write.

use postgres::Row as SqlRow;
use trimtab_fleet_client::{Counts, Hold, Name};

use super::audit::write_audit;
use super::link::{Failed, Link};
use super::shapes::ServerShapes;
use super::{aggregate_row, hold};
use crate::store::{ChangeSafe, Decided, InForce, Listed, Row, Search, Unreadable};

pub(super) fn unknown(link: &mut Link, names: &[Name]) -> Result<Vec<Name>, Failed> {
    let services: Vec<&str> = names.iter().map(|name| name.service.as_str()).collect();
    let prefixes: Vec<&str> = names.iter().map(|name| name.prefix.as_str()).collect();
    let rows = link.query(
        "SELECT u.s, u.p FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (s, p, n)
         LEFT JOIN aggregates a ON a.service = u.s AND a.prefix = u.p WHERE a.id IS NULL ORDER BY u.n",
        &[&services, &prefixes],
    )?;
    Ok(rows.iter().map(|row| Name { service: row.get(0), prefix: row.get(1) }).collect())
}

pub(super) fn in_force(link: &mut Link, names: &[Name]) -> Result<Vec<InForce>, Failed> {
    let services: Vec<&str> = names.iter().map(|name| name.service.as_str()).collect();
    let prefixes: Vec<&str> = names.iter().map(|name| name.prefix.as_str()).collect();
    let rows = link.query(
        "SELECT a.service, a.prefix, a.version, a.configuration
         FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (s, p, n)
         JOIN aggregates a ON a.service = u.s AND a.prefix = u.p WHERE a.version > 0 ORDER BY u.n",
        &[&services, &prefixes],
    )?;
    let one = |row: &SqlRow| InForce {
        name: Name { service: row.get(0), prefix: row.get(1) },
        version: row.get(2),
        configuration: row.get(3),
    };
    Ok(rows.iter().map(one).collect())
}

pub(super) fn aggregates(link: &mut Link, search: &Search) -> Result<Vec<Listed>, Failed> {
    let mut after =
        search.after.clone().unwrap_or(Name { service: String::new(), prefix: String::new() });
    let held = search.hold.map(Hold::name);
    let mut all: Vec<Listed> = Vec::new();
    loop {
        let left = search.limit - all.iter().flatten().count();
        let rows = link.query(
            "SELECT id, service, prefix, hold, version, configuration, closed, reward, decisions, changed_ms
             FROM aggregates WHERE (service, prefix) > ($1, $2) AND ($3::text IS NULL OR service = $3)
                 AND ($4::text IS NULL OR hold = $4)
                 AND ($5::text = '' OR strpos(service || ' ' || prefix, $5) > 0)
             ORDER BY service, prefix LIMIT $6",
            &[&after.service, &after.prefix, &search.service, &held, &search.text, &(left as i64)],
        )?;
        for row in &rows {
            after = name(row);
            all.push(match aggregate_row(row) {
                Ok(row) => Ok(row),
                // The server keeps names as texts only.
                Err(Failed::Document) => {
                    Err(Unreadable { id: row.get(0), name: name(row), is_named: true })
                }
                Err(e) => return Err(e),
            });
        }
        // With fewer than it could be there are no more; otherwise those that cannot be read have
        // taken the places of others.
        if rows.len() < left || all.iter().flatten().count() == search.limit {
            return Ok(all);
        }
    }
}

fn name(row: &SqlRow) -> Name {
    Name { service: row.get(1), prefix: row.get(2) }
}

pub(super) fn number(link: &mut Link, name: &Name) -> Result<Option<i64>, Failed> {
    let row = link.first(
        "SELECT id FROM aggregates WHERE service = $1 AND prefix = $2",
        &[&name.service, &name.prefix],
    )?;
    Ok(row.map(|row| row.get(0)))
}

pub(super) fn aggregate(link: &mut Link, name: &Name) -> Result<Option<Row>, Failed> {
    let row = link.first(
        "SELECT id, service, prefix, hold, version, configuration, closed, reward, decisions, changed_ms
         FROM aggregates WHERE service = $1 AND prefix = $2",
        &[&name.service, &name.prefix],
    )?;
    row.as_ref().map(aggregate_row).transpose()
}

pub(super) fn learnt(
    link: &mut Link,
    shapes: ServerShapes<'_>,
    aggregate: i64,
) -> Result<Option<String>, Failed> {
    let row = link.first("SELECT state FROM aggregates WHERE id = $1", &[&aggregate])?;
    row.map_or(Ok(None), |row| shapes.unpack_state(row.get(0)))
}

pub(super) fn decisions(
    link: &mut Link,
    shapes: ServerShapes<'_>,
    aggregate: i64,
    before: i64,
    limit: usize,
) -> Result<Vec<Decided>, Failed> {
    // From each to the one before it. Where that is not there, it was forgotten.
    let rows = link.query(
        "WITH RECURSIVE chain AS (
             SELECT d.* FROM aggregates a JOIN decisions d ON d.aggregate = a.id AND d.interval = a.closed WHERE a.id = $1
             UNION ALL
             SELECT d.* FROM chain c JOIN decisions d ON d.aggregate = $1 AND d.interval = c.previous)
         SELECT interval, at_ms, hold, version, reports, reward, packed FROM chain WHERE interval < $2 LIMIT $3",
        &[&aggregate, &before, &(limit as i64)],
    )?;
    rows.iter()
        .map(|row| {
            let [configuration, detail] = shapes.unpack(row.get(6))?;
            Ok(Decided {
                interval: row.get(0),
                at_ms: row.get(1),
                hold: hold(row, 2)?,
                version: row.get(3),
                configuration,
                reports: row.get(4),
                reward: row.get(5),
                detail,
            })
        })
        .collect()
}

pub(super) fn safe_orders(link: &mut Link) -> Result<String, Failed> {
    let row = link.first("SELECT value FROM meta WHERE key = 'safe'", &[])?;
    Ok(row.map_or_else(String::new, |row| row.get(0)))
}

pub(super) fn change_safe_orders(
    link: &mut Link,
    change: &mut ChangeSafe<'_>,
) -> Result<Result<(), String>, Failed> {
    // A row that is not there cannot be locked.
    link.execute("INSERT INTO meta VALUES ('safe', '') ON CONFLICT DO NOTHING", &[])?;
    let row = link.first("SELECT value FROM meta WHERE key = 'safe' FOR UPDATE", &[])?;
    let (text, line) = match change(row.ok_or(Failed::Document)?.get(0)) {
        Ok(changed) => changed,
        Err(why) => return Ok(Err(why)),
    };
    link.execute("UPDATE meta SET value = $1 WHERE key = 'safe'", &[&text])?;
    write_audit(link, line.at_ms, line.texts())?;
    Ok(Ok(()))
}

/// An edge that has only a row to be locked by was never seen.
pub(super) fn edges_seen(link: &mut Link) -> Result<Vec<(i64, i64)>, Failed> {
    let rows = link.query("SELECT token, seen_ms FROM edges WHERE sequence >= 0", &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

pub(super) fn counts(link: &mut Link) -> Result<Counts, Failed> {
    let row = link.first(
        "SELECT count(*), count(*) FILTER (WHERE hold = 'paused'), count(*) FILTER (WHERE hold = 'pinned'),
             (SELECT count(*) FROM edges WHERE sequence >= 0), (SELECT count(*) FROM reports),
             coalesce(sum(decisions), 0)::bigint
         FROM aggregates",
        &[],
    )?;
    let row = row.ok_or(Failed::Document)?;
    Ok(Counts {
        aggregates: row.get(0),
        paused: row.get(1),
        pinned: row.get(2),
        edges: row.get(3),
        waiting_reports: row.get(4),
        decisions: row.get(5),
    })
}

pub(super) fn forget(link: &mut Link, before_ms: i64, limit: usize) -> Result<usize, Failed> {
    let reports = link.execute(
        "DELETE FROM reports WHERE id = ANY (ARRAY(
             SELECT id FROM reports WHERE interval < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))",
        &[&before_ms, &(limit as i64)],
    )?;
    Ok(reports as usize + super::studies::forget(link, before_ms, limit)?)
}
