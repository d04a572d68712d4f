//! What a simulation does to the file: cuts a write off, takes the file away, or takes its room.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Error, ffi};

use super::Sqlite;

/// Where the next write is cut off. From then on the file is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// All was done, and nothing of it stays.
    Before,
    /// All of it stays, and nobody gets to know.
    After,
}

#[derive(Default)]
struct State {
    cut: Option<Cut>,
    is_away: bool,
}

/// What is wrong with the file now.
#[derive(Default)]
pub(super) struct Faults(Mutex<State>);

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file is there.
    pub(super) fn begin(&self) -> rusqlite::Result<()> {
        if self.state().is_away { Err(gone()) } else { Ok(()) }
    }

    /// Whether a write gets past this point.
    pub(super) fn commit(&self, at: Cut) -> rusqlite::Result<()> {
        let mut state = self.state();
        if state.cut.is_none_or(|cut| cut != at) {
            return Ok(());
        }
        *state = State { cut: None, is_away: true };
        Err(gone())
    }
}

fn gone() -> Error {
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR), Some("the disk is gone".to_owned()))
}

impl Sqlite {
    /// Cuts the next write off; without a place the file is away at once.
    pub(crate) fn cut(&self, at: Option<Cut>) {
        *self.faults.state() = State { cut: at, is_away: at.is_none() };
    }

    /// The file is there again.
    pub(crate) fn mend(&self) {
        *self.faults.state() = State::default();
    }

    /// Whether a write was cut off, or the file was taken away.
    pub(crate) fn is_away(&self) -> bool {
        self.faults.state().is_away
    }

    /// Takes the room that the file does not have yet, or gives it back.
    pub(crate) fn fill(&self, is_full: bool) {
        // SQLite raises the first to what the file has.
        let pages: u32 = if is_full { 1 } else { 0xffff_fffe };
        let writer = self.writer();
        writer
            .db
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
            .expect("SQLite takes it");
    }

    /// Leaves it to the system when a commit gets to the disk: a simulation has no loss of power.
    pub(crate) fn forgo_sync(&self) {
        self.writer().db.pragma_update(None, "synchronous", "OFF").expect("SQLite takes it");
    }
}
