//! The records of packets in flight, by their numbers.

use std::collections::VecDeque;

use trimtab_cc::transport::Packet;
use trimtab_units::Time;

/// Packet number, time of sending, and the tracker's number. The numbers of QUIC's three number
/// spaces collide (RFC 9000 §12.3), and noq reports no spaces: during the handshake two packets of
/// one datagram may have the same number.
type Key = (u64, Time, u64);

/// Records by their keys, in order. Packets leave in the order of their numbers, nearly always, and
/// most are acknowledged so: a record goes to the end, and is taken from near the beginning.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    /// The first one is there; of others that were taken, the key remains until it is the first.
    records: VecDeque<(Key, Option<Packet>)>,
}

impl Packets {
    /// A packet left.
    pub(crate) fn insert(&mut self, number: u64, packet: Packet) {
        let key = (number, packet.sent_at(), packet.number());
        let place = match self.records.back() {
            Some((last, _)) if *last > key => self.records.partition_point(|(of, _)| *of < key),
            _ => self.records.len(),
        };
        self.records.insert(place, (key, Some(packet)));
    }

    /// Takes the record of a packet that was acknowledged: of those alike, the oldest.
    pub(crate) fn take(&mut self, number: u64, sent_at: Time) -> Option<Packet> {
        self.take_first((number, sent_at, 0), (number, sent_at, u64::MAX))
    }

    /// Takes the record of a packet that was lost: of that number, the oldest.
    pub(crate) fn take_oldest(&mut self, number: u64) -> Option<Packet> {
        self.take_first((number, Time::ZERO, 0), (number, Time::MAX, u64::MAX))
    }

    /// Takes the record with the lowest number, if its packet was sent before that time.
    pub(crate) fn take_stale(&mut self, before: Time) -> Option<Packet> {
        let (_, first) = self.records.front_mut()?;
        let taken = first.take_if(|packet| packet.sent_at() < before);
        self.trim();
        taken
    }

    fn take_first(&mut self, from: Key, to: Key) -> Option<Packet> {
        let start = self.records.partition_point(|(key, _)| *key < from);
        let mut alike = self.records.range_mut(start..).take_while(|(key, _)| *key <= to);
        let taken = alike.find_map(|(_, record)| record.take());
        self.trim();
        taken
    }

    /// Has the first record be there.
    fn trim(&mut self) {
        while let Some((_, None)) = self.records.front() {
            self.records.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use trimtab_cc::transport::Tracker;
    use trimtab_units::Bytes;

    use super::*;

    fn sent(tracker: &mut Tracker, at: Time, bytes: u64) -> Packet {
        tracker.on_sent(at, Bytes::new(bytes)).0
    }

    #[test]
    fn packets_of_the_same_number_and_time_are_kept_apart() {
        let (mut packets, mut tracker) = (Packets::default(), Tracker::new());
        let [early, late] = [1, 2].map(Time::from_millis);
        packets.insert(7, sent(&mut tracker, early, 100));
        packets.insert(7, sent(&mut tracker, early, 200));
        packets.insert(7, sent(&mut tracker, late, 300));
        assert!(packets.take(6, early).is_none() && packets.take(7, Time::ZERO).is_none());
        let sizes = [packets.take(7, late), packets.take(7, early), packets.take_oldest(7)]
            .map(|packet| packet.unwrap().size().get());
        assert_eq!(sizes, [300, 100, 200]);
        assert!(packets.take_oldest(7).is_none());
    }

    /// As a map by key would do, whatever the order.
    #[test]
    fn records_are_found_in_any_order() {
        let (mut packets, mut tracker) = (Packets::default(), Tracker::new());
        for number in [5, 3, 4, 9, 0, 7] {
            packets.insert(number, sent(&mut tracker, Time::from_millis(number), 100 + number));
        }
        for number in [4, 0, 9, 3, 8, 7, 5, 5] {
            let size = packets.take_oldest(number).map(|packet| packet.size().get());
            let there = [5, 3, 4, 9, 0, 7].contains(&number) && size.is_some();
            assert_eq!(size, there.then_some(100 + number));
        }
        assert!(packets.records.is_empty(), "nothing of them stays");
    }

    #[test]
    fn stale_records_go_in_the_order_of_numbers() {
        let (mut packets, mut tracker) = (Packets::default(), Tracker::new());
        for number in 0..3 {
            packets.insert(number, sent(&mut tracker, Time::from_millis(number), 100));
        }
        let before = Time::from_millis(2);
        let taken = [(); 3].map(|()| packets.take_stale(before).map(|packet| packet.number()));
        assert_eq!(taken, [Some(0), Some(1), None]);
    }
}
