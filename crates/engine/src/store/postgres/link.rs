//! Connections to PostgreSQL: kept for the next user, and replaced when they break.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Config, Error, NoTls, Row, Statement};

use super::tls::Trust;
use crate::config::PostgresSettings;
use crate::error::with_causes;
use crate::store::StoreError;

/// Says of each connection that a commit waits for the disk, whatever the server's default is; and
/// that nothing waits for ever.
const SETTINGS: &str = "SET synchronous_commit TO on; SET statement_timeout TO '60s'; SET lock_timeout TO '30s'; \
     SET idle_in_transaction_session_timeout TO '60s'";

/// What the server knows its connections by; older engines have the same.
pub(super) const NAME: &str = "trimtab engine";

/// A server that does not answer is left for so long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where to connect to.
pub(super) struct Links {
    config: Config,
    /// Without, the connection is not encrypted.
    trust: Option<Trust>,
    place: String,
    idle: Mutex<Vec<Link>>,
}

/// A connection, with the statements that it knows.
pub(super) struct Link {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

/// What goes with a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

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

    pub(super) fn first(
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

    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql)
    }
}

impl Links {
    pub(super) fn new(settings: &PostgresSettings) -> Result<Self, StoreError> {
        let mut config = settings.config.clone();
        config.connect_timeout(CONNECT_TIMEOUT).application_name(NAME);
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
            config.password(password.trim_end_matches(['\r', '\n']));
        }
        let trust = settings.authority.as_deref().map(Trust::read).transpose().map_err(fail)?;
        config.ssl_mode(if trust.is_some() { SslMode::Require } else { SslMode::Disable });
        Ok(Self { config, trust, place, idle: Mutex::default() })
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn connect(&self) -> Result<Link, Error> {
        let mut client = match &self.trust {
            Some(trust) => self.config.connect(trust.clone())?,
            None => self.config.connect(NoTls)?,
        };
        client.batch_execute(SETTINGS)?;
        Ok(Link { client, statements: HashMap::new() })
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
            link.batch("BEGIN")?;
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
pub(super) enum Failed {
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
