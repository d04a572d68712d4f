//! The sender's memory of its packets: who is in flight, acknowledged, lost.

use std::collections::VecDeque;

use trimtab_cc::transport::{self, Fate};
use trimtab_units::{Bytes, Time};

use crate::streams::Chunk;

/// So many packets more than there are have room, at least.
const ROOM_MIN: usize = 16;

/// A sent packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The tracker's record; its number is that of the packet.
    pub(crate) record: transport::Packet,
    /// The stream of its data, and where in it they begin.
    pub(crate) stream: u32,
    pub(crate) offset: u64,
    /// Its data was sent again in another packet.
    pub(crate) resent: bool,
}

impl Packet {
    /// Its data; the rest of it is a header of this size.
    pub(crate) fn chunk(&self, header: Bytes) -> Chunk {
        let len = (self.record.size() - header).get() as u32;
        Chunk { stream: self.stream, len, offset: self.offset }
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        self.record.fate() == Fate::InFlight
    }

    pub(crate) fn is_acked(&self) -> bool {
        self.record.fate() == Fate::Acked
    }

    /// Whether it was declared lost, or a probe repeats its data.
    pub(crate) fn is_written_off(&self) -> bool {
        matches!(self.record.fate(), Fate::Lost | Fate::Discarded)
    }

    /// Whether it is written off, and its data waits to be sent again.
    pub(crate) fn waits(&self) -> bool {
        self.is_written_off() && !self.resent
    }
}

/// Packets by number, from the oldest that still matters.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<Packet>,
    /// Number of `packets[0]`.
    base: u64,
    /// No packet with a lower number is in flight.
    in_flight_from: u64,
}

impl Clone for SentPackets {
    /// In two blocks, and not packet by packet as a `VecDeque` does: they are most of a fork.
    fn clone(&self) -> Self {
        let (older, newer) = self.packets.as_slices();
        let mut packets = VecDeque::with_capacity(older.len() + newer.len());
        packets.extend(older);
        packets.extend(newer);
        Self { packets, ..*self }
    }
}

impl SentPackets {
    /// The number that the next packet gets.
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    /// Remembers a packet; its number is [`next_number`](Self::next_number) before the call.
    pub(crate) fn push(&mut self, packet: Packet) {
        self.packets.push_back(packet);
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Packet> {
        self.packets.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Packet> {
        self.packets.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// The lowest number that may be in flight.
    pub(crate) fn in_flight_from(&mut self) -> u64 {
        while self.get(self.in_flight_from).is_some_and(|p| !p.is_in_flight()) {
            self.in_flight_from += 1;
        }
        self.in_flight_from
    }

    /// A packet that had been written off is in flight after all.
    pub(crate) fn back_in_flight(&mut self, number: u64) {
        self.in_flight_from = self.in_flight_from.min(number);
    }

    /// Forgets the packets at the old end whose story is over. Lost ones whose data was sent again
    /// are remembered until `resent_before`, in case they arrive after all.
    pub(crate) fn forget(&mut self, resent_before: Time) {
        while let Some(packet) = self.packets.front() {
            let late = packet.resent && packet.record.sent_at() < resent_before;
            let over = packet.is_acked() || (packet.is_written_off() && late);
            if !over {
                break;
            }
            self.packets.pop_front();
            self.base += 1;
        }
        self.in_flight_from = self.in_flight_from.max(self.base);
        // Of the room that a large window once needed, the little that a small one uses would move
        // through all of it, and find every packet out of the processor's cache.
        let room = self.packets.len() + ROOM_MIN;
        if self.packets.capacity() > 8 * room {
            self.packets.shrink_to(2 * room);
        }
    }

    /// Numbers and packets from `from` on.
    pub(crate) fn iter_from(&self, from: u64) -> impl Iterator<Item = (u64, &Packet)> {
        let skip = usize::try_from(from.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let first = self.base + skip as u64;
        self.packets.iter().skip(skip).enumerate().map(move |(i, p)| (first + i as u64, p))
    }
}
