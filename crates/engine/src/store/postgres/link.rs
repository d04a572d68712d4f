//! Connections to PostgreSQL: kept for the next user, and replaced when they break.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use postgres::binary_copy::BinaryCopyInWriter;
use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, Error, NoTls, Row, Statement};

use super::tls::Trust;
use crate::config::PostgresSettings;
use crate::error::with_causes;
use crate::metrics::Latency;
use crate::store::StoreError;

/// Says of each connection that a commit waits for the disk, whatever the server's default is; and
/// that nothing waits for ever.
const SETTINGS: &str = "SET synchronous_commit TO on; SET statement_timeout TO '60s'; SET lock_timeout TO '30s'; \
     SET idle_in_transaction_session_timeout TO '60s'";

/// What begins a transaction. A pooler may have given the connection to this one alone, so it says
/// again what must not depend on the server's default.
const BEGIN: &str = "BEGIN; SET LOCAL synchronous_commit TO on; SET LOCAL lock_timeout TO '30s'";

/// What the server knows its connections by; older engines have the same.
pub(super) const NAME: &str = "trimtab engine";

/// A server that does not answer is left for so long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where to connect to.
pub(super) struct Links {
    config: Config,
    /// Where to hear of changes, if elsewhere.
    listen: Option<Config>,
    /// Without, the connection is not encrypted.
    trust: Option<Trust>,
    place: String,
    idle: Mutex<Vec<Link>>,
    latency: OnceLock<Latency>,
}

/// A connection, with the statements that it knows.
pub(in crate::store) struct Link {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

/// A column's name and type.
pub(in crate::store) type Column = (String, Type);

/// What goes with a statement.
pub(in crate::store) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Link {
    fn statement(&mut self, sql: &'static str) -> Result<Statement, Error> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let new = self.client.prepare(sql)?;
        self.statements.insert(sql, new.clone());
        Ok(new)
    }

    pub(super) fn query(
        &mut self,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, Error> {
        let statement = self.statement(sql)?;
        self.client.query(&statement, values)
    }

    pub(in crate::store) fn first(
        &mut self,
        sql: &'static str,
        values: Values<'_>,
    ) -> Result<Option<Row>, Error> {
        let statement = self.statement(sql)?;
        self.client.query_opt(&statement, values)
    }

    pub(super) fn execute(&mut self, sql: &'static str, values: Values<'_>) -> Result<u64, Error> {
        let statement = self.statement(sql)?;
        self.client.execute(&statement, values)
    }

    pub(in crate::store) fn batch(&mut self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql)
    }

    /// The connections of other engines to the database, and from where; none where there are none.
    pub(in crate::store) fn other_engines(&mut self) -> Result<Option<String>, Error> {
        let others = "SELECT count(*),
                string_agg(DISTINCT coalesce(host(client_addr), 'its own machine'), ', ')
            FROM pg_stat_activity WHERE datname = current_database()
                AND application_name = $1 AND pid <> pg_backend_pid()";
        let Some(row) = self.first(others, &[&NAME])? else { return Ok(None) };
        let (count, from): (i64, Option<String>) = (row.get(0), row.get(1));
        Ok(from.map(|from| format!("{count} connections of engines at {from}")))
    }

    /// The columns of a table, in their order.
    pub(in crate::store) fn columns(&mut self, table: &str) -> Result<Vec<Column>, Error> {
        let all = "SELECT attname::text, atttypid FROM pg_attribute
            WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
        let rows = self.query(all, &[&table])?;
        let kind = |row: &Row| Type::from_oid(row.get(1)).expect("tables have types of its own");
        Ok(rows.iter().map(|row| (row.get(0), kind(row))).collect())
    }

    /// Puts rows into a table until there are none left, and says how many there were.
    pub(in crate::store) fn copy(
        &mut self,
        table: &str,
        columns: &[Column],
        mut next: impl FnMut() -> Result<Option<Vec<Box<dyn ToSql + Sync>>>, Failed>,
    ) -> Result<u64, Failed> {
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let types: Vec<Type> = columns.iter().map(|(_, kind)| kind.clone()).collect();
        let copy = format!("COPY {table} ({}) FROM STDIN (FORMAT binary)", names.join(", "));
        let mut writer = BinaryCopyInWriter::new(self.client.copy_in(copy.as_str())?, &types);
        while let Some(values) = next()? {
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value).collect();
            writer.write(&values)?;
        }
        Ok(writer.finish()?)
    }

    /// Has a table count on from its highest number, where it counts.
    pub(in crate::store) fn count_on(&mut self, table: &str) -> Result<(), Error> {
        let counts = "SELECT attname FROM pg_attribute
            WHERE attrelid = $1::text::regclass AND attidentity <> ''";
        if self.first(counts, &[&table])?.is_some() {
            self.batch(&format!(
                "SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}
                 HAVING max(id) IS NOT NULL"
            ))?;
        }
        Ok(())
    }
}

impl Links {
    pub(super) fn new(settings: &PostgresSettings) -> Result<Self, StoreError> {
        let mut config = settings.config.clone();
        let mut listen = settings.listen.clone();
        let hosts: Vec<String> = config
            .get_hosts()
            .iter()
            .map(|host| match host {
                postgres::config::Host::Tcp(name) => name.clone(),
                postgres::config::Host::Unix(path) => path.display().to_string(),
            })
            .collect();
        let name = config.get_dbname().or(config.get_user()).unwrap_or("its default");
        let place = format!("the database {name} of PostgreSQL at {}", hosts.join(", "));
        let fail =
            |reason| StoreError::Unusable { what: "connect to", place: place.clone(), reason };
        if let Some(file) = &settings.password_file {
            let password = std::fs::read_to_string(file).map_err(|e| {
                fail(format!("its password in {} cannot be read: {e}", file.display()))
            })?;
            let password = password.trim_end_matches(['\r', '\n']);
            for config in [Some(&mut config), listen.as_mut()].into_iter().flatten() {
                config.password(password);
            }
        }
        let trust = settings.authority.as_deref().map(Trust::read).transpose().map_err(fail)?;
        for config in [Some(&mut config), listen.as_mut()].into_iter().flatten() {
            config.connect_timeout(CONNECT_TIMEOUT).application_name(NAME);
            config.ssl_mode(if trust.is_some() { SslMode::Require } else { SslMode::Disable });
        }
        Ok(Self { config, listen, trust, place, idle: Mutex::default(), latency: OnceLock::new() })
    }

    /// Says from now on how long everything takes.
    pub(super) fn time(&self, latency: Latency) {
        // A second one would be of another engine.
        let _ = self.latency.set(latency);
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn connect(&self) -> Result<Link, Error> {
        self.connect_by(&self.config)
    }

    fn connect_by(&self, config: &Config) -> Result<Link, Error> {
        let mut client = match &self.trust {
            Some(trust) => config.connect(trust.clone())?,
            None => config.connect(NoTls)?,
        };
        client.batch_execute(SETTINGS)?;
        Ok(Link { client, statements: HashMap::new() })
    }

    /// A connection that receives what is sent to a channel. A pooler that gives a connection for the time
    /// of a transaction cannot carry it, so it may have a way of its own.
    pub(super) fn listen(&self, channel: &'static str) -> Result<Client, Error> {
        let mut client = self.connect_by(self.listen.as_ref().unwrap_or(&self.config))?.client;
        client.batch_execute(&format!("LISTEN {channel}"))?;
        Ok(client)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a connection. One that broke while nobody used it is replaced: whatever
    /// is done here may be done again.
    pub(super) fn with<T>(
        &self,
        what: &'static str,
        mut act: impl FnMut(&mut Link) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let is_read = what == "read";
        let timed = |latency: &Latency| if is_read { latency.read() } else { latency.write() };
        let _timed = self.latency.get().map(timed);
        let kept = self.idle().pop();
        if let Some(mut link) = kept {
            match act(&mut link) {
                Err(Failed::Server(e)) if is_broken(&e) || link.client.is_closed() => {
                    self.idle().clear();
                }
                done => return self.finish(what, link, done),
            }
        }
        let mut link = self.connect().map_err(|e| self.error(what, &e))?;
        let done = act(&mut link);
        self.finish(what, link, done)
    }

    fn finish<T>(
        &self,
        what: &'static str,
        link: Link,
        done: Result<T, Failed>,
    ) -> Result<T, StoreError> {
        if !link.client.is_closed() {
            self.idle().push(link);
        }
        done.map_err(|e| match e {
            Failed::Server(e) => self.error(what, &e),
            Failed::Store(e) => e,
            Failed::Document => StoreError::Damaged {
                place: self.place.clone(),
                reason: "a document in it is none that the engine writes".to_owned(),
            },
        })
    }

    /// The same in one transaction; when it fails, nothing of it stays.
    pub(super) fn write<T>(
        &self,
        mut act: impl FnMut(&mut Link) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        self.with("write to", |link| {
            link.batch(BEGIN)?;
            match act(link) {
                Ok(done) => {
                    link.batch("COMMIT")?;
                    Ok(done)
                }
                Err(e) => {
                    // Where this fails the connection is gone, and the server does it by itself.
                    let _ = link.batch("ROLLBACK");
                    Err(e)
                }
            }
        })
    }

    pub(super) fn error(&self, what: &'static str, e: &Error) -> StoreError {
        let place = self.place.clone();
        if e.code() == Some(&SqlState::DISK_FULL) {
            return StoreError::Full { place };
        }
        let reason = e.as_db_error().map_or_else(
            || {
                format!(
                    "{}; it is tried again, see that the server runs and that [store] postgres says where",
                    with_causes(e)
                )
            },
            |said| format!("the server says: {said}"),
        );
        StoreError::Unusable { what, place, reason }
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        // Each ends by waiting for its last words, which a thread that serves others must not.
        let idle = std::mem::take(&mut *self.idle());
        let ended = std::thread::Builder::new().spawn(move || drop(idle));
        let _ = ended.map(std::thread::JoinHandle::join);
    }
}

/// Whether the connection is gone, or the server ends it.
fn is_broken(e: &Error) -> bool {
    let ends = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
    e.is_closed() || e.code().is_some_and(|code| ends.contains(code))
}

/// Why something was not done.
#[derive(Debug)]
pub(in crate::store) enum Failed {
    Server(Error),
    /// What was read is nothing that the engine writes.
    Document,
    /// Something else that was asked of the store meanwhile.
    Store(StoreError),
}

impl From<StoreError> for Failed {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}

impl From<Error> for Failed {
    fn from(e: Error) -> Self {
        Self::Server(e)
    }
}
