//! Batches of reports into PostgreSQL, each once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use trimtab_fleet_client::Name;

use super::link::{Failed, Link};
use super::{Known, lock_key, part_of};
use crate::store::{Batch, Outcome, Report};

/// Names with their numbers.
pub(super) type Numbers = Vec<(Name, i64)>;

/// What each edge sent last, as it will be when this is committed.
struct Last {
    sequence: i64,
    digest: Vec<u8>,
    seen_ms: i64,
    /// Kept now.
    reports: i64,
    /// Of the last batch.
    late: i64,
}

/// Keeps batches in the order given; to be called in a transaction. Also says which aggregates are new.
pub(super) fn accept(
    link: &mut Link,
    known: &Known,
    batches: &[Batch],
) -> Result<(Vec<Outcome>, Numbers), Failed> {
    let mut edges = lock_edges(link, batches)?;
    let mut verdicts: Vec<Option<Outcome>> = Vec::with_capacity(batches.len());
    for batch in batches {
        let last = edges.get_mut(&batch.token).expect("it was just made");
        let seen_before = if last.sequence == batch.sequence && last.digest == batch.digest {
            Some(Outcome::Again { late: last.late as u32 })
        } else if last.sequence >= batch.sequence {
            Some(Outcome::Replayed { last: last.sequence })
        } else {
            last.sequence = batch.sequence;
            last.digest = batch.digest.to_vec();
            last.seen_ms = batch.received_ms;
            None
        };
        verdicts.push(seen_before);
    }
    let fresh: Vec<&Batch> =
        batches.iter().zip(&verdicts).filter(|(_, v)| v.is_none()).map(|(b, _)| b).collect();
    if fresh.is_empty() {
        return Ok((verdicts.into_iter().flatten().collect(), Vec::new()));
    }
    let (ids, new) = find_aggregates(link, known, &fresh)?;
    let closed = lock_parts(link, &ids)?;
    let mut columns = Columns::default();
    let late = |report: &Report| {
        closed.get(&ids[&report.name]).is_some_and(|closed| report.interval <= *closed)
    };
    for batch in &fresh {
        batch.reports.iter().filter(|r| !late(r)).for_each(|report| {
            columns.add(ids[&report.name], batch.token, report);
        });
    }
    let mut added = columns.insert(link)?;
    for (batch, verdict) in batches.iter().zip(&mut verdicts).filter(|(_, v)| v.is_none()) {
        let on_time = batch.reports.iter().filter(|r| !late(r));
        let on_time_len = on_time.clone().count();
        // Where two batches have the same report, the first one gets the answer that it is kept.
        let kept = on_time
            .filter(|r| added.remove(&(ids[&r.name], r.interval, batch.token, r.version)))
            .count();
        let last = edges.get_mut(&batch.token).expect("it was just made");
        last.reports += kept as i64;
        last.late = (batch.reports.len() - on_time_len) as i64;
        *verdict = Some(Outcome::Accepted {
            late: (batch.reports.len() - on_time_len) as u32,
            repeated: (on_time_len - kept) as u32,
        });
    }
    write_edges(link, &edges)?;
    Ok((verdicts.into_iter().flatten().collect(), new))
}

/// The edges of these batches, locked in the order of their numbers, so that no two engines count for one at a time.
fn lock_edges(link: &mut Link, batches: &[Batch]) -> Result<BTreeMap<i64, Last>, Failed> {
    let tokens: Vec<i64> =
        batches.iter().map(|batch| batch.token).collect::<BTreeSet<_>>().into_iter().collect();
    let lock = "SELECT token, sequence, digest, seen_ms, late FROM edges WHERE token = ANY($1) ORDER BY token FOR UPDATE";
    let mut rows = link.query(lock, &[&tokens])?;
    if rows.len() < tokens.len() {
        // A row that is not there cannot be locked, and two engines may meet the first batch of an edge.
        link.execute(
            "INSERT INTO edges SELECT t, -1, '', 0, 0, 0 FROM unnest($1::bigint[]) t ORDER BY t ON CONFLICT DO NOTHING",
            &[&tokens],
        )?;
        rows = link.query(lock, &[&tokens])?;
    }
    let last = |row: &postgres::Row| Last {
        sequence: row.get(1),
        digest: row.get(2),
        seen_ms: row.get(3),
        reports: 0,
        late: row.get(4),
    };
    Ok(rows.iter().map(|row| (row.get(0), last(row))).collect())
}

fn write_edges(link: &mut Link, edges: &BTreeMap<i64, Last>) -> Result<(), Failed> {
    let tokens: Vec<i64> = edges.keys().copied().collect();
    let sequences: Vec<i64> = edges.values().map(|last| last.sequence).collect();
    let digests: Vec<&[u8]> = edges.values().map(|last| last.digest.as_slice()).collect();
    let seen: Vec<i64> = edges.values().map(|last| last.seen_ms).collect();
    let reports: Vec<i64> = edges.values().map(|last| last.reports).collect();
    let late: Vec<i64> = edges.values().map(|last| last.late).collect();
    link.execute(
        "UPDATE edges SET sequence = u.sequence, digest = u.digest, seen_ms = u.seen, reports = edges.reports + u.kept,
             late = u.late
         FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[])
             AS u (token, sequence, digest, seen, kept, late) WHERE edges.token = u.token",
        &[&tokens, &sequences, &digests, &seen, &reports, &late],
    )?;
    Ok(())
}

/// The numbers of the aggregates of these batches, which are made where there are none; and those that were not known.
fn find_aggregates(
    link: &mut Link,
    known: &Known,
    batches: &[&Batch],
) -> Result<(HashMap<Name, i64>, Numbers), Failed> {
    let mut ids = HashMap::new();
    // In the order of names, so that two engines that make the same ones do not wait for each other in a circle.
    let mut missing: BTreeMap<&Name, i64> = BTreeMap::new();
    for batch in batches {
        for report in &batch.reports {
            match known.get(&report.name) {
                Some(id) => {
                    ids.insert(report.name.clone(), id);
                }
                None => {
                    missing.entry(&report.name).or_insert(batch.received_ms);
                }
            }
        }
    }
    if missing.is_empty() {
        return Ok((ids, Vec::new()));
    }
    let services: Vec<&str> = missing.keys().map(|name| name.service.as_str()).collect();
    let prefixes: Vec<&str> = missing.keys().map(|name| name.prefix.as_str()).collect();
    let parts: Vec<i32> = missing.keys().map(|name| part_of(name)).collect();
    let times: Vec<i64> = missing.values().copied().collect();
    link.execute(
        "INSERT INTO aggregates (service, prefix, part, hold, version, configuration, decisions, changed_ms)
         SELECT s, p, part, 'learning', 0, '', 0, at
         FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[]) WITH ORDINALITY AS u (s, p, part, at, n) ORDER BY n
         ON CONFLICT (service, prefix) DO NOTHING",
        &[&services, &prefixes, &parts, &times],
    )?;
    let rows = link.query(
        "SELECT a.id, a.service, a.prefix FROM aggregates a
         JOIN unnest($1::text[], $2::text[]) AS u (s, p) ON a.service = u.s AND a.prefix = u.p",
        &[&services, &prefixes],
    )?;
    let new: Numbers = rows
        .iter()
        .map(|row| (Name { service: row.get(1), prefix: row.get(2) }, row.get(0)))
        .collect();
    ids.extend(new.iter().cloned());
    Ok((ids, new))
}

/// Keeps intervals of these aggregates from being closed until the transaction ends, and says which were closed last.
fn lock_parts(link: &mut Link, ids: &HashMap<Name, i64>) -> Result<HashMap<i64, i64>, Failed> {
    let keys: BTreeSet<i64> =
        ids.keys().map(|name| lock_key(&name.service, part_of(name))).collect();
    let keys: Vec<i64> = keys.into_iter().collect();
    link.query("SELECT pg_advisory_xact_lock_shared(k) FROM unnest($1::bigint[]) AS k", &[&keys])?;
    let numbers: Vec<i64> = ids.values().copied().collect();
    let rows = link.query(
        "SELECT id, closed FROM aggregates WHERE id = ANY($1) AND closed IS NOT NULL",
        &[&numbers],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Reports, as the server wants many at once.
#[derive(Default)]
struct Columns<'a> {
    aggregates: Vec<i64>,
    services: Vec<&'a str>,
    parts: Vec<i32>,
    intervals: Vec<i64>,
    edges: Vec<i64>,
    versions: Vec<i64>,
    bytes: Vec<&'a [u8]>,
}

/// Which report it is: aggregate, interval, edge and version.
type Identity = (i64, i64, i64, i64);

impl<'a> Columns<'a> {
    fn add(&mut self, id: i64, edge: i64, report: &'a Report) {
        self.aggregates.push(id);
        self.services.push(&report.name.service);
        self.parts.push(part_of(&report.name));
        self.intervals.push(report.interval);
        self.edges.push(edge);
        self.versions.push(report.version);
        self.bytes.push(&report.bytes);
    }

    /// Keeps those that were not kept before, and says which.
    fn insert(&self, link: &mut Link) -> Result<HashSet<Identity>, Failed> {
        if self.aggregates.is_empty() {
            return Ok(HashSet::new());
        }
        let rows = link.query(
            "INSERT INTO reports (aggregate, service, part, interval, edge, version, bytes)
             SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[])
             ON CONFLICT DO NOTHING RETURNING aggregate, interval, edge, version",
            &[
                &self.aggregates,
                &self.services,
                &self.parts,
                &self.intervals,
                &self.edges,
                &self.versions,
                &self.bytes,
            ],
        )?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect())
    }
}
