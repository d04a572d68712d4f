//! What the parts of the engine share.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::broadcast;
use trimtab_fleet_client::Name;

use crate::allowance::Allowance;
use crate::certified::Verifier;
use crate::clock::{is_due, now_ms};
use crate::comparisons::Comparisons;
use crate::config::{ClientRule, Limits};
use crate::health::Health;
use crate::ingest::Ingest;
use crate::learning::Learning;
use crate::logging::warn;
use crate::metrics::Metrics;
use crate::refusals::Refusals;
use crate::safe::Safe;
use crate::store::{Store, StoreError};
use crate::traces::Traces;
use crate::who::{Found, Who};

/// A burst of requests, in seconds of their rate.
const BURST_S: f64 = 10.0;
/// Names that are remembered; beyond, the store is asked again.
const SEEN_MAX: usize = 1 << 20;
/// Rounds of changes that somebody who waits may sleep through; then they look at everything anew.
const ROUNDS: usize = 64;

/// Whose configurations changed; with none, edges that wait look again.
pub(crate) type Changed = Arc<Vec<Name>>;

/// Which certificates of clients are taken, and what they may do.
#[derive(Clone, Default)]
pub(crate) struct Clients {
    /// None: no certificates are taken.
    pub(crate) verifier: Option<Verifier>,
    pub(crate) rules: Vec<ClientRule>,
}

/// The engine.
pub(crate) struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ingest: Ingest,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    /// How its address begins: `http` or `https`.
    pub(crate) scheme: &'static str,
    pub(crate) limits: Limits,
    pub(crate) skew_ms: i64,
    pub(crate) grace_ms: i64,
    pub(crate) age_ms: i64,
    pub(crate) started_ms: i64,
    pub(crate) changes: broadcast::Sender<Changed>,
    pub(crate) health: Health,
    pub(crate) comparisons: Comparisons,
    /// Lines about refusals, which anybody may cause.
    pub(crate) refusals: LogLimit,
    /// The same for the audit.
    pub(crate) attempts: Refusals,
    pub(crate) safe: Safe,
    /// Set when the engine ends: who waits is answered.
    pub(crate) ending: AtomicBool,
    learning: RwLock<Arc<dyn Learning>>,
    clients: RwLock<Arc<Clients>>,
    pub(crate) who: Who,
    /// Requests of each token.
    pub(crate) requests: Allowance<i64>,
    /// Of each address, with a token; where that is limited.
    pub(crate) of_addresses: Option<Allowance<String>>,
    /// Of each address, without a token that is valid.
    pub(crate) strangers: Allowance<String>,
    /// Aggregates that each token makes.
    pub(crate) made: Allowance<i64>,
    /// Aggregates that there are.
    seen: Mutex<HashSet<Name>>,
}

/// An allowance of requests.
fn per_second<K: Eq + Hash>(rate: u32) -> Allowance<K> {
    let rate = f64::from(rate);
    Allowance::new(rate, rate * BURST_S)
}

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) learning: Arc<dyn Learning>,
    pub(crate) ingest: Ingest,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    pub(crate) scheme: &'static str,
    pub(crate) limits: Limits,
    pub(crate) skew_ms: i64,
    pub(crate) grace_ms: i64,
    pub(crate) age_ms: i64,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> Self {
        let new_aggregates = f64::from(parts.limits.new_aggregates);
        parts.store.time(parts.metrics.latency());
        Self {
            store: parts.store,
            ingest: parts.ingest,
            metrics: parts.metrics,
            traces: parts.traces,
            scheme: parts.scheme,
            limits: parts.limits,
            skew_ms: parts.skew_ms,
            grace_ms: parts.grace_ms,
            age_ms: parts.age_ms,
            refusals: LogLimit::default(),
            attempts: Refusals::default(),
            safe: Safe::default(),
            started_ms: now_ms(),
            changes: broadcast::channel(ROUNDS).0,
            health: Health::new(now_ms()),
            comparisons: Comparisons::default(),
            ending: AtomicBool::new(false),
            learning: RwLock::new(parts.learning),
            clients: RwLock::default(),
            who: Who::default(),
            requests: per_second(parts.limits.requests_per_second),
            of_addresses: parts.limits.requests_per_address.map(per_second),
            strangers: per_second(parts.limits.strangers_per_address),
            made: Allowance::new(new_aggregates / 3600.0, new_aggregates),
            seen: Mutex::default(),
        }
    }

    /// The learning, as the services say now.
    pub(crate) fn learning(&self) -> Arc<dyn Learning> {
        self.learning.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Learns by other services from now on.
    pub(crate) fn set_learning(&self, learning: Arc<dyn Learning>) {
        *self.learning.write().unwrap_or_else(PoisonError::into_inner) = learning;
    }

    /// Which certificates of clients are taken now.
    pub(crate) fn clients(&self) -> Arc<Clients> {
        self.clients.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes these from now on.
    pub(crate) fn set_clients(&self, clients: Clients) {
        *self.clients.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(clients);
    }

    /// An edge that has not reported for so long is silent: three of the longest intervals, and the
    /// grace.
    pub(crate) fn silent_ms(&self) -> i64 {
        let services = self.learning().services();
        let longest = services.iter().map(|service| service.interval_ms).max().unwrap_or(0);
        3 * longest + self.grace_ms
    }

    /// Whose token it is that has this hash. Blocks.
    pub(crate) fn token(&self, hash: &[u8], now_ms: i64) -> Result<Found, StoreError> {
        self.who.find(hash, now_ms, || self.store.tokens())
    }

    /// Whether the store answers; it is asked only where the list of tokens is not new. Blocks.
    pub(crate) fn store_answers(&self, now_ms: i64) -> Result<(), StoreError> {
        self.token(&[], now_ms).map(|_| ())
    }

    /// Reads the tokens from the store.
    pub(crate) fn read_tokens(&self, now_ms: i64) -> Result<(), StoreError> {
        self.who.set(self.store.tokens()?, now_ms);
        Ok(())
    }

    /// Those of these names of which this engine does not know that there are aggregates.
    pub(crate) fn not_seen<'a>(&self, names: impl Iterator<Item = &'a Name>) -> Vec<Name> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut strangers: Vec<Name> =
            names.filter(|name| !seen.contains(*name)).cloned().collect();
        strangers.sort();
        strangers.dedup();
        strangers
    }

    /// There are aggregates of these names, or will be.
    pub(crate) fn saw(&self, names: impl Iterator<Item = Name>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() > SEEN_MAX {
            seen.clear();
        }
        seen.extend(names);
    }

    /// Tells who waits that configurations changed.
    pub(crate) fn tell(&self, changed: Vec<Name>) {
        if !changed.is_empty() {
            // Nobody may wait.
            let _ = self.changes.send(Arc::new(changed));
        }
    }

    /// Asks the store, away from the threads that serve others.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        question: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let engine = Arc::clone(self);
        let answer =
            tokio::task::spawn_blocking(move || question(&engine)).await.unwrap_or_else(|e| {
                Err(StoreError::Unusable {
                    what: "ask",
                    place: "the store".to_owned(),
                    reason: e.to_string(),
                })
            });
        if let Err(e) = &answer {
            self.metrics.store_error();
            warn(&format!("store: {e}"));
        }
        answer
    }
}

/// Lines of a log that others cause: so many in a time, and then how many there were.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<(i64, u64)>);

/// How long that time is, and how many lines it has.
const LOG_MS: i64 = 10_000;
const LOG_LINES: u64 = 20;

impl LogLimit {
    /// Says a line, unless there were too many lately.
    pub(crate) fn log(&self, now_ms: i64, line: &str) {
        for line in self.allowed(now_ms, line) {
            warn(&line);
        }
    }

    fn allowed(&self, now_ms: i64, line: &str) -> Vec<String> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since_ms, count) = &mut *state;
        let mut lines = Vec::new();
        if is_due(*since_ms, LOG_MS, now_ms) {
            if *count > LOG_LINES {
                lines.push(format!("{} more like these were not logged", *count - LOG_LINES));
            }
            (*since_ms, *count) = (now_ms, 0);
        }
        *count += 1;
        if *count <= LOG_LINES {
            lines.push(line.to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_cannot_fill_the_log() {
        let limit = LogLimit::default();
        let said = |now_ms| limit.allowed(now_ms, "refused");
        let lines: usize = (0..100_000).map(|_| said(20_000).len()).sum();
        assert_eq!(lines, 20);
        assert_eq!(said(30_000), ["99980 more like these were not logged", "refused"]);
        assert_eq!(said(50_000), ["refused"]);
        // Nor does a clock that is set back keep it silent.
        assert_eq!((0..21).map(|_| said(50_000).len()).sum::<usize>(), 19);
        assert_eq!(said(9_000), ["2 more like these were not logged", "refused"]);
    }
}
