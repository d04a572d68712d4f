//! A future of noq that is polled until it is ready, and then begun anew.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A future that owns what it needs.
pub(crate) type Owned<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

/// At most one future of a kind. noq's futures have to be kept between polls: they hold the place
/// in the queue of those that wait.
pub(crate) struct Pending<T>(Option<Owned<T>>);

impl<T> Pending<T> {
    /// Polls the future, which `begin` makes where there is none.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        begin: impl FnOnce() -> Owned<T>,
    ) -> Poll<T> {
        let output = ready!(self.0.get_or_insert_with(begin).as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(output)
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.0.is_some()).finish()
    }
}
