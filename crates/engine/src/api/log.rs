//! The log of decisions, for questions about all of a service or one of its aggregates.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_fleet::{Decision, Service};
use trimtab_fleet_client::Name;

use super::damage;
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::services::key_of;
use crate::store::{Search, Store, StoreError};

/// Decisions of each aggregate that are read: by default, and at most.
const LAST: usize = 1000;
const LAST_MAX: usize = 10_000;
/// Aggregates of a service, and decisions in all: what an answer reads in a few seconds.
const AGGREGATES_MAX: usize = 1000;
const DECISIONS_MAX: usize = 100_000;

/// What is read at most.
pub(super) struct Most {
    /// Aggregates of a service.
    pub(super) aggregates: usize,
    /// Decisions in all.
    pub(super) decisions: usize,
    /// What to do where there are more.
    pub(super) instead: &'static str,
}

/// What was read.
pub(super) struct Log {
    pub(super) aggregates: u64,
    pub(super) decisions: Vec<Decision>,
}

impl Log {
    /// Reads the latest decisions of each aggregate of a service, or of one. `instead` says what to do
    /// where there are too many.
    pub(super) fn read(
        store: &dyn Store,
        service: &str,
        prefix: Option<&str>,
        last: Option<usize>,
        instead: &'static str,
    ) -> Result<Result<Self, Refusal>, StoreError> {
        let mut decisions = Vec::new();
        let take = &mut |decision| decisions.push(decision);
        let most = Most { aggregates: AGGREGATES_MAX, decisions: DECISIONS_MAX, instead };
        let read = read(store, (service, prefix), last.unwrap_or(LAST), &most, take)?;
        Ok(read.map(|aggregates| Self { aggregates, decisions }))
    }
}

/// The service that a question is about.
pub(super) fn service(engine: &Engine, name: &str) -> Result<Arc<Service>, Refusal> {
    let unknown = || format!("there is no service {name:?}: see the list of services");
    engine.learning().service(name).ok_or_else(|| Refusal::unknown(unknown()))
}

/// Hands out the latest decisions of each aggregate of a service, or of one. How many aggregates
/// these are.
pub(super) fn read(
    store: &dyn Store,
    (service, prefix): (&str, Option<&str>),
    last: usize,
    most: &Most,
    take: &mut dyn FnMut(Decision),
) -> Result<Result<u64, Refusal>, StoreError> {
    let found: Vec<(i64, Name)> = match prefix {
        Some(prefix) => {
            let one = Name { service: service.to_owned(), prefix: prefix.to_owned() };
            let Some(id) = store.number(&one)? else {
                return Ok(Err(damage::unknown(&one)));
            };
            vec![(id, one)]
        }
        None => {
            let (service, limit) = (Some(service.to_owned()), most.aggregates + 1);
            let rows = store.aggregates(&Search { service, limit, ..Search::default() })?;
            rows.into_iter().flatten().map(|row| (row.id, row.name)).collect()
        }
    };
    let over = |what: &str, count: usize| {
        Refusal::oversized(format!("{service} has more than {count} {what}: {}", most.instead))
    };
    if found.len() > most.aggregates {
        return Ok(Err(over("aggregates", most.aggregates)));
    }
    let mut count = 0;
    for (id, name) in &found {
        let last = last.clamp(1, LAST_MAX);
        let (sound, damaged) = damage::decisions(store, (*id, name), i64::MAX, last)?;
        // One that is damaged holds up no question about all.
        if let Some(why) = damaged.filter(|_| prefix.is_some()) {
            return Ok(Err(damage::refusal(name, &why)));
        }
        for decided in sound {
            for decision in decisions_of(name, &decided.detail) {
                count += 1;
                take(decision);
            }
        }
        if count > most.decisions {
            return Ok(Err(over("such decisions", most.decisions)));
        }
    }
    Ok(Ok(found.len() as u64))
}

/// The decisions of what is kept of an interval, the one on versions before among them.
fn decisions_of(name: &Name, detail: &str) -> Vec<Decision> {
    let mut why: Value = serde_json::from_str(detail).unwrap_or_default();
    let mut kept = vec![why["decision"].take()];
    if let Value::Array(earlier) = why["earlier"].take() {
        kept.extend(earlier);
    }
    let read = |mut decision: Value| {
        *decision.as_object_mut()?.entry("key").or_insert(Value::Null) = json!(key_of(name));
        serde_json::from_value(decision).ok()
    };
    kept.into_iter().filter_map(read).collect()
}
