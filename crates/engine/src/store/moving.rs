//! A store as a whole: a copy of a file while an engine writes it, and all that a file has moved into
//! PostgreSQL.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use postgres::types::{ToSql, Type};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};
use sha2::{Digest, Sha256};
use trimtab_fleet_client::Name;

use super::postgres::{DAY_MS, Failed, Postgres, make_partition, part_of};
use super::{Sqlite, StoreError};

/// All tables, in the order in which they are moved: parts of reports are those of aggregates.
const TABLES: [&str; 12] = [
    "meta",
    "tokens",
    "token_times",
    "edges",
    "aggregates",
    "shapes",
    "studies",
    "members",
    "cells",
    "decisions",
    "reports",
    "audit",
];

/// A table, and how many of its rows were moved.
pub type Moved = (&'static str, u64);

/// Writes a copy of a store in a file to a new file, as it is at one moment.
pub(crate) fn back_up(store: &Sqlite, to: &Path) -> Result<(), StoreError> {
    let unusable = |reason: String| StoreError::Unusable {
        what: "write a copy to",
        place: to.display().to_string(),
        reason,
    };
    if to.exists() {
        return Err(unusable("there is such a file: name another one".to_owned()));
    }
    let db = store.new_reader().map_err(|e| store.fail("read", &e))?;
    db.execute("VACUUM INTO ?1", [to.display().to_string()]).map_err(|e| {
        // What there is of it is no copy.
        let _ = std::fs::remove_file(to);
        unusable(e.to_string())
    })?;
    // SQLite leaves it to the system when this is on the disk.
    File::open(to).and_then(|file| file.sync_all()).map_err(|e| unusable(e.to_string()))
}

/// Moves all that is in a file into tables of PostgreSQL that are empty: everything, or nothing.
pub(crate) fn move_to(from: &Sqlite, to: &Postgres) -> Result<Vec<Moved>, StoreError> {
    let writer = from.writer();
    take_alone(&writer.db).map_err(|e| match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Unusable {
            what: "move",
            place: from.path().display().to_string(),
            reason: "an engine or another program has it open: end that first".to_owned(),
        },
        _ => from.fail("read", &e),
    })?;
    let moved = to.write_all(|link| {
        let counted = "SELECT (SELECT count(*) FROM aggregates) + (SELECT count(*) FROM tokens)
            + (SELECT count(*) FROM audit)";
        let rows: i64 = link.first(counted, &[])?.map_or(0, |row| row.get(0));
        if rows > 0 {
            let reason = "it has tables with rows: name an empty database".to_owned();
            return Err(unusable(to, reason).into());
        }
        if let Some(engines) = link.other_engines()? {
            return Err(unusable(to, format!("{engines} use it: end them first")).into());
        }
        link.batch("SET LOCAL statement_timeout TO 0; DELETE FROM meta WHERE key <> 'schema'")?;
        let mut parts = HashMap::new();
        for day in days_of_decisions(from, &writer.db)? {
            make_partition(link, day * DAY_MS)?;
        }
        TABLES
            .iter()
            .map(|&table| Ok((table, move_table(from, &writer.db, link, table, &mut parts)?)))
            .collect()
    });
    // Nothing was written there.
    let _ = writer.db.execute_batch("ROLLBACK");
    moved
}

/// The days since 1970 that have intervals with decisions.
fn days_of_decisions(from: &Sqlite, db: &Connection) -> Result<Vec<i64>, Failed> {
    let fail = |e: rusqlite::Error| Failed::from(from.fail("read", &e));
    let mut days =
        db.prepare("SELECT DISTINCT interval / ?1 FROM decisions ORDER BY 1").map_err(fail)?;
    let rows = days.query_map([DAY_MS], |row| row.get(0)).map_err(fail)?;
    rows.collect::<Result<_, _>>().map_err(fail)
}

fn unusable(to: &Postgres, reason: String) -> StoreError {
    StoreError::Unusable { what: "move to", place: to.place().to_owned(), reason }
}

/// Holds a file alone, until the connection ends.
fn take_alone(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(std::time::Duration::from_secs(1))?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    db.execute_batch("BEGIN EXCLUSIVE")
}

/// A value on its way.
#[derive(Debug)]
enum Value {
    Null,
    Int(i64),
    Part(i32),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    /// As PostgreSQL's column wants it.
    fn boxed(self, wanted: &Type) -> Box<dyn ToSql + Sync> {
        match (self, wanted) {
            (Self::Null, &Type::INT8) => Box::new(None::<i64>),
            (Self::Null, &Type::FLOAT8) => Box::new(None::<f64>),
            (Self::Null, &Type::BYTEA) => Box::new(None::<Vec<u8>>),
            (Self::Null, _) => Box::new(None::<String>),
            (Self::Int(number), &Type::FLOAT8) => Box::new(number as f64),
            (Self::Int(number), &Type::INT4) => Box::new(number as i32),
            (Self::Int(number), _) => Box::new(number),
            (Self::Part(part), _) => Box::new(part),
            (Self::Real(number), _) => Box::new(number),
            (Self::Text(text), _) => Box::new(text),
            (Self::Bytes(bytes), _) => Box::new(bytes),
        }
    }
}

/// Moves a table's rows, and says how many.
fn move_table(
    from: &Sqlite,
    db: &Connection,
    link: &mut super::postgres::Link,
    table: &'static str,
    parts: &mut HashMap<i64, i32>,
) -> Result<u64, Failed> {
    let columns = link.columns(table)?;
    // What a file does not have follows from what it has.
    let made = |name: &str| (table == "shapes" && name == "digest") || name == "part";
    let names: Vec<&str> =
        columns.iter().map(|(name, _)| name.as_str()).filter(|name| !made(name)).collect();
    let only = if table == "meta" { " WHERE key <> 'schema'" } else { "" };
    let fail = |e: rusqlite::Error| Failed::from(from.fail("read", &e));
    let select = format!("SELECT {} FROM {table}{only}", names.join(", "));
    let mut statement = db.prepare(&select).map_err(fail)?;
    let at = |wanted: &str| names.iter().position(|name| *name == wanted);
    let (id, aggregate, text) = (at("id"), at("aggregate"), at("text"));
    let (service, prefix) = (at("service"), at("prefix"));
    let mut rows = statement.query([]).map_err(fail)?;
    let moved = link.copy(table, &columns, || {
        let Some(row) = rows.next().map_err(fail)? else { return Ok(None) };
        let text_at = |at: Option<usize>| -> Result<String, Failed> {
            row.get(at.expect("the table has it")).map_err(fail)
        };
        let number_at = |at: Option<usize>| -> Result<i64, Failed> {
            row.get(at.expect("the table has it")).map_err(fail)
        };
        let mut values = Vec::with_capacity(columns.len());
        for (name, wanted) in &columns {
            let value = match name.as_str() {
                "part" if table == "aggregates" => {
                    let name = Name { service: text_at(service)?, prefix: text_at(prefix)? };
                    let part = part_of(&name);
                    parts.insert(number_at(id)?, part);
                    Value::Part(part)
                }
                "part" => {
                    let part = parts.get(&number_at(aggregate)?).copied();
                    Value::Part(part.ok_or(Failed::Document)?)
                }
                "digest" if table == "shapes" => {
                    Value::Bytes(Sha256::digest(text_at(text)?).to_vec())
                }
                name => match row.get_ref(name).map_err(fail)? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(number) => Value::Int(number),
                    ValueRef::Real(number) => Value::Real(number),
                    ValueRef::Text(text) => {
                        let text = std::str::from_utf8(text).map_err(|_| Failed::Document)?;
                        Value::Text(text.to_owned())
                    }
                    ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
                },
            };
            values.push(value.boxed(wanted));
        }
        Ok(Some(values))
    })?;
    link.count_on(table)?;
    Ok(moved)
}
