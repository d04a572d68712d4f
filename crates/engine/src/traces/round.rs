//! The span of a round of what closes intervals: one where something was decided, and none for each
//! of the many looks that find nothing.

use std::cell::{Cell, OnceCell};
use std::time::SystemTime;

use opentelemetry::trace::SpanKind;

use super::{Begin, Span, Traces};

/// A round, with a child for each time that something was decided, and one for each commit of that.
pub(crate) struct RoundSpan<'a> {
    traces: &'a Traces,
    began: SystemTime,
    span: OnceCell<Span>,
    decided: Cell<i64>,
    /// Since when what was decided waits for its commit, and of which service it is.
    waiting: Cell<Option<(SystemTime, &'a str)>>,
}

impl<'a> RoundSpan<'a> {
    pub(crate) fn new(traces: &'a Traces) -> Self {
        Self {
            traces,
            began: SystemTime::now(),
            span: OnceCell::new(),
            decided: Cell::new(0),
            waiting: Cell::new(None),
        }
    }

    /// A child of it, and of it alone.
    fn child(&self, name: &str, service: &str, at: Option<SystemTime>) -> Span {
        let round = self.span.get_or_init(|| {
            self.traces.begin(|| Begin { at: Some(self.began), ..Begin::own("closer.round") })
        });
        let span = self.traces.begin(|| Begin {
            name: name.to_owned(),
            kind: SpanKind::Internal,
            parent: round.context(),
            at,
            links: Vec::new(),
        });
        span.set("trimtab.service", service.to_owned());
        span
    }

    /// So many aggregates of a service are decided on from now until the answer is dropped.
    pub(crate) fn decide(&self, service: &str, count: usize) -> Span {
        // Of one transaction with what was decided before in it.
        self.waiting.set(None);
        self.decided.set(self.decided.get() + count as i64);
        let span = self.child("closer.decide", service, None);
        span.set("trimtab.decided", count as i64);
        span
    }

    /// What was decided on is now for the store to commit.
    pub(crate) fn decided(&self, service: &'a str) {
        self.waiting.set(Some((SystemTime::now(), service)));
    }

    /// A transaction is over, committed or not; what was decided in it, where something was, waits no
    /// longer.
    pub(crate) fn over(&self, is_committed: bool) {
        let Some((since, service)) = self.waiting.take() else { return };
        let commit = self.child("closer.commit", service, Some(since));
        if !is_committed {
            commit.fail("store");
        }
    }
}

impl Drop for RoundSpan<'_> {
    fn drop(&mut self) {
        if let Some(round) = self.span.get() {
            round.set("trimtab.decided", self.decided.get());
        }
    }
}
