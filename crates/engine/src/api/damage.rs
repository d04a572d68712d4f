//! What can be read of one aggregate, and what is wrong with the rest.
//!
//! A damaged aggregate stays damaged until somebody resets it, so nobody is asked to come again: what
//! can be read is answered, and what cannot is a conflict that says what to do.

use std::sync::Arc;

use trimtab_fleet_client::{Damaged, Name, UnreadableBody};

use super::refusal::Refusal;
use crate::engine::Engine;
use crate::store::{Decided, Row, Store, StoreError, Unreadable};

/// An aggregate as far as it can be read.
pub(super) struct Known {
    id: i64,
    name: Name,
    /// None: its row cannot be read.
    row: Option<Row>,
    /// Whether what it has learnt can be read, which then is in the row.
    is_whole: bool,
    /// What is damaged, and what to do.
    pub(super) damaged: Option<String>,
}

impl Known {
    /// Reads an aggregate.
    pub(super) async fn ask(engine: &Arc<Engine>, name: &Name) -> Result<Self, Refusal> {
        let asked = name.clone();
        let known = engine.ask(move |engine| Self::read(&*engine.store, &asked)).await?;
        known.ok_or_else(|| unknown(name))
    }

    /// None where it is unknown. Blocks.
    pub(super) fn read(store: &dyn Store, name: &Name) -> Result<Option<Self>, StoreError> {
        let Some(id) = store.number(name)? else { return Ok(None) };
        let (row, learnt) = (store.aggregate(name), store.learnt(id));
        let unreadable = match (&row, &learnt) {
            (Ok(None), _) => return Ok(None),
            (Err(_), _) => Some("its row"),
            (_, Err(_)) => Some("what it has learnt"),
            _ => None,
        };
        if unreadable.is_some() {
            // Where the store went away meanwhile, nothing is known.
            store.number(name)?;
        }
        let damaged = aside_since(&store.damaged(), name)
            .or_else(|| unreadable.map(|what| advice(name, &foreign(what))));
        let is_whole = learnt.is_ok();
        let state = learnt.ok().flatten();
        let row = row.ok().flatten().map(|row| Row { state, ..row });
        Ok(Some(Self { id, name: name.clone(), row, is_whole, damaged }))
    }

    fn refusal(&self) -> Refusal {
        refusal(&self.name, self.damaged.as_deref().unwrap_or("it cannot be read"))
    }

    /// Its row, with what it has learnt where that can be read.
    pub(super) fn row(self) -> Result<Row, Refusal> {
        let refusal = self.refusal();
        self.row.ok_or(refusal)
    }

    /// Its row with what it has learnt.
    pub(super) fn whole(self) -> Result<Row, Refusal> {
        if self.is_whole { self.row() } else { Err(self.refusal()) }
    }

    /// Its decisions as [`decisions`] has them, and what is damaged of the aggregate. Blocks.
    pub(super) fn decisions(
        self,
        store: &dyn Store,
        before: i64,
        limit: usize,
    ) -> Result<(Vec<Decided>, Option<String>), StoreError> {
        let (sound, damaged) = decisions(store, (self.id, &self.name), before, limit)?;
        Ok((sound, self.damaged.or(damaged)))
    }
}

/// Decisions about an aggregate and intervals that begin before a time, the latest first, up to the
/// first that cannot be read, if one cannot; and why. Blocks.
pub(super) fn decisions(
    store: &dyn Store,
    (id, name): (i64, &Name),
    before: i64,
    limit: usize,
) -> Result<(Vec<Decided>, Option<String>), StoreError> {
    if let Ok(all) = store.decisions(id, before, limit) {
        return Ok((all, None));
    }
    // One of these is damaged: so many before it are not.
    let (mut sound, mut readable, mut unreadable) = (Vec::new(), 0, limit);
    while unreadable - readable > 1 {
        let middle = readable.midpoint(unreadable);
        match store.decisions(id, before, middle) {
            Ok(all) => (sound, readable) = (all, middle),
            Err(_) => unreadable = middle,
        }
    }
    // Where the store went away meanwhile, nothing is known.
    store.number(name)?;
    Ok((sound, Some(format!("{}; it goes when it is too old", foreign("a decision about it")))))
}

pub(super) fn unknown(name: &Name) -> Refusal {
    Refusal::unknown(format!("no reports for {name}: check the name in the list of aggregates"))
}

/// Refuses what cannot be answered without what is damaged.
pub(super) fn refusal(name: &Name, why: &str) -> Refusal {
    Refusal::damaged(format!("{name} is damaged: {why}"))
}

/// Why an aggregate is set aside, if it is, and what to do.
pub(super) fn aside_since(aside: &[Damaged], name: &Name) -> Option<String> {
    let mut all = aside.iter();
    let of = all.find(|one| one.service == name.service && one.prefix == name.prefix)?;
    Some(advice(name, &of.reason))
}

/// An aggregate of a list whose row cannot be read.
pub(super) fn unreadable(aside: &[Damaged], one: Unreadable) -> UnreadableBody {
    let Unreadable { id, name, is_named } = one;
    let damaged = if is_named {
        aside_since(aside, &name).unwrap_or_else(|| advice(&name, &foreign("its row")))
    } else {
        // Nothing finds it by its name, and a report makes another aggregate of the right one.
        format!(
            "{}; put a copy of the store in its place, or delete row {id} of the table aggregates",
            foreign("its name")
        )
    };
    UnreadableBody { service: name.service, prefix: name.prefix, damaged }
}

fn foreign(what: &str) -> String {
    format!("{what} is nothing that the engine writes")
}

fn advice(Name { service, prefix }: &Name, reason: &str) -> String {
    format!("{reason}; `trimtab engine reset {service}/{prefix}` makes it learn anew")
}
