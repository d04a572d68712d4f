//! Closing intervals by several engines: each takes what no other has.
//!
//! Aggregates are in parts by a hash of their name. An engine that closes holds the lock of one
//! part, and PostgreSQL gives it to one at a time; one that adds reports shares it. An engine that
//! dies gives back what it holds, and has done nothing.

use std::collections::{BTreeMap, BTreeSet};
use trimtab_fleet_client::Name;

use super::audit::write_audit;
use super::link::{Failed, Link};
use super::shapes::ServerShapes;
use super::studies::{Places, leave, measure};
use super::{PARTS, aggregate_row, lock_key};
use crate::store::{Aside, Closed, Decide, Due, Line, Open, Row, StoreError, found_key, waves};

/// The oldest interval that is due, and a part of it: from `from` on, then from the first one.
pub(super) fn next_due(
    link: &mut Link,
    due: &Due<'_>,
    left_out: &[i64],
    from: i32,
) -> Result<Option<(i64, i32)>, Failed> {
    let oldest = link.first(
        "SELECT interval FROM reports WHERE service = $1 AND interval <= $2 AND aggregate <> ALL($3)
         ORDER BY service, interval LIMIT 1",
        &[&due.service, &due.through, &left_out],
    )?;
    let Some(oldest) = oldest else { return Ok(None) };
    let interval: i64 = oldest.get(0);
    for least in [from.rem_euclid(PARTS), 0] {
        let part = link.first(
            "SELECT part FROM reports WHERE service = $1 AND interval = $2 AND part >= $3 AND aggregate <> ALL($4)
             ORDER BY service, interval, part LIMIT 1",
            &[&due.service, &interval, &least, &left_out],
        )?;
        if let Some(part) = part {
            return Ok(Some((interval, part.get(0))));
        }
    }
    // Somebody closed it meanwhile.
    Ok(Some((interval, from.rem_euclid(PARTS))))
}

/// What to close at once.
pub(super) struct Unit<'a> {
    pub(super) interval: i64,
    pub(super) part: i32,
    /// At most so many aggregates.
    pub(super) limit: usize,
    pub(super) left_out: &'a [i64],
    /// Where to put what is damaged.
    pub(super) aside: &'a Aside,
}

/// What closing a part did.
#[derive(Default)]
pub(super) struct Done {
    pub(super) closed: usize,
    pub(super) changed: Vec<Name>,
}

/// A report: its number, its bytes, and its edge.
type Waiting = (i64, Vec<u8>, Option<i64>);

/// Reports of a part that are due, by interval and aggregate.
fn waiting(
    link: &mut Link,
    service: &str,
    unit: &Unit<'_>,
) -> Result<BTreeMap<(i64, i64), Vec<Waiting>>, Failed> {
    let rows = link.query(
        "SELECT id, aggregate, interval, bytes, edge FROM reports
         WHERE service = $1 AND part = $2 AND interval <= $3 AND aggregate IN (
             SELECT DISTINCT aggregate FROM reports WHERE service = $1 AND interval = $3 AND part = $2
                 AND aggregate <> ALL($5)
             ORDER BY aggregate LIMIT $4)
         ORDER BY interval, aggregate, id",
        &[&service, &unit.part, &unit.interval, &(unit.limit as i64), &unit.left_out],
    )?;
    let mut open: BTreeMap<(i64, i64), Vec<Waiting>> = BTreeMap::new();
    for row in &rows {
        let report = (row.get(0), row.get(3), row.get(4));
        open.entry((row.get(2), row.get(1))).or_default().push(report);
    }
    Ok(open)
}

/// Closes what is due of a part up to an interval; to be called in a transaction. `cover` makes sure
/// that there is room for decisions about an interval.
pub(super) fn close_part(
    link: &mut Link,
    (shapes, cover): (ServerShapes<'_>, &dyn Fn(i64) -> Result<(), StoreError>),
    due: &Due<'_>,
    unit: &Unit<'_>,
    decide: &mut dyn Decide,
) -> Result<Done, Failed> {
    link.query("SELECT pg_advisory_xact_lock($1)", &[&lock_key(due.service, unit.part)])?;
    let open = waiting(link, due.service, unit)?;
    if open.is_empty() {
        return Ok(Done::default());
    }
    // Partitions are made in a transaction of their own, before this one writes into them.
    open.keys().try_for_each(|(interval, _)| cover(*interval))?;
    let key = found_key(due.service);
    let kept = link.first("SELECT value FROM meta WHERE key = $1", &[&key])?;
    decide.heed(kept.as_ref().map(|row| row.get(0)));
    let mut aggregates = load(link, shapes, open.keys().map(|key| key.1).collect())?;
    let ids: Vec<i64> = aggregates.keys().copied().collect();
    let places = Places::read(link, due.service, &ids)?;
    let (mut measured, mut leaving, mut used) = (Vec::new(), Vec::new(), Vec::new());
    let mut fell_back = Vec::new();
    let mut done = Done::default();
    let mut decisions = Decisions::default();
    let mut damaged = BTreeSet::new();
    let open: Vec<((i64, i64), Vec<Waiting>)> = open.into_iter().collect();
    for wave in waves(&open, |((_, id), _)| *id) {
        let (mut waited, mut all) = (Vec::new(), Vec::new());
        for ((interval, id), reports) in wave {
            if damaged.contains(id) {
                continue;
            }
            let row = match aggregates.get(id) {
                Some(Ok(row)) => row,
                Some(Err((name, reason))) => {
                    unit.aside.add(*id, name, reason, due.now_ms);
                    continue;
                }
                None => {
                    let prefix = format!("number {id}");
                    let name = Name { service: due.service.to_owned(), prefix };
                    unit.aside.add(*id, &name, "it has reports and no row", due.now_ms);
                    continue;
                }
            };
            all.push(Open {
                name: row.name.clone(),
                interval: *interval,
                hold: row.hold,
                version: row.version,
                configuration: row.configuration.clone(),
                state: row.state.clone(),
                reports: reports.iter().map(|report| report.1.clone()).collect(),
                edges: reports.iter().map(|report| report.2).collect(),
                studies: places.of(*id),
            });
            waited.push((*id, reports));
        }
        let decided = decide.on(&all);
        for ((open, (id, reports)), decided) in all.into_iter().zip(waited).zip(decided) {
            let mut closed = match decided {
                Ok(closed) => closed,
                Err(reason) => {
                    unit.aside.add(id, &open.name, &reason, due.now_ms);
                    damaged.insert(id);
                    continue;
                }
            };
            let Some(Ok(row)) = aggregates.get_mut(&id) else { continue };
            unit.aside.mended(id);
            used.extend(reports.iter().map(|report| report.0));
            leaving.extend(closed.leaves.take().map(|why| (id, open.name.clone(), why)));
            fell_back.extend(closed.alarm().map(|alarm| (open.name.clone(), alarm)));
            measured.extend(closed.measured.take().map(|measured| (id, measured)));
            let packed = shapes.pack(&[&open.configuration, &closed.detail])?;
            decisions.add(row, &open, &closed, packed);
            if closed.configuration.is_some() {
                done.changed.push(open.name);
            }
            done.closed += 1;
            update(row, open.interval, closed, due.now_ms);
        }
    }
    let mut columns = Columns::default();
    for row in aggregates.into_values().filter_map(Result::ok) {
        let state = row.state.as_ref().map(|state| shapes.pack(&[state])).transpose()?;
        columns.add(row, state);
    }
    link.execute("DELETE FROM reports WHERE id = ANY($1)", &[&used])?;
    decisions.insert(link, due.now_ms)?;
    measure(link, &measured)?;
    for (id, name, why) in &leaving {
        leave(link, (*id, name), why, due.now_ms)?;
    }
    columns.update(link)?;
    // These are last, since other engines wait for what was found and for the end of the audit until
    // this is over.
    if decide.has_found() {
        // A row that is not there cannot be locked.
        link.execute("INSERT INTO meta VALUES ($1, '') ON CONFLICT DO NOTHING", &[&key])?;
        let row = link.first("SELECT value FROM meta WHERE key = $1 FOR UPDATE", &[&key])?;
        let kept: Option<&str> = row.as_ref().map(|row| row.get(0));
        if let Some(text) = decide.found(kept.filter(|kept| !kept.is_empty())) {
            link.execute("UPDATE meta SET value = $2 WHERE key = $1", &[&key, &text])?;
        }
    }
    if let Some(line) = Line::fell_back(due.service, &fell_back, due.now_ms) {
        write_audit(link, line.at_ms, line.texts())?;
    }
    Ok(done)
}

/// An aggregate, or its name and why it cannot be read.
type Loaded = Result<Row, (Name, String)>;

/// Aggregates, which no operator changes until the transaction ends.
fn load(
    link: &mut Link,
    shapes: ServerShapes<'_>,
    mut ids: Vec<i64>,
) -> Result<BTreeMap<i64, Loaded>, Failed> {
    ids.sort_unstable();
    ids.dedup();
    let rows = link.query(
        "SELECT id, service, prefix, hold, version, configuration, closed, reward, decisions, changed_ms, state
         FROM aggregates WHERE id = ANY($1) ORDER BY id FOR UPDATE",
        &[&ids],
    )?;
    let mut all = BTreeMap::new();
    for row in &rows {
        let loaded = shapes
            .unpack_state(row.get(10))
            .and_then(|state| Ok(Row { state, ..aggregate_row(row)? }));
        let loaded = match loaded {
            Ok(row) => Ok(row),
            Err(Failed::Document) => {
                let name = Name { service: row.get(1), prefix: row.get(2) };
                Err((name, "what is kept of it is nothing that the engine writes".to_owned()))
            }
            Err(e) => return Err(e),
        };
        all.insert(row.get(0), loaded);
    }
    Ok(all)
}

fn update(row: &mut Row, interval: i64, closed: Closed, now_ms: i64) {
    row.state = closed.state.or(row.state.take());
    row.closed = Some(interval);
    row.reward = closed.reward;
    row.decisions += 1;
    if let Some((version, configuration)) = closed.configuration {
        row.version = version;
        row.configuration = configuration;
        row.changed_ms = now_ms;
    }
}

/// Decisions, as the server wants many at once.
#[derive(Default)]
struct Decisions {
    intervals: Vec<i64>,
    aggregates: Vec<i64>,
    previous: Vec<Option<i64>>,
    holds: Vec<&'static str>,
    versions: Vec<i64>,
    reports: Vec<i64>,
    rewards: Vec<Option<f64>>,
    packed: Vec<Vec<u8>>,
}

impl Decisions {
    fn add(&mut self, row: &Row, open: &Open, closed: &Closed, packed: Vec<u8>) {
        self.intervals.push(open.interval);
        self.aggregates.push(row.id);
        self.previous.push(row.closed);
        self.holds.push(open.hold.name());
        self.versions.push(open.version);
        self.reports.push(open.reports.len() as i64);
        self.rewards.push(closed.reward);
        self.packed.push(packed);
    }

    fn insert(&self, link: &mut Link, now_ms: i64) -> Result<(), Failed> {
        link.execute(
            "INSERT INTO decisions (interval, aggregate, previous, at_ms, hold, version, reports, reward, packed)
             SELECT i, a, p, $9, h, v, n, r, b FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[],
                 $5::bigint[], $6::bigint[], $7::double precision[], $8::bytea[]) AS u (i, a, p, h, v, n, r, b)",
            &[
                &self.intervals,
                &self.aggregates,
                &self.previous,
                &self.holds,
                &self.versions,
                &self.reports,
                &self.rewards,
                &self.packed,
                &now_ms,
            ],
        )?;
        Ok(())
    }
}

/// Aggregates, the same way.
#[derive(Default)]
struct Columns {
    ids: Vec<i64>,
    versions: Vec<i64>,
    configurations: Vec<String>,
    states: Vec<Option<Vec<u8>>>,
    closed: Vec<Option<i64>>,
    rewards: Vec<Option<f64>>,
    decisions: Vec<i64>,
    changed: Vec<i64>,
}

impl Columns {
    fn add(&mut self, row: Row, state: Option<Vec<u8>>) {
        self.ids.push(row.id);
        self.versions.push(row.version);
        self.configurations.push(row.configuration);
        self.states.push(state);
        self.closed.push(row.closed);
        self.rewards.push(row.reward);
        self.decisions.push(row.decisions);
        self.changed.push(row.changed_ms);
    }

    fn update(&self, link: &mut Link) -> Result<(), Failed> {
        link.execute(
            "UPDATE aggregates SET version = u.v, configuration = u.c, state = u.s, closed = u.i, reward = u.r,
                 decisions = u.n, changed_ms = u.at
             FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[], $5::bigint[], $6::double precision[],
                 $7::bigint[], $8::bigint[]) AS u (id, v, c, s, i, r, n, at) WHERE aggregates.id = u.id",
            &[
                &self.ids,
                &self.versions,
                &self.configurations,
                &self.states,
                &self.closed,
                &self.rewards,
                &self.decisions,
                &self.changed,
            ],
        )?;
        Ok(())
    }
}
