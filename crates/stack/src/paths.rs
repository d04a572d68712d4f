//! The paths of a factory, which its handles reach as well.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use trimtab_units::Bytes;

use crate::config::Settings;
use crate::handle::Handle;
use crate::hints::Hints;
use crate::offer::{LastOffer, Offer};
use crate::path::Path;

/// Makes the paths of a connection: what the adapter's factory holds.
#[derive(Clone, Debug)]
pub struct Paths {
    shared: Arc<Shared>,
}

/// A path in the hands of a controller. Cheap to clone: stacks clone controllers, and all clones
/// share one path.
#[derive(Clone, Debug)]
pub struct SharedPath(Arc<Kept>);

/// A path, and what it offered last.
#[derive(Debug)]
pub(crate) struct Kept {
    path: Mutex<Path>,
    offer: LastOffer,
}

/// What a factory and its handles have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    /// What the next path begins with.
    next: Mutex<Next>,
    /// In the order in which they were made.
    paths: Mutex<Vec<Weak<Kept>>>,
    made: AtomicU64,
}

/// What the next path begins with.
#[derive(Clone, Debug)]
pub(crate) struct Next {
    pub(crate) settings: Settings,
    pub(crate) hints: Hints,
}

/// The data, also after a panic elsewhere: every change is complete when the lock is released.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Paths {
    pub(crate) fn new(settings: Settings) -> Self {
        let next = Next { settings, hints: Hints::default() };
        let shared =
            Shared { next: Mutex::new(next), paths: Mutex::default(), made: AtomicU64::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// A handle to all paths that were or will be made.
    pub fn handle(&self) -> Handle {
        Handle::new(self.shared.clone())
    }

    /// The next path, whose packets have at most this size (RFC 8899).
    pub fn build(&self, now: Instant, mtu: u16) -> SharedPath {
        let number = self.shared.made.fetch_add(1, Ordering::Relaxed);
        // Held until the path is listed: a change in between would miss it.
        let next = self.shared.next();
        let path = Mutex::new(Path::new(&next, number, now, mtu));
        let path = Arc::new(Kept { path, offer: LastOffer::default() });
        let mut paths = lock(&self.shared.paths);
        paths.retain(|path| path.strong_count() > 0);
        paths.push(Arc::downgrade(&path));
        SharedPath(path)
    }
}

impl SharedPath {
    /// The path, for one callback.
    pub fn lock(&self) -> MutexGuard<'_, Path> {
        self.0.lock()
    }

    /// What the path offers now. It takes the path's lock only after something has changed.
    pub fn offer(&self) -> Offer {
        let Kept { path, offer } = &*self.0;
        offer.get().unwrap_or_else(|| offer.look(&mut lock(path)))
    }

    /// [`Path::on_sent`], and a look at what the path offers from then on: a stack asks for that
    /// before the next packet.
    pub fn on_sent(&self, now: Instant, size: Bytes, number: u64) {
        let mut path = self.lock();
        path.on_sent(now, size, number);
        self.0.offer.look(&mut path);
    }
}

impl Kept {
    /// The path, which may change from now on.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Path> {
        let path = lock(&self.path);
        self.offer.forget();
        path
    }
}

impl Shared {
    /// What the next path begins with.
    pub(crate) fn next(&self) -> MutexGuard<'_, Next> {
        lock(&self.next)
    }

    /// Changes what is known of the application, and tells the paths.
    pub(crate) fn say<T>(&self, change: impl FnOnce(&mut Hints) -> T) -> T {
        let mut next = self.next();
        let result = change(&mut next.hints);
        self.paths().iter().for_each(|path| path.lock().set_hints(&next.hints));
        result
    }

    /// The paths whose controllers live.
    pub(crate) fn paths(&self) -> Vec<Arc<Kept>> {
        lock(&self.paths).iter().filter_map(Weak::upgrade).collect()
    }
}
