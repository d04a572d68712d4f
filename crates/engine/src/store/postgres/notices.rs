//! What engines tell each other of changes without a broker: `NOTIFY`, and `LISTEN` on a connection
//! of its own.
//!
//! PostgreSQL keeps no notice for an engine that is not connected. One that is lost delays an edge
//! until its wait is over, no more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use postgres::fallible_iterator::FallibleIterator;
use serde::{Deserialize, Serialize};
use trimtab_fleet_client::Name;

use super::Postgres;
use super::link::Failed;
use crate::logging::{log, warn};
use crate::store::{StoreError, Tell};

/// What PostgreSQL takes in a notice, bytes: fewer than 8,000.
const NOTICE_MAX: usize = 7_999;
/// How often to see whether the engine ends.
const LOOK: Duration = Duration::from_millis(500);
/// And, in these, whether the server is still there.
const LOOKS: u32 = 20;
/// After a connection was lost.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Aggregates whose configuration changed.
#[derive(Serialize, Deserialize)]
struct Changed<'a> {
    /// The engine that changed it, which knows already.
    from: u64,
    names: std::borrow::Cow<'a, [Name]>,
}

/// The notices of an engine.
pub(crate) struct Notices {
    tables: Arc<Postgres>,
    us: u64,
    ending: Arc<AtomicBool>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Notices {
    pub(crate) fn new(tables: Arc<Postgres>) -> Result<Self, StoreError> {
        let us = getrandom::u64().map_err(|e| StoreError::Unusable {
            what: "get a random number to be known by at",
            place: tables.place().to_owned(),
            reason: e.to_string(),
        })?;
        Ok(Self { tables, us, ending: Arc::default(), listener: Mutex::default() })
    }

    /// Tells the other engines whose configurations changed.
    pub(crate) fn tell(&self, names: &[Name]) {
        if names.is_empty() {
            return;
        }
        let changed = Changed { from: self.us, names: names.into() };
        let payload = serde_json::to_string(&changed).expect("names are plain data");
        if payload.len() > NOTICE_MAX && names.len() > 1 {
            let (some, others) = names.split_at(names.len() / 2);
            self.tell(some);
            self.tell(others);
            return;
        }
        let told = self.tables.links.with("tell of changes by", |link| {
            link.execute("SELECT pg_notify('trimtab_changed', $1)", &[&payload])?;
            Ok::<(), Failed>(())
        });
        if let Err(e) = told {
            warn(&format!("edges of other engines get a change when their wait is over: {e}"));
        }
    }

    /// Receives changes of other engines from now on.
    pub(crate) fn on_change(&self, tell: Tell) {
        let (tables, us, ending) = (Arc::clone(&self.tables), self.us, Arc::clone(&self.ending));
        let listener = std::thread::Builder::new().name("changes".to_owned()).spawn(move || {
            let mut told = None;
            while !ending.load(Ordering::Relaxed) {
                let lost = hear(&tables, us, &ending, &tell, &mut told);
                let Err(e) = lost else { continue };
                let why = tables.links.error("hear of changes from", &e).to_string();
                if told.as_ref() != Some(&why) {
                    warn(&why);
                    told = Some(why);
                }
                std::thread::sleep(AFTER_ERROR);
            }
        });
        match listener {
            Ok(thread) => {
                let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
                *listener = Some(thread);
            }
            Err(e) => warn(&format!("receives no changes of other engines: {e}")),
        }
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        let listener = self.listener.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let _ = listener.map(JoinHandle::join);
    }
}

/// Receives until the connection is lost, or the engine ends.
fn hear(
    tables: &Postgres,
    us: u64,
    ending: &AtomicBool,
    tell: &Tell,
    told: &mut Option<String>,
) -> Result<(), postgres::Error> {
    let mut client = tables.links.listen("trimtab_changed")?;
    if told.take().is_some() {
        log("receives changes of other engines again");
    }
    loop {
        for _ in 0..LOOKS {
            let mut notices = client.notifications();
            let mut notices = notices.timeout_iter(LOOK);
            while let Some(notice) = notices.next()? {
                match serde_json::from_str::<Changed<'_>>(notice.payload()) {
                    Ok(changed) if changed.from != us => tell(changed.names.into_owned()),
                    Ok(_) => {}
                    Err(e) => warn(&format!("does not understand a notice of a change: {e}")),
                }
            }
            if ending.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        // A server whose machine is gone says nothing for ever.
        client.is_valid(AFTER_ERROR)?;
    }
}
