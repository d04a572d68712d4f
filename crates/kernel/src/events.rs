//! Connections that open and close, and watched ones that become active.

use std::os::fd::{AsFd as _, RawFd};
use std::sync::{Arc, Mutex, PoisonError};

use trimtab_datapath::{Event, EventKind, FlowId, Totals};
use trimtab_units::{Bytes, Duration, Time};

use crate::error::Error;
use crate::layout::{EVENT_ACTIVE, EVENT_CLOSE, EVENT_OPEN, RawEvent};
use crate::mapping::{Map, Ring};

const READ: &str = "read the events of connections";

/// From what the kernel's side wrote; `None` of a kind that this version does not know.
fn event(raw: RawEvent) -> Option<Event> {
    let kind = match raw.kind {
        EVENT_OPEN => EventKind::Open,
        EVENT_ACTIVE => EventKind::Active,
        EVENT_CLOSE => EventKind::Close(Totals {
            sent: Bytes::new(raw.sent_bytes),
            acked: Bytes::new(raw.acked_bytes),
            lost: Bytes::new(raw.lost_bytes),
            busy: Duration::from_micros(raw.busy_us),
            rtt_sum: Duration::from_micros(raw.rtt_sum_us),
            rtt_count: raw.rtt_count,
            last: Time::from_micros(raw.last_us),
        }),
        _ => return None,
    };
    Some(Event { id: FlowId(raw.id), slot: raw.slot, at: Time::from_micros(raw.now_us), kind })
}

/// The queue of events. It holds some 11,900; what finds no room is counted
/// ([`Stats::lost_events`](crate::Stats::lost_events)), so a reader that was away looks through
/// [`Datapath::flows`](crate::Datapath::flows) as well. One reader at a time.
#[derive(Debug)]
pub struct Events {
    ring: Ring,
    queue: Arc<Mutex<Vec<Event>>>,
}

impl Events {
    pub(crate) fn new(map: &Map) -> Result<Self, Error> {
        let fail = |e: std::io::Error| Error::Kernel { what: READ, reason: e.to_string() };
        let queue = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&queue);
        let hear = move |mut bytes: &[u8]| {
            if let Some(event) = RawEvent::read(&mut bytes).and_then(event) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            }
        };
        let map = map.as_fd().try_clone_to_owned().map_err(fail)?;
        Ok(Self { ring: Ring::new(map, Box::new(hear)).map_err(fail)?, queue })
    }

    /// Takes what has come, oldest first, without waiting.
    ///
    /// # Errors
    /// The kernel does not hand out the queue.
    pub fn take(&self) -> Result<Vec<Event>, Error> {
        self.hear(None)
    }

    /// Waits for an event for at most so long, and takes what has come, oldest first.
    ///
    /// # Errors
    /// The kernel does not hand out the queue.
    pub fn wait(&self, at_most: std::time::Duration) -> Result<Vec<Event>, Error> {
        self.hear(Some(at_most))
    }

    fn hear(&self, at_most: Option<std::time::Duration>) -> Result<Vec<Event>, Error> {
        let fail = |e: rustix::io::Errno| Error::Kernel { what: READ, reason: e.to_string() };
        self.ring.hear(at_most).map_err(fail)?;
        if at_most.is_some() {
            // The ring waits on one file, and hands out what came before the wait as well.
            self.ring.hear(None).map_err(fail)?;
        }
        Ok(std::mem::take(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// A file descriptor that is readable when there are events, for `poll` and `epoll`. It lives as long as `self`.
    pub fn raw_fd(&self) -> RawFd {
        self.ring.epoll()
    }
}
