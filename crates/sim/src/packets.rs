//! The sender's memory of its packets: who is in flight, acknowledged, lost.

use std::collections::VecDeque;

use trimtab_units::{Bytes, Time};

use crate::streams::Chunk;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nobody knows yet.
    InFlight,
    /// It arrived.
    Acked,
    /// Declared lost; its data waits to be sent again.
    Lost,
    /// Declared lost, and its data was sent again in another packet.
    Resent,
}

/// A sent packet, with the snapshot of the connection that a delivery-rate sample needs
/// (draft-cheng-iccrg-delivery-rate-estimation §3.2).
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) sent_at: Time,
    pub(crate) delivered: Bytes,
    pub(crate) delivered_at: Time,
    pub(crate) first_sent_at: Time,
    pub(crate) lost: Bytes,
    pub(crate) tx_in_flight: Bytes,
    pub(crate) size: Bytes,
    pub(crate) chunk: Chunk,
    pub(crate) fate: Fate,
    pub(crate) app_limited: bool,
}

/// Packets by number, from the oldest that still matters.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<Packet>,
    /// Number of `packets[0]`.
    base: u64,
    /// No packet with a lower number is in flight.
    in_flight_from: u64,
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
        while self.get(self.in_flight_from).is_some_and(|p| p.fate != Fate::InFlight) {
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
            let over = match packet.fate {
                Fate::Acked => true,
                Fate::Resent => packet.sent_at < resent_before,
                Fate::InFlight | Fate::Lost => false,
            };
            if !over {
                break;
            }
            self.packets.pop_front();
            self.base += 1;
        }
        self.in_flight_from = self.in_flight_from.max(self.base);
    }

    /// Numbers and packets from `from` on.
    pub(crate) fn iter_from(&self, from: u64) -> impl Iterator<Item = (u64, &Packet)> {
        let skip = usize::try_from(from.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let first = self.base + skip as u64;
        self.packets.iter().skip(skip).enumerate().map(move |(i, p)| (first + i as u64, p))
    }
}
