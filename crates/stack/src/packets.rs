//! The records of packets in flight, by the numbers that the stack tells.

use std::collections::VecDeque;

use trimtab_cc::transport::Packet;
use trimtab_units::{Bytes, Time};

/// Packet number, time of sending, and the tracker's number. The numbers of QUIC's three number
/// spaces collide (RFC 9000 §12.3), and noq reports no spaces: during the handshake two packets of
/// one datagram may have the same number. Where a stack tells no numbers, the number is the time of
/// sending in nanoseconds.
type Key = (u64, Time, u64);

/// Records by their keys, in order. Packets leave in the order of their numbers, nearly always, and
/// most are acknowledged so: a record goes to the end, and is taken from near the beginning.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    /// The first one is there; of others that were taken, the key remains until it is the first.
    records: VecDeque<(Key, Option<Packet>)>,
}

/// Takes a record, or a part of it, and its size off `left`. `None` where nothing is left to take.
fn take_part(record: &mut Option<Packet>, left: &mut Bytes) -> Option<Packet> {
    let packet = record.as_mut().filter(|_| !left.is_zero())?;
    let part = packet.part(packet.size().min(*left));
    *packet = packet.part(packet.size() - part.size());
    if packet.size().is_zero() {
        *record = None;
    }
    *left -= part.size();
    Some(part)
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

    /// Takes the oldest record of those sent from one time to another, both included, or a part of it,
    /// and its size off `left`. `None` once nothing is left to take. The number is the time.
    pub(crate) fn take_bytes(&mut self, from: Time, to: Time, left: &mut Bytes) -> Option<Packet> {
        let (from, to) = ((from.as_nanos(), from, 0), (to.as_nanos(), to, u64::MAX));
        let record = self.range(from, to).find(|record| record.is_some())?;
        let part = take_part(record, left);
        self.trim();
        part
    }

    /// Takes the record with the highest number up to this one, or a part of it, and its size off
    /// `left`. `None` once nothing is left to take.
    pub(crate) fn take_down(&mut self, number: u64, left: &mut Bytes) -> Option<Packet> {
        let end = self.records.partition_point(|(key, _)| key.0 <= number);
        let mut down = self.records.range_mut(..end).rev().map(|(_, record)| record);
        let record = down.find(|record| record.is_some());
        let part = take_part(record?, left);
        self.trim();
        part
    }

    /// The same with the lowest number.
    pub(crate) fn take_up(&mut self, left: &mut Bytes) -> Option<Packet> {
        let part = take_part(&mut self.records.front_mut()?.1, left);
        self.trim();
        part
    }

    /// Takes the record with the lowest number, if its packet was sent before that time.
    pub(crate) fn take_stale(&mut self, before: Time) -> Option<Packet> {
        let (_, first) = self.records.front_mut()?;
        let taken = first.take_if(|packet| packet.sent_at() < before);
        self.trim();
        taken
    }

    /// All records that are there, in order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Packet> {
        self.records.iter_mut().filter_map(|(_, record)| record.as_mut())
    }

    fn take_first(&mut self, from: Key, to: Key) -> Option<Packet> {
        // Nearly always it is the very first. Every record before another was looked at then.
        if self.records.front().is_some_and(|(key, _)| (from..=to).contains(key)) {
            return self
                .records
                .pop_front()
                .and_then(|(_, record)| record)
                .inspect(|_| self.trim());
        }
        let taken = self.range(from, to).find_map(Option::take);
        self.trim();
        taken
    }

    /// The records of keys from one to another, both included.
    fn range(&mut self, from: Key, to: Key) -> impl Iterator<Item = &mut Option<Packet>> {
        let start = self.records.partition_point(|(key, _)| *key < from);
        let records = self.records.range_mut(start..).take_while(move |(key, _)| *key <= to);
        records.map(|(_, record)| record)
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
    use super::*;
    use trimtab_cc::transport::Tracker;

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
    fn bytes_come_off_the_oldest_records_of_their_time() {
        let (mut packets, mut tracker) = (Packets::default(), Tracker::new());
        for (ms, bytes) in [(1, 100), (1, 200), (2, 300)] {
            let at = Time::from_millis(ms);
            packets.insert(at.as_nanos(), sent(&mut tracker, at, bytes));
        }
        let mut take = |from, to, bytes| {
            let mut left = Bytes::new(bytes);
            let mut taken = Vec::new();
            let [from, to] = [from, to].map(Time::from_millis);
            while let Some(packet) = packets.take_bytes(from, to, &mut left) {
                taken.push((packet.number(), packet.size().get()));
            }
            (taken, left.get())
        };
        assert_eq!(take(1, 1, 150), (vec![(0, 100), (1, 50)], 0));
        assert_eq!(take(2, 2, 100), (vec![(2, 100)], 0));
        assert_eq!(take(0, 2, 250), (vec![(1, 150), (2, 100)], 0));
        assert_eq!(take(0, 1, 70), (vec![], 70));
        assert_eq!(take(0, 2, 120), (vec![(2, 100)], 20));
    }

    #[test]
    fn sums_come_off_the_newest_records_and_then_older_ones() {
        let (mut packets, mut tracker) = (Packets::default(), Tracker::new());
        for number in 0..6 {
            packets.insert(number, sent(&mut tracker, Time::from_millis(number), 100));
        }
        let mut left = Bytes::new(150);
        let taken = [(); 3].map(|()| packets.take_down(3, &mut left));
        assert_eq!(
            taken.map(|part| part.map(|p| (p.number(), p.size().get()))),
            [Some((3, 100)), Some((2, 50)), None]
        );
        let mut left = Bytes::new(120);
        let taken = [(); 3].map(|()| packets.take_up(&mut left));
        assert_eq!(taken.map(|part| part.map(|p| p.number())), [Some(0), Some(1), None]);
        // Number 3 was taken before, so 2 stands for it.
        let mut left = Bytes::new(50);
        assert_eq!(packets.take_down(3, &mut left).map(|part| part.number()), Some(2));
        assert!(packets.take_down(5, &mut left).is_none(), "nothing is left to take");
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
