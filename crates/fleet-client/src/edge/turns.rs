//! An edge by hand: its holder takes the turns of its threads, by a clock of its own.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration as StdDuration, SystemTime, UNIX_EPOCH};

use trimtab_units::{Duration, Time};

use super::run::{Edge, Following, Reporting};
use super::state::StateError;
use crate::Client;

/// The time of day, since 1970.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> Time + Send + Sync>);

impl Clock {
    pub(crate) fn new(now: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> Time {
        (self.0)()
    }
}

/// This machine's.
impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Time::from_nanos(since.as_nanos() as u64)
        }))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}

/// An edge without threads, e.g. in a simulation. [`Edge::start`] runs the same turns in threads.
pub struct Turns {
    edge: Edge,
    reporting: Reporting,
    following: Following,
}

impl Turns {
    /// Reads what was kept in the folder, which is of this edge alone. `clock` says the time since
    /// 1970.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn start(
        client: Client,
        folder: &Path,
        clock: impl Fn() -> Time + Send + Sync + 'static,
    ) -> Result<Self, StateError> {
        let (edge, reporting, following) = Edge::parts(client, folder, Clock::new(clock))?;
        Ok(Self { edge, reporting, following })
    }

    /// The edge, as a host of connections has it.
    pub fn edge(&self) -> &Edge {
        &self.edge
    }

    /// The turn of the thread that reports, which takes one every 200 ms.
    pub fn report(&mut self) {
        self.reporting.turn();
    }

    /// The turn of the thread that follows configurations; returns how long it then rests.
    pub fn follow(&mut self) -> Duration {
        let rest: StdDuration = self.following.turn();
        Duration::from_nanos(rest.as_nanos() as u64)
    }
}
