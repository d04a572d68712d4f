//! The records of packets in flight, by the numbers that the stack tells.

use std::collections::BTreeMap;

use trimtab_cc::transport::Packet;
use trimtab_units::{Bytes, Time};

/// Records by number, time of sending, and the tracker's number. The numbers of QUIC's three number
/// spaces collide (RFC 9000 §12.3), and noq reports no spaces: during the handshake two packets of
/// one datagram may have the same number. Where a stack tells no numbers, the number is the time of
/// sending in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Packets(BTreeMap<(u64, Time, u64), Packet>);

impl Packets {
    /// A packet left.
    pub(crate) fn insert(&mut self, number: u64, packet: Packet) {
        self.0.insert((number, packet.sent_at(), packet.number()), packet);
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
        if left.is_zero() {
            return None;
        }
        let range = (from.as_nanos(), from, 0)..=(to.as_nanos(), to, u64::MAX);
        let (&key, packet) = self.0.range_mut(range).next()?;
        let part = packet.part(packet.size().min(*left));
        *packet = packet.part(packet.size() - part.size());
        if packet.size().is_zero() {
            self.0.remove(&key);
        }
        *left -= part.size();
        Some(part)
    }

    /// Takes the record with the lowest number, if its packet was sent before that time.
    pub(crate) fn take_stale(&mut self, before: Time) -> Option<Packet> {
        let first = self.0.first_entry()?;
        (first.get().sent_at() < before).then(|| first.remove())
    }

    fn take_first(&mut self, from: (u64, Time, u64), to: (u64, Time, u64)) -> Option<Packet> {
        let (&key, _) = self.0.range(from..=to).next()?;
        self.0.remove(&key)
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
