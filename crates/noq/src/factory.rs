//! What noq asks for a controller of each path.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use noq_proto::congestion::{Controller, ControllerFactory};
use trimtab_qoe::Factors;

use crate::config::Config;
use crate::controller::PathController;
use crate::handle::Handle;
use crate::path::Path;

/// Makes the congestion controllers of a connection's paths ([`Config::connection`]).
///
/// noq has one controller per path. A connection that moves to another address gets a fresh one
/// (RFC 9000 §9.4), which begins with the scheme and the factors that were set last.
#[derive(Debug)]
pub struct TrimtabFactory {
    shared: Arc<Shared>,
}

/// What a factory and its handles have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    /// What the next path begins with.
    next: Mutex<Next>,
    /// In the order in which they were made.
    paths: Mutex<Vec<Weak<Mutex<Path>>>>,
    made: AtomicU64,
}

/// What the next path begins with.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub(crate) config: Config,
    pub(crate) factors: Factors,
}

/// The data, also after a panic elsewhere: every change is complete when the lock is released.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TrimtabFactory {
    pub(crate) fn new(config: Config) -> Self {
        let next = Next { config, factors: Factors::new() };
        let shared =
            Shared { next: Mutex::new(next), paths: Mutex::default(), made: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// A handle to all paths that this factory made or will make.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared.clone())
    }
}

impl Shared {
    /// What the next path begins with.
    pub(crate) fn next(&self) -> MutexGuard<'_, Next> {
        lock(&self.next)
    }

    /// The paths whose controllers live.
    pub(crate) fn paths(&self) -> Vec<Arc<Mutex<Path>>> {
        lock(&self.paths).iter().filter_map(Weak::upgrade).collect()
    }
}

impl ControllerFactory for TrimtabFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let number = self.shared.made.fetch_add(1, Ordering::Relaxed);
        // Held until the path is listed: a change in between would miss it.
        let next = self.shared.next();
        let path = Arc::new(Mutex::new(Path::new(&next, number, now, current_mtu)));
        let mut paths = lock(&self.shared.paths);
        paths.retain(|path| path.strong_count() > 0);
        paths.push(Arc::downgrade(&path));
        Box::new(PathController::new(path))
    }
}
