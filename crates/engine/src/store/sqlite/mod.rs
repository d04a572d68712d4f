//! The store in a file: SQLite with a write-ahead log, one writer and concurrent readers.
//!
//! Every commit is on the disk when it returns (`synchronous = FULL`): what was acknowledged survives a loss of power,
//! and not only the death of the process.

mod accept;
mod audit;
mod close;
#[cfg(test)]
mod faults;
mod orders;
mod schema;
mod shapes;
mod studies;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::types::{Type, ValueRef};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row as SqlRow, Transaction,
    TransactionBehavior, named_params, params,
};

use self::accept::{Known, accept_one};
use self::audit::write_audit;
#[cfg(test)]
pub(crate) use self::faults::Cut;
use self::shapes::FileShapes;
use trimtab_fleet_client::{Audit, Counts, Damaged, Hold, Name};

use super::pack::Seen;
use super::{
    Aside, AuditCheck, AuditMark, Batch, Begun, Candidate, CellRow, Chained, ChangeSafe, Decide,
    Decided, Due, InForce, KeptToken, Lengths, Line, Listed, MemberRow, NewStudy, Order, Outcome,
    Rotation, Row, Search, Store, StoreError, Study, StudyKind, StudyStep, Turn, Unreadable, Use,
};
use crate::metrics::Latency;

/// How long a writer waits for another process (`trimtab engine token`) that writes.
const BUSY_WAIT: Duration = Duration::from_secs(10);
const ROW: &str = "id, service, prefix, hold, version, configuration, state, closed, reward, decisions, changed_ms";

/// A store in a file.
pub(crate) struct Sqlite {
    path: PathBuf,
    writer: Mutex<Writer>,
    /// Those that nobody uses now.
    readers: Mutex<Vec<Connection>>,
    seen: Mutex<Seen>,
    aside: Aside,
    latency: OnceLock<Latency>,
    #[cfg(test)]
    faults: faults::Faults,
}

pub(super) struct Writer {
    pub(super) db: Connection,
    known: Known,
}

impl Sqlite {
    /// Opens the store in a file, and makes it where there is none. The lengths are for tables of a version that counts
    /// intervals.
    pub(crate) fn open(path: &Path, lengths: &Lengths) -> Result<Self, StoreError> {
        Self::open_with(path, Some(lengths))
    }

    /// The same where an engine may run on it: tables of an older version are refused.
    pub(crate) fn open_next_to_engine(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, None)
    }

    fn open_with(path: &Path, lengths: Option<&Lengths>) -> Result<Self, StoreError> {
        let fail = |e: rusqlite::Error| error_of(path, "open", &e);
        let mut db = Connection::open(path).map_err(fail)?;
        db.busy_timeout(BUSY_WAIT).map_err(fail)?;
        use_log(&db).map_err(fail)?;
        db.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
        db.pragma_update(None, "cache_size", -65_536).map_err(fail)?;
        db.set_prepared_statement_cache_capacity(64);
        schema::prepare(path, &mut db, lengths)?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(Writer { db, known: Known::new() }),
            readers: Mutex::default(),
            seen: Mutex::default(),
            aside: Aside::default(),
            latency: OnceLock::new(),
            #[cfg(test)]
            faults: faults::Faults::default(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn fail(&self, what: &'static str, e: &rusqlite::Error) -> StoreError {
        error_of(&self.path, what, e)
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, Writer> {
        // A thread that panicked has left a transaction that was rolled back, and names that are still right.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(
        &self,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let _timed = self.latency.get().map(Latency::read);
        #[cfg(test)]
        self.faults.begin().map_err(|e| self.fail("read", &e))?;
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let done = idle.map_or_else(|| self.new_reader(), Ok).and_then(|db| Ok((ask(&db)?, db)));
        let (answer, db) = done.map_err(|e| self.fail("read", &e))?;
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(db);
        Ok(answer)
    }

    pub(super) fn new_reader(&self) -> rusqlite::Result<Connection> {
        let db = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.busy_timeout(BUSY_WAIT)?;
        Ok(db)
    }

    /// Does something in one transaction; when it fails, nothing of it stays.
    fn write<T>(
        &self,
        act: impl FnOnce(&Transaction<'_>, &mut Known) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        // With the wait for another writer.
        let _timed = self.latency.get().map(Latency::write);
        let mut writer = self.writer();
        let Writer { db, known } = &mut *writer;
        let write = || -> rusqlite::Result<T> {
            #[cfg(test)]
            self.faults.begin()?;
            let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = act(&tx, known)?;
            #[cfg(test)]
            self.faults.commit(Cut::Before)?;
            tx.commit()?;
            #[cfg(test)]
            self.faults.commit(Cut::After)?;
            Ok(done)
        };
        let done = write();
        done.map_err(|e| {
            // They may name what was rolled back.
            known.clear();
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.fail("write to", &e)
        })
    }
}

/// Switches to the write-ahead log. SQLite does not wait here, as it does for a writer: it refuses
/// at once where another process opens a new file at the same moment.
fn use_log(db: &Connection) -> rusqlite::Result<()> {
    let end = Instant::now() + BUSY_WAIT;
    loop {
        match db.pragma_update(None, "journal_mode", "WAL") {
            Err(e)
                if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < end =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn error_of(path: &Path, what: &'static str, e: &rusqlite::Error) -> StoreError {
    let place = path.display().to_string();
    let reason = e.to_string();
    match e.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { place },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Damaged { place, reason }
        }
        _ => StoreError::Unusable { what, place, reason },
    }
}

fn bad(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, what.to_owned().into())
}

fn hold(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<Hold> {
    Hold::from_name(&row.get::<_, String>(column)?).ok_or_else(|| bad(column, "no such hold"))
}

fn aggregate_row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        id: row.get(0)?,
        name: Name { service: row.get(1)?, prefix: row.get(2)? },
        hold: hold(row, 3)?,
        version: row.get(4)?,
        configuration: row.get(5)?,
        state: None,
        closed: row.get(7)?,
        reward: row.get(8)?,
        decisions: row.get(9)?,
        changed_ms: row.get(10)?,
    })
}

fn listed(row: &SqlRow<'_>) -> rusqlite::Result<Listed> {
    match aggregate_row(row) {
        Ok(row) => Ok(Ok(row)),
        Err(e) if is_damage(&e) => {
            let id = row.get(0)?;
            let (name, is_named) = name_of(row, 1)?;
            Ok(Err(Unreadable { id, name, is_named }))
        }
        Err(e) => Err(e),
    }
}

/// Whether SQLite does what it should, and what is kept is damaged or missing.
fn is_damage(e: &rusqlite::Error) -> bool {
    e.sqlite_error_code().is_none()
}

/// A name in a column and the next one, and whether all of it can be read.
fn name_of(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<(Name, bool)> {
    let text = |column| -> rusqlite::Result<String> {
        Ok(match row.get_ref(column)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            _ => "?".to_owned(),
        })
    };
    let is_text = |column| row.get::<_, String>(column).is_ok();
    let name = Name { service: text(column)?, prefix: text(column + 1)? };
    Ok((name, is_text(column) && is_text(column + 1)))
}

/// An aggregate's row with the learner's state.
fn whole_row(row: &SqlRow<'_>, shapes: &mut FileShapes<'_>) -> rusqlite::Result<Row> {
    let packed: Option<Vec<u8>> = row.get(6)?;
    let state = packed.map(|packed| shapes.unpack(&packed)).transpose()?;
    Ok(Row { state: state.map(|[state]| state), ..aggregate_row(row)? })
}

fn safe_orders(db: &Connection) -> rusqlite::Result<String> {
    let text = db
        .prepare_cached("SELECT value FROM meta WHERE key = 'safe'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(text.unwrap_or_default())
}

/// A decision, and the interval of the one before it.
fn decided_row(
    row: &SqlRow<'_>,
    shapes: &mut FileShapes<'_>,
) -> rusqlite::Result<(Decided, Option<i64>)> {
    let [configuration, detail] = shapes.unpack(&row.get::<_, Vec<u8>>(7)?)?;
    let decided = Decided {
        interval: row.get(0)?,
        at_ms: row.get(2)?,
        hold: hold(row, 3)?,
        version: row.get(4)?,
        configuration,
        reports: row.get(5)?,
        reward: row.get(6)?,
        detail,
    };
    Ok((decided, row.get(1)?))
}

impl Store for Sqlite {
    fn way(&self) -> String {
        format!("the file {}", self.path.display())
    }

    fn accept(&self, batches: &[Batch]) -> Result<Vec<Outcome>, StoreError> {
        self.write(|tx, known| batches.iter().map(|batch| accept_one(tx, known, batch)).collect())
    }

    fn close(
        &self,
        due: &Due<'_>,
        decide: &mut dyn Decide,
    ) -> Result<(usize, Vec<Name>), StoreError> {
        self.write(|tx, known| close::close(self, tx, known, due, decide))
    }

    fn unknown(&self, names: &[Name]) -> Result<Vec<Name>, StoreError> {
        self.read(|db| {
            let mut ask =
                db.prepare_cached("SELECT 1 FROM aggregates WHERE service = ?1 AND prefix = ?2")?;
            let mut unknown = Vec::new();
            for name in names {
                if !ask.exists(params![name.service, name.prefix])? {
                    unknown.push(name.clone());
                }
            }
            Ok(unknown)
        })
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
        self.write(|tx, _| {
            let Some(ids) = orders::reset(tx, names, (who, detail), now_ms)? else {
                return Ok(false);
            };
            ids.into_iter().for_each(|id| self.aside.mended(id));
            Ok(true)
        })
    }

    fn in_force(&self, names: &[Name]) -> Result<Vec<InForce>, StoreError> {
        self.read(|db| {
            let mut ask = db.prepare_cached(
                "SELECT version, configuration FROM aggregates
                 WHERE service = ?1 AND prefix = ?2 AND version > 0",
            )?;
            let mut found = Vec::new();
            for name in names {
                let there = ask
                    .query_row(params![name.service, name.prefix], |row| {
                        Ok((row.get(0)?, row.get(1)?))
                    })
                    .optional()?;
                if let Some((version, configuration)) = there {
                    found.push(InForce { name: name.clone(), version, configuration });
                }
            }
            Ok(found)
        })
    }

    fn aggregates(&self, search: &Search) -> Result<Vec<Listed>, StoreError> {
        let after =
            search.after.clone().unwrap_or(Name { service: String::new(), prefix: String::new() });
        self.read(|db| {
            let mut ask = db.prepare_cached(&format!(
                "SELECT {ROW} FROM aggregates WHERE (service, prefix) > (:service, :prefix)
                     AND (:only IS NULL OR service = :only) AND (:hold IS NULL OR hold = :hold)
                     AND (:text = '' OR instr(service || ' ' || prefix, :text) > 0)
                 ORDER BY service, prefix"
            ))?;
            let mut rows = ask.query(named_params! {
                ":service": after.service, ":prefix": after.prefix, ":only": search.service,
                ":hold": search.hold.map(Hold::name), ":text": search.text,
            })?;
            // Rows come from the index as they are asked for, so that no limit is needed there.
            let (mut all, mut readable) = (Vec::new(), 0);
            while readable < search.limit
                && let Some(row) = rows.next()?
            {
                let one = listed(row)?;
                readable += usize::from(one.is_ok());
                all.push(one);
            }
            Ok(all)
        })
    }

    fn number(&self, name: &Name) -> Result<Option<i64>, StoreError> {
        self.read(|db| {
            db.prepare_cached("SELECT id FROM aggregates WHERE service = ?1 AND prefix = ?2")?
                .query_row(params![name.service, name.prefix], |row| row.get(0))
                .optional()
        })
    }

    fn aggregate(&self, name: &Name) -> Result<Option<Row>, StoreError> {
        self.read(|db| {
            db.prepare_cached(&format!(
                "SELECT {ROW} FROM aggregates WHERE service = ?1 AND prefix = ?2"
            ))?
            .query_row(params![name.service, name.prefix], aggregate_row)
            .optional()
        })
    }

    fn learnt(&self, aggregate: i64) -> Result<Option<String>, StoreError> {
        self.read(|db| {
            let packed: Option<Option<Vec<u8>>> = db
                .prepare_cached("SELECT state FROM aggregates WHERE id = ?1")?
                .query_row([aggregate], |row| row.get(0))
                .optional()?;
            let mut shapes = FileShapes { db, seen: &self.seen };
            let state = packed.flatten().map(|packed| shapes.unpack(&packed)).transpose()?;
            Ok(state.map(|[state]| state))
        })
    }

    fn decisions(
        &self,
        aggregate: i64,
        before: i64,
        limit: usize,
    ) -> Result<Vec<Decided>, StoreError> {
        self.read(|db| {
            let mut shapes = FileShapes { db, seen: &self.seen };
            let mut one = db.prepare_cached(
                "SELECT interval, previous, at_ms, hold, version, reports, reward, packed FROM decisions
                 WHERE interval = ?1 AND aggregate = ?2",
            )?;
            // From each to the one before it. Where that is not there, it was forgotten.
            let mut next: Option<i64> = db
                .prepare_cached("SELECT closed FROM aggregates WHERE id = ?1")?
                .query_row([aggregate], |row| row.get(0))
                .optional()?
                .flatten();
            let mut found = Vec::new();
            while let Some(interval) = next.filter(|_| found.len() < limit) {
                let there = one
                    .query_row([interval, aggregate], |row| decided_row(row, &mut shapes))
                    .optional()?;
                let Some((decided, previous)) = there else { break };
                if interval < before {
                    found.push(decided);
                }
                next = previous;
            }
            Ok(found)
        })
    }

    fn order(&self, orders: &[(Row, Order)]) -> Result<bool, StoreError> {
        self.write(|tx, _| orders::order(tx, &mut FileShapes { db: tx, seen: &self.seen }, orders))
    }

    fn audit(
        &self,
        before: i64,
        refused: Option<bool>,
        limit: usize,
    ) -> Result<Vec<Audit>, StoreError> {
        self.read(|db| audit::list(db, before, refused, limit))
    }

    fn audit_after(&self, line: i64, limit: usize) -> Result<Vec<Chained>, StoreError> {
        self.read(|db| audit::after(db, line, limit))
    }

    fn take_turn(&self, turn: &Turn<'_>) -> Result<Option<i64>, StoreError> {
        self.write(|tx, _| audit::take_turn(tx, turn))
    }

    fn write_down(&self, lines: &[Line]) -> Result<(), StoreError> {
        self.write(|tx, _| {
            lines.iter().try_for_each(|line| write_audit(tx, line.at_ms, line.texts()))
        })
    }

    fn safe_orders(&self) -> Result<String, StoreError> {
        self.read(safe_orders)
    }

    fn change_safe_orders(
        &self,
        change: &mut ChangeSafe<'_>,
    ) -> Result<Result<(), String>, StoreError> {
        self.write(|tx, _| {
            let (text, line) = match change(&safe_orders(tx)?) {
                Ok(changed) => changed,
                Err(why) => return Ok(Err(why)),
            };
            tx.execute(
                "INSERT INTO meta VALUES ('safe', ?1) ON CONFLICT (key) DO UPDATE SET value = ?1",
                [text],
            )?;
            write_audit(tx, line.at_ms, line.texts())?;
            Ok(Ok(()))
        })
    }

    fn check_audit(&self, known: Option<&AuditMark>) -> Result<AuditCheck, StoreError> {
        self.read(|db| audit::check(db, known))
    }

    fn forget_audit(&self, before_ms: i64, now_ms: i64) -> Result<usize, StoreError> {
        self.write(|tx, _| audit::forget(tx, before_ms, now_ms))
    }

    fn tokens(&self) -> Result<Vec<KeptToken>, StoreError> {
        self.read(tokens::tokens)
    }

    fn add_token(&self, kept: &KeptToken, who: &str) -> Result<Option<i64>, StoreError> {
        self.write(|tx, _| tokens::add(tx, kept, who))
    }

    fn rotate_token(&self, new: &Rotation, who: &str) -> Result<bool, StoreError> {
        self.write(|tx, _| tokens::rotate(tx, new, who))
    }

    fn used(&self, uses: &[Use]) -> Result<(), StoreError> {
        self.write(|tx, _| tokens::used(tx, uses))
    }

    fn revoke_token(&self, name: &str, who: &str, now_ms: i64) -> Result<bool, StoreError> {
        self.write(|tx, _| tokens::revoke(tx, name, who, now_ms))
    }

    fn time(&self, latency: Latency) {
        // A second one would be of another engine.
        let _ = self.latency.set(latency);
    }

    fn edges_seen(&self) -> Result<Vec<(i64, i64)>, StoreError> {
        self.read(|db| {
            db.prepare_cached("SELECT token, seen_ms FROM edges")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        self.read(|db| {
            db.query_row(
                "SELECT count(*), coalesce(sum(hold = 'paused'), 0), coalesce(sum(hold = 'pinned'), 0),
                     (SELECT count(*) FROM edges), (SELECT count(*) FROM reports), coalesce(sum(decisions), 0)
                 FROM aggregates",
                [],
                |row| {
                    Ok(Counts {
                        aggregates: row.get(0)?,
                        paused: row.get(1)?,
                        pinned: row.get(2)?,
                        edges: row.get(3)?,
                        waiting_reports: row.get(4)?,
                        decisions: row.get(5)?,
                    })
                },
            )
        })
    }

    fn forget(&self, before_ms: i64, limit: usize) -> Result<usize, StoreError> {
        self.write(|tx, _| {
            let decisions = tx.execute(
                "DELETE FROM decisions WHERE (interval, aggregate) IN (SELECT interval, aggregate FROM decisions
                     INDEXED BY decisions_at WHERE at_ms < ?1 LIMIT ?2)",
                params![before_ms, limit as i64],
            )?;
            let reports = tx.execute(
                "DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE interval < ?1 LIMIT ?2)",
                params![before_ms, limit as i64],
            )?;
            Ok(decisions + reports + studies::forget(tx, before_ms, limit)?)
        })
    }

    fn studies(&self, service: Option<&str>, kind: StudyKind) -> Result<Vec<Study>, StoreError> {
        self.read(|db| studies::studies(db, service, kind))
    }

    fn active_studies(&self, service: &str) -> Result<Vec<Arc<Study>>, StoreError> {
        self.read(|db| studies::active(db, service))
    }

    fn candidates(&self, service: &str, from: i64) -> Result<Vec<Candidate>, StoreError> {
        self.read(|db| studies::candidates(db, service, from))
    }

    fn begin(&self, new: &NewStudy) -> Result<Begun, StoreError> {
        self.write(|tx, _| studies::begin(tx, new))
    }

    fn step(&self, study: &Study, step: &StudyStep) -> Result<bool, StoreError> {
        self.write(|tx, _| studies::step(tx, study, step))
    }

    fn members(&self, study: i64) -> Result<Vec<MemberRow>, StoreError> {
        self.read(|db| studies::members(db, study))
    }

    fn cells(&self, study: i64) -> Result<Vec<CellRow>, StoreError> {
        self.read(|db| studies::cells(db, study))
    }
}
