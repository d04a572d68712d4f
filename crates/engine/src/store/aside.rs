//! Aggregates that cannot be read or decided on: they are set aside, so that the others go on.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use trimtab_fleet_client::{Damaged, Name};

use super::Closed;
use crate::logging::{log, warn};

/// After so long one is tried again: another engine may have mended it.
const AGAIN_MS: i64 = 60_000;

/// Those that are set aside, by their numbers, with when to try again.
#[derive(Default)]
pub(crate) struct Aside(Mutex<BTreeMap<i64, (i64, Damaged)>>);

impl Aside {
    fn all(&self) -> MutexGuard<'_, BTreeMap<i64, (i64, Damaged)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are to be left out now.
    pub(crate) fn left_out(&self, now_ms: i64) -> Vec<i64> {
        let all = self.all();
        // A clock that was set back must not make the wait longer.
        let waits = |again: i64| (1..=AGAIN_MS).contains(&(again - now_ms));
        all.iter().filter(|(_, (again, _))| waits(*again)).map(|(id, _)| *id).collect()
    }

    /// Sets one aside.
    pub(crate) fn add(&self, id: i64, name: &Name, reason: &str, now_ms: i64) {
        let mut all = self.all();
        let again = now_ms.saturating_add(AGAIN_MS);
        if let Some((at, known)) = all.get_mut(&id) {
            reason.clone_into(&mut known.reason);
            *at = again;
            return;
        }
        warn(&format!(
            "DAMAGED: {name} is set aside, and nothing is decided about it until it is mended: {reason}. Others go on; \
             `trimtab engine reset {}/{}` makes it learn anew",
            name.service, name.prefix
        ));
        let Name { service, prefix } = name.clone();
        all.insert(
            id,
            (again, Damaged { service, prefix, since_ms: now_ms, reason: reason.to_owned() }),
        );
    }

    /// It was read and decided on, or has nothing any more that could be damaged.
    pub(crate) fn mended(&self, id: i64) {
        if let Some((_, known)) = self.all().remove(&id) {
            log(&format!("{} {} is no longer set aside", known.service, known.prefix));
        }
    }

    /// What there is, for people.
    pub(crate) fn list(&self) -> Vec<Damaged> {
        self.all().values().map(|(_, damaged)| damaged.clone()).collect()
    }
}

/// What is decided; a panic is one aggregate's and not all others'.
pub(crate) fn sound(decide: impl FnOnce() -> Result<Closed, String>) -> Result<Closed, String> {
    catch_unwind(AssertUnwindSafe(decide)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(format!("to decide about it is more than this engine can: {said}"))
    })
}
