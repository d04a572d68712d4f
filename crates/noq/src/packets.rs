//! The records of packets in flight, by their numbers.

use std::collections::BTreeMap;

use trimtab_cc::transport::Packet;
use trimtab_units::Time;

/// Records by packet number and time of sending. The numbers of QUIC's three number spaces collide
/// (RFC 9000 §12.3), and noq does not tell the spaces apart.
#[derive(Debug, Default)]
pub(crate) struct Packets(BTreeMap<(u64, Time), Packet>);

impl Packets {
    /// A packet left.
    pub(crate) fn insert(&mut self, number: u64, packet: Packet) {
        self.0.insert((number, packet.sent_at()), packet);
    }

    /// Takes the record of a packet that was acknowledged.
    pub(crate) fn take(&mut self, number: u64, sent_at: Time) -> Option<Packet> {
        self.0.remove(&(number, sent_at))
    }

    /// Takes the record of a packet that was lost: of that number, the oldest.
    pub(crate) fn take_oldest(&mut self, number: u64) -> Option<Packet> {
        let all = (number, Time::ZERO)..=(number, Time::MAX);
        let (&key, _) = self.0.range(all).next()?;
        self.0.remove(&key)
    }

    /// Takes the record with the lowest number, if its packet was sent before that time.
    pub(crate) fn take_stale(&mut self, before: Time) -> Option<Packet> {
        let (&key, packet) = self.0.first_key_value()?;
        if packet.sent_at() >= before {
            return None;
        }
        self.0.remove(&key)
    }
}
