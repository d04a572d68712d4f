//! The log of decisions, for questions about all of a service or one of its aggregates.

use serde_json::{Value, json};
use trimtab_fleet::Decision;
use trimtab_fleet_client::Name;

use super::refusal::Refusal;
use crate::services::key_of;
use crate::store::{Row, Search, Store, StoreError};

/// Decisions of each aggregate that are read: by default, and at most.
const LAST: usize = 1000;
const LAST_MAX: usize = 10_000;
/// Aggregates of a service, and decisions in all: what an answer reads in a few seconds.
const AGGREGATES_MAX: usize = 1000;
const DECISIONS_MAX: usize = 100_000;

/// What was read.
pub(super) struct Log {
    pub(super) aggregates: u64,
    pub(super) decisions: Vec<Decision>,
}

impl Log {
    /// Reads the latest decisions of each aggregate of a service, or of one.
    pub(super) fn read(
        store: &dyn Store,
        service: &str,
        prefix: Option<&str>,
        last: Option<usize>,
    ) -> Result<Result<Self, Refusal>, StoreError> {
        let last = last.unwrap_or(LAST).clamp(1, LAST_MAX);
        let rows: Vec<Row> = match prefix {
            Some(prefix) => {
                let one = Name { service: service.to_owned(), prefix: prefix.to_owned() };
                let Some(row) = store.aggregate(&one)? else {
                    let said = format!("no reports for {one}: check it in the list of aggregates");
                    return Ok(Err(Refusal::unknown(said)));
                };
                vec![row]
            }
            None => {
                let (service, limit) = (Some(service.to_owned()), AGGREGATES_MAX + 1);
                store.aggregates(&Search { service, limit, ..Search::default() })?
            }
        };
        if rows.len() > AGGREGATES_MAX {
            let said = format!(
                "{service} has more than {AGGREGATES_MAX} aggregates: ask about one of them"
            );
            return Ok(Err(Refusal::oversized(said)));
        }
        let mut decisions = Vec::new();
        for row in &rows {
            for decided in store.decisions(row.id, i64::MAX, last)? {
                decisions.extend(decisions_of(&row.name, &decided.detail));
            }
            if decisions.len() > DECISIONS_MAX {
                let said = format!(
                    "the log has more than {DECISIONS_MAX} decisions of that: read fewer of each \
                     aggregate (`last`), or ask about one"
                );
                return Ok(Err(Refusal::oversized(said)));
            }
        }
        Ok(Ok(Self { aggregates: rows.len() as u64, decisions }))
    }
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
