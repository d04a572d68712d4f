//! Connections that open and close.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use trimtab_units::{Bytes, Duration, Time};

use crate::error::Error;
use crate::flow::FlowId;
use crate::layout::{EVENT_CLOSE, EVENT_OPEN, RawEvent};

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It got the algorithm: it was established, or was given it while open.
    Open,
    /// It ended, or was given another algorithm. Its slot is free already.
    Close(Totals),
}

/// Sums since a connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes sent, retransmissions included.
    pub sent: Bytes,
    /// Bytes acknowledged.
    pub acked: Bytes,
    /// Bytes declared lost.
    pub lost: Bytes,
    /// Time in which the application did not hold the sender back.
    pub busy: Duration,
    /// Sum of all round-trip samples.
    pub rtt_sum: Duration,
    /// Their number.
    pub rtt_count: u64,
    /// Of the last acknowledgement that is in them, on `CLOCK_MONOTONIC`.
    pub last: Time,
}

/// An event of the kernel's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which connection.
    pub id: FlowId,
    /// Its slot, for [`Datapath::flow`](crate::Datapath::flow).
    pub slot: u32,
    /// When, on `CLOCK_MONOTONIC`.
    pub at: Time,
    /// What.
    pub kind: EventKind,
}

impl Event {
    fn of(raw: RawEvent) -> Option<Self> {
        let kind = match raw.kind {
            EVENT_OPEN => EventKind::Open,
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
        let at = Time::from_micros(raw.now_us);
        Some(Self { id: FlowId(raw.id), slot: raw.slot, at, kind })
    }
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
                if let Some(event) = RawEvent::read(&mut bytes).and_then(Event::of) {
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
