//! The store on a server: PostgreSQL, for several engines at a time.
//!
//! Every engine writes to the same tables, and none is special. What keeps them apart is the server: rows of edges are
//! locked while their batches are counted (`accept.rs`), parts of the aggregates while intervals are closed
//! (`close.rs`). Every commit is on the server's disk when it returns (`synchronous_commit`).

mod accept;
mod audit;
mod close;
mod link;
mod notices;
mod orders;
mod partitions;
mod read;
mod shapes;
mod studies;
mod tls;
mod tokens;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::postgres::Row as SqlRow;
use trimtab_fleet_client::{Audit, Counts, Damaged, Hold, Name};

use crate::config::PostgresSettings;
use crate::logging::log;
use crate::metrics::Latency;

use self::link::Links;
pub(super) use self::link::{Failed, Link};
pub(crate) use self::notices::Notices;
use self::partitions::Partitions;
pub(super) use self::partitions::{DAY_MS, make as make_partition};
use self::shapes::ServerShapes;
use super::pack::Seen;
use super::{
    Aside, AuditCheck, AuditMark, Batch, Begun, Candidate, CellRow, Chained, ChangeSafe, Decide,
    Decided, Due, FROM_3, InForce, KeptToken, Lengths, Line, Listed, MemberRow, NewStudy, Order,
    Outcome, Rotation, Row, SCHEMA_VERSION, Search, Store, StoreError, Study, StudyKind, StudyStep,
    Turn, Use, since,
};

const SCHEMA: &str = include_str!("../schema.pg.sql");
/// Parts of the aggregates of a service: what is locked at a time. Many, so that engines seldom
/// want the same; a batch locks as many as it touches.
const PARTS: i32 = 64;
/// The engine that makes the tables holds this lock, so that two engines that start together do not
/// both. An arbitrary number.
const SCHEMA_LOCK: i64 = 0x7472_696d_7461_6231;
/// How often and after how long it is looked again whether other engines are gone.
const IN_USE_TRIES: u32 = 10;
const IN_USE_AGAIN: Duration = Duration::from_millis(500);
/// Names whose numbers are remembered; beyond, they are asked for again.
const KNOWN_MAX: usize = 1 << 20;

/// FNV-1a: the same in every engine, on every machine.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Which part an aggregate is in.
pub(super) fn part_of(name: &Name) -> i32 {
    let hash = hash(name.service.bytes().chain([0]).chain(name.prefix.bytes()));
    ((hash ^ (hash >> 32)) % PARTS as u64) as i32
}

/// The lock of a part of a service's aggregates.
fn lock_key(service: &str, part: i32) -> i64 {
    (hash(service.bytes()).rotate_left(6) & !0x3f) as i64 | i64::from(part)
}

/// The numbers of aggregates, which never change.
#[derive(Default)]
struct Known(Mutex<HashMap<Name, i64>>);

impl Known {
    fn get(&self, name: &Name) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
    }

    fn add(&self, new: Vec<(Name, i64)>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() + new.len() > KNOWN_MAX {
            known.clear();
        }
        known.extend(new);
    }
}

/// A store on a server.
pub(crate) struct Postgres {
    links: Links,
    known: Known,
    seen: Mutex<Seen>,
    aside: Aside,
    /// Which part to begin with; each engine goes round by itself.
    turn: AtomicI32,
    partitions: Partitions,
}

impl Postgres {
    /// Connects, and makes the tables where there are none. The lengths are for tables of a version
    /// that counts intervals.
    pub(crate) fn open(settings: &PostgresSettings, lengths: &Lengths) -> Result<Self, StoreError> {
        Self::open_with(settings, Some(lengths))
    }

    /// The same where an engine may run on it: tables of an older version are refused.
    pub(crate) fn open_next_to_engine(settings: &PostgresSettings) -> Result<Self, StoreError> {
        Self::open_with(settings, None)
    }

    fn open_with(
        settings: &PostgresSettings,
        lengths: Option<&Lengths>,
    ) -> Result<Self, StoreError> {
        let store = Self {
            links: Links::new(settings)?,
            known: Known::default(),
            seen: Mutex::default(),
            aside: Aside::default(),
            turn: AtomicI32::new((std::process::id() % PARTS as u32) as i32),
            partitions: Partitions::default(),
        };
        let mut tries = IN_USE_TRIES;
        loop {
            match store.bring_up_to_date(lengths) {
                // Those that end take a moment to be gone.
                Err(StoreError::InUse { .. }) if tries > 1 => {
                    tries -= 1;
                    std::thread::sleep(IN_USE_AGAIN);
                }
                done => return done.map(|()| store),
            }
        }
    }

    /// Makes the tables, or brings them up to date where lengths of intervals are given.
    fn bring_up_to_date(&self, lengths: Option<&Lengths>) -> Result<(), StoreError> {
        let place = self.place().to_owned();
        let known = SCHEMA_VERSION;
        let found = self.links.write(|link| {
            link.query("SELECT pg_advisory_xact_lock($1)", &[&SCHEMA_LOCK])?;
            let there = link.first("SELECT to_regclass('meta') IS NOT NULL", &[])?;
            if !there.is_some_and(|row| row.get(0)) {
                link.batch(SCHEMA)?;
                let version = SCHEMA_VERSION.to_string();
                link.execute("INSERT INTO meta VALUES ('schema', $1)", &[&version])?;
            }
            let row = link.first("SELECT value FROM meta WHERE key = 'schema'", &[])?;
            let found: Option<String> = row.map(|row| row.get(0));
            let version = found.as_deref().and_then(|found| found.parse::<u32>().ok());
            let Some(old) = version.filter(|version| (2..SCHEMA_VERSION).contains(version)) else {
                return Ok(found);
            };
            let Some(lengths) = lengths else {
                let place = place.clone();
                return Err(StoreError::Older { place, found: old, known }.into());
            };
            // They would fail with what is not there any more.
            if let Some(engines) = link.other_engines()? {
                let place = place.clone();
                return Err(StoreError::InUse { place, found: old, known, engines }.into());
            }
            log(&format!(
                "{place} has tables of version {old}: brings them up to {SCHEMA_VERSION}"
            ));
            if old == 2 {
                link.batch(since(SCHEMA, 3))?;
            }
            // It rewrites what there is.
            link.batch("SET LOCAL statement_timeout TO 0")?;
            if old <= 3 {
                link.batch(FROM_3)?;
                lengths.iter().try_for_each(|one| ms_of(link, one))?;
            }
            if old <= 4 {
                audit::from_4(link, since(SCHEMA, 5))?;
            }
            if old <= 5 {
                link.batch(since(SCHEMA, 6))?;
            }
            partitions::from_6(link)?;
            let version = SCHEMA_VERSION.to_string();
            link.execute("UPDATE meta SET value = $1 WHERE key = 'schema'", &[&version])?;
            Ok(Some(version))
        })?;
        match found {
            Some(found) if found == known.to_string() => Ok(()),
            Some(found) => Err(StoreError::Version { place, found, known }),
            None => {
                let reason = "it has tables, but does not say of which version".to_owned();
                Err(StoreError::Damaged { place, reason })
            }
        }
    }

    /// Does something in one transaction; when it fails, nothing of it stays.
    pub(super) fn write_all<T>(
        &self,
        act: impl FnMut(&mut Link) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        self.links.write(act)
    }

    /// Which one it is, for messages.
    pub(crate) fn place(&self) -> &str {
        self.links.place()
    }

    fn shapes(&self) -> ServerShapes<'_> {
        ServerShapes { links: &self.links, seen: &self.seen }
    }

    fn read<T>(&self, act: impl FnMut(&mut Link) -> Result<T, Failed>) -> Result<T, StoreError> {
        self.links.with("read", act)
    }
}

/// Makes times of a service's numbers of intervals. No number is as large as a time, so none gets in another's way.
fn ms_of(link: &mut Link, (service, length): (&String, &i64)) -> Result<(), Failed> {
    for sql in [
        "UPDATE reports SET interval = interval * $2 WHERE service = $1",
        "UPDATE decisions SET interval = interval * $2, previous = previous * $2
         WHERE aggregate IN (SELECT id FROM aggregates WHERE service = $1)",
        "UPDATE aggregates SET closed = closed * $2 WHERE service = $1",
    ] {
        link.execute(sql, &[service, length])?;
    }
    Ok(())
}

/// From the columns id, service, prefix, hold, version, configuration, closed, reward, decisions, changed_ms.
fn aggregate_row(row: &SqlRow) -> Result<Row, Failed> {
    Ok(Row {
        id: row.get(0),
        name: Name { service: row.get(1), prefix: row.get(2) },
        hold: hold(row, 3)?,
        version: row.get(4),
        configuration: row.get(5),
        state: None,
        closed: row.get(6),
        reward: row.get(7),
        decisions: row.get(8),
        changed_ms: row.get(9),
    })
}

fn hold(row: &SqlRow, column: usize) -> Result<Hold, Failed> {
    Hold::from_name(row.get(column)).ok_or(Failed::Document)
}

impl Store for Postgres {
    fn way(&self) -> String {
        self.place().to_owned()
    }

    fn accept(&self, batches: &[Batch]) -> Result<Vec<Outcome>, StoreError> {
        let (outcomes, new) =
            self.links.write(|link| accept::accept(link, &self.known, batches))?;
        self.known.add(new);
        Ok(outcomes)
    }

    fn close(
        &self,
        due: &Due<'_>,
        decide: &mut dyn Decide,
    ) -> Result<(usize, Vec<Name>), StoreError> {
        let (mut closed, mut changed) = (0, Vec::new());
        // Where this fails, it is tried again before the day begins; what is wanted now is made below.
        let _ = self.partitions.cover(&self.links, due.now_ms.saturating_add(DAY_MS));
        // Each turn closes something, or finds that others have.
        while closed < due.limit {
            let from = self.turn.load(Ordering::Relaxed);
            let left_out = self.aside.left_out(due.now_ms);
            let next = self.read(|link| close::next_due(link, due, &left_out, from))?;
            let Some((interval, part)) = next else { break };
            let unit = close::Unit {
                interval,
                part,
                limit: due.limit - closed,
                left_out: &left_out,
                aside: &self.aside,
            };
            let shapes = self.shapes();
            let cover = |interval| self.partitions.cover(&self.links, interval);
            let done = self
                .links
                .write(|link| close::close_part(link, (shapes, &cover), due, &unit, decide))
                .inspect_err(|_| self.partitions.doubt())?;
            // Another engine was here: who went on with the next part would be behind it again, and
            // both would take turns.
            let ahead = if done.closed > 0 { 1 } else { PARTS / 2 };
            self.turn.store((part + ahead) % PARTS, Ordering::Relaxed);
            closed += done.closed;
            changed.extend(done.changed);
        }
        Ok((closed, changed))
    }

    fn unknown(&self, names: &[Name]) -> Result<Vec<Name>, StoreError> {
        self.read(|link| read::unknown(link, names))
    }

    fn damaged(&self) -> Vec<Damaged> {
        self.aside.list()
    }

    fn reset(
        &self,
        names: &[Name],
        who: &str,
        detail: &str,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let ids = self.links.write(|link| orders::reset(link, names, (who, detail), now_ms))?;
        let is_done = ids.is_some();
        ids.into_iter().flatten().for_each(|id| self.aside.mended(id));
        Ok(is_done)
    }

    fn in_force(&self, names: &[Name]) -> Result<Vec<InForce>, StoreError> {
        self.read(|link| read::in_force(link, names))
    }

    fn aggregates(&self, search: &Search) -> Result<Vec<Listed>, StoreError> {
        self.read(|link| read::aggregates(link, search))
    }

    fn number(&self, name: &Name) -> Result<Option<i64>, StoreError> {
        self.read(|link| read::number(link, name))
    }

    fn aggregate(&self, name: &Name) -> Result<Option<Row>, StoreError> {
        self.read(|link| read::aggregate(link, name))
    }

    fn learnt(&self, aggregate: i64) -> Result<Option<String>, StoreError> {
        self.read(|link| read::learnt(link, self.shapes(), aggregate))
    }

    fn decisions(
        &self,
        aggregate: i64,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Decided>, StoreError> {
        self.read(|link| read::decisions(link, self.shapes(), aggregate, before, limit))
    }

    fn order(&self, orders: &[(Row, Order)]) -> Result<bool, StoreError> {
        self.links.write(|link| orders::order(link, self.shapes(), orders))
    }

    fn audit(
        &self,
        before: i64,
        refused: Option<bool>,
        limit: usize,
    ) -> Result<Vec<Audit>, StoreError> {
        self.read(|link| audit::list(link, before, refused, limit))
    }

    fn audit_after(&self, line: i64, limit: usize) -> Result<Vec<Chained>, StoreError> {
        self.read(|link| audit::after(link, line, limit))
    }

    fn take_turn(&self, turn: &Turn<'_>) -> Result<Option<i64>, StoreError> {
        self.links.write(|link| audit::take_turn(link, turn))
    }

    fn write_down(&self, lines: &[Line]) -> Result<(), StoreError> {
        self.links.write(|link| {
            lines.iter().try_for_each(|line| audit::write_audit(link, line.at_ms, line.texts()))
        })
    }

    fn safe_orders(&self) -> Result<String, StoreError> {
        self.read(read::safe_orders)
    }

    fn change_safe_orders(
        &self,
        change: &mut ChangeSafe<'_>,
    ) -> Result<Result<(), String>, StoreError> {
        self.links.write(|link| read::change_safe_orders(link, change))
    }

    fn check_audit(&self, known: Option<&AuditMark>) -> Result<AuditCheck, StoreError> {
        self.read(|link| audit::check(link, known))
    }

    fn forget_audit(&self, before_ms: i64, now_ms: i64) -> Result<usize, StoreError> {
        self.links.write(|link| audit::forget(link, before_ms, now_ms))
    }

    fn tokens(&self) -> Result<Vec<KeptToken>, StoreError> {
        self.read(tokens::tokens)
    }

    fn add_token(&self, token: &KeptToken, who: &str) -> Result<Option<i64>, StoreError> {
        self.links.write(|link| tokens::add(link, token, who))
    }

    fn revoke_token(&self, name: &str, who: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.links.write(|link| tokens::revoke(link, name, who, now_ms))
    }

    fn rotate_token(&self, new: &Rotation, who: &str) -> Result<bool, StoreError> {
        self.links.write(|link| tokens::rotate(link, new, who))
    }

    fn used(&self, uses: &[Use]) -> Result<(), StoreError> {
        self.links.write(|link| tokens::used(link, uses))
    }

    fn time(&self, latency: Latency) {
        self.links.time(latency);
    }

    fn edges_seen(&self) -> Result<Vec<(i64, i64)>, StoreError> {
        self.read(read::edges_seen)
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        self.read(read::counts)
    }

    fn studies(&self, service: Option<&str>, kind: StudyKind) -> Result<Vec<Study>, StoreError> {
        self.read(|link| studies::studies(link, service, kind))
    }

    fn active_studies(&self, service: &str) -> Result<Vec<Arc<Study>>, StoreError> {
        self.read(|link| studies::active(link, service))
    }

    fn candidates(&self, service: &str, from: i64) -> Result<Vec<Candidate>, StoreError> {
        self.read(|link| studies::candidates(link, service, from))
    }

    fn begin(&self, new: &NewStudy) -> Result<Begun, StoreError> {
        self.links.write(|link| studies::begin(link, new))
    }

    fn step(&self, study: &Study, step: &StudyStep) -> Result<bool, StoreError> {
        self.links.write(|link| studies::step(link, study, step))
    }

    fn members(&self, study: i64) -> Result<Vec<MemberRow>, StoreError> {
        self.read(|link| studies::members(link, study))
    }

    fn cells(&self, study: i64) -> Result<Vec<CellRow>, StoreError> {
        self.read(|link| studies::cells(link, study))
    }

    fn forget(&self, before_ms: i64, limit: usize) -> Result<usize, StoreError> {
        let forgot = self.links.write(|link| read::forget(link, before_ms, limit))?;
        while self.partitions.drop_old(&self.links, before_ms)? {}
        Ok(forgot)
    }
}
