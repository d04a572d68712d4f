//! The packets that wait for the link.

use std::collections::VecDeque;

use trimtab_units::{Bytes, Time};

use crate::codel::{CoDel, Waited};
use crate::config::QueueConfig;
use crate::link::Packet;

/// A packet in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) packet: Packet<T>,
    /// Its size with the overhead of the link.
    pub(crate) size: Bytes,
    pub(crate) queued_at: Time,
    /// With "congestion experienced".
    pub(crate) marked: bool,
}

impl<T> Waited for Waiting<T> {
    fn queued_at(&self) -> Time {
        self.queued_at
    }
}

/// A first-in first-out queue with limits, and CoDel at its head if asked for.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    bytes: Bytes,
    bytes_max: Bytes,
    packets_max: usize,
    codel: Option<CoDel>,
}

impl<T> Queue<T> {
    pub(crate) fn new(config: &QueueConfig) -> Self {
        let (bytes, packets, codel) = match *config {
            QueueConfig::DropTail { bytes, packets } => (bytes, packets, None),
            QueueConfig::CoDel { bytes, packets, target, interval } => {
                (bytes, packets, Some(CoDel::new(target, interval)))
            }
        };
        Self {
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            bytes_max: bytes.unwrap_or(Bytes::MAX),
            packets_max: packets.map_or(usize::MAX, |packets| packets as usize),
            codel,
        }
    }

    pub(crate) fn has_room(&self, size: Bytes) -> bool {
        self.waiting.len() < self.packets_max && self.bytes + size <= self.bytes_max
    }

    pub(crate) fn push(&mut self, waiting: Waiting<T>) {
        self.bytes += waiting.size;
        self.waiting.push_back(waiting);
    }

    pub(crate) fn head(&self) -> Option<&Waiting<T>> {
        self.waiting.front()
    }

    /// Takes the packet to send at `now`; `drop` gets those that CoDel discards before it.
    #[inline]
    pub(crate) fn take(&mut self, now: Time, drop: impl FnMut(Waiting<T>)) -> Option<Waiting<T>> {
        let Self { waiting, bytes, codel, .. } = self;
        let mut pop = || {
            let head = waiting.pop_front()?;
            *bytes -= head.size;
            Some((head, *bytes))
        };
        match codel {
            None => pop().map(|(head, _)| head),
            Some(codel) => codel.dequeue(now, pop, drop),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn drops_at_head(&self) -> bool {
        self.codel.is_some()
    }
}
