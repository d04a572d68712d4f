//! Connections that open and close, and watched ones that become active.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use trimtab_datapath::{Event, EventKind, FlowId, Totals};
use trimtab_units::{Bytes, Duration, Time};

use crate::error::Error;
use crate::layout::{EVENT_ACTIVE, EVENT_CLOSE, EVENT_OPEN, RawEvent};

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
    ring: RingBuffer<'static>,
    queue: Arc<Mutex<Vec<Event>>>,
}

impl Events {
    pub(crate) fn new(map: &MapHandle) -> Result<Self, Error> {
        let queue = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&queue);
        let mut builder = RingBufferBuilder::new();
        let what = "read the events of connections";
        builder
            .add(map, move |mut bytes| {
                if let Some(event) = RawEvent::read(&mut bytes).and_then(event) {
                    sink.lock().unwrap_or_else(PoisonError::into_inner).push(event);
                }
                0
            })
            .map_err(|e| Error::of(what, &e))?;
        let ring = builder.build().map_err(|e| Error::of(what, &e))?;
        Ok(Self { ring, queue })
    }

    /// Takes what has come, oldest first, without waiting.
    ///
    /// # Errors
    /// The kernel does not hand out the queue.
    pub fn take(&self) -> Result<Vec<Event>, Error> {
        self.ring.consume().map_err(|e| Error::of("read the events of connections", &e))?;
        Ok(std::mem::take(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Waits for an event for at most so long, and takes what has come, oldest first.
    ///
    /// # Errors
    /// The kernel does not hand out the queue.
    pub fn wait(&self, at_most: std::time::Duration) -> Result<Vec<Event>, Error> {
        match self.ring.poll(at_most) {
            Err(e) if e.kind() != libbpf_rs::ErrorKind::Interrupted => {
                Err(Error::of("wait for events of connections", &e))
            }
            _ => self.take(),
        }
    }

    /// A file descriptor that is readable when there are events, for `poll` and `epoll`. It lives as long as `self`.
    pub fn raw_fd(&self) -> RawFd {
        self.ring.epoll_fd()
    }
}
