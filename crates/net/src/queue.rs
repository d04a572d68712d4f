//! The packets in a link: those that wait for it, and those that it has sent.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

use trimtab_units::{Bytes, Time};

use crate::codel::CoDel;
use crate::config::QueueConfig;
use crate::link::{Delivery, Packet};

/// A first-in first-out queue with limits, and CoDel at its head if asked for. A packet that leaves
/// it for the far end keeps its place in memory until it arrives.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    /// Those under way to the far end by their arrival there, then those that wait.
    packets: VecDeque<Delivery<T>>,
    under_way: usize,
    /// What waits, with the overhead of the link for each packet.
    bytes: Bytes,
    overhead: Bytes,
    bytes_max: Bytes,
    packets_max: usize,
    codel: Option<CoDel>,
}

impl<T> Queue<T> {
    pub(crate) fn new(config: &QueueConfig, overhead: Bytes) -> Self {
        let (bytes, packets, codel) = match *config {
            QueueConfig::DropTail { bytes, packets } => (bytes, packets, None),
            QueueConfig::CoDel { bytes, packets, target, interval } => {
                (bytes, packets, Some(CoDel::new(target, interval)))
            }
        };
        Self {
            packets: VecDeque::new(),
            under_way: 0,
            bytes: Bytes::ZERO,
            overhead,
            bytes_max: bytes.unwrap_or(Bytes::MAX),
            packets_max: packets.map_or(usize::MAX, |packets| packets as usize),
            codel,
        }
    }

    pub(crate) fn has_room(&self, size: Bytes) -> bool {
        self.len() < self.packets_max && self.bytes + size <= self.bytes_max
    }

    /// A packet comes in; when it leaves and arrives is not known yet.
    #[inline]
    pub(crate) fn push(&mut self, now: Time, packet: Packet<T>, marked: bool) {
        self.bytes += packet.size + self.overhead;
        let (at, departed_at) = (Time::MAX, Time::MAX);
        self.packets.push_back(Delivery { packet, at, enqueued_at: now, departed_at, marked });
    }

    /// The packet that waits at the head: since when, and its size with the overhead.
    #[inline]
    pub(crate) fn head(&self) -> Option<(Time, Bytes)> {
        let head = self.packets.get(self.under_way)?;
        Some((head.enqueued_at, head.packet.size + self.overhead))
    }

    /// CoDel discards what it does not want to send at `now`; `drop` gets each packet, and its size
    /// with the overhead.
    #[inline]
    pub(crate) fn discard(&mut self, now: Time, mut drop: impl FnMut(Packet<T>, Bytes)) {
        let Some(codel) = &mut self.codel else { return };
        let mut waiting = self.packets.range(self.under_way..);
        let mut behind = self.bytes;
        let drops = codel.drops(now, || {
            let head = waiting.next()?;
            behind -= head.packet.size + self.overhead;
            Some((head.enqueued_at, behind))
        });
        for _ in 0..drops {
            let Some(head) = self.packets.remove(self.under_way) else { break };
            let size = head.packet.size + self.overhead;
            self.bytes -= size;
            drop(head.packet, size);
        }
    }

    /// The packet at the head leaves, and arrives at `at`: in order of arrival it is behind those
    /// that left before, except for packets that reordering holds back, and these are few.
    #[inline]
    pub(crate) fn depart(&mut self, departed_at: Time, at: Time) {
        let mut place = self.under_way;
        let Some(head) = self.packets.get_mut(place) else { return };
        (head.departed_at, head.at) = (departed_at, at);
        self.bytes -= head.packet.size + self.overhead;
        self.under_way += 1;
        while place > 0 && self.packets[place - 1].at > at {
            self.packets.swap(place - 1, place);
            place -= 1;
        }
    }

    /// When the next packet under way arrives; [`Time::MAX`] for never.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Time {
        // One that waits has no time yet.
        self.packets.front().map_or(Time::MAX, |first| first.at)
    }

    /// Takes the next packet under way.
    #[inline]
    pub(crate) fn arrive(&mut self) -> Option<Delivery<T>> {
        self.under_way = self.under_way.checked_sub(1)?;
        self.packets.pop_front()
    }

    /// The packets under way, in order of their arrival.
    pub(crate) fn under_way(&self) -> Iter<'_, Delivery<T>> {
        self.packets.range(..self.under_way)
    }

    /// The packet under way that arrives last.
    pub(crate) fn last_under_way(&mut self) -> Option<&mut Delivery<T>> {
        self.packets.get_mut(self.under_way.checked_sub(1)?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.packets.len() - self.under_way
    }

    /// Packets under way.
    pub(crate) fn departed(&self) -> usize {
        self.under_way
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn drops_at_head(&self) -> bool {
        self.codel.is_some()
    }
}
