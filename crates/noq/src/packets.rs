//! The records of packets in flight, by their numbers.

use std::collections::BTreeMap;

use trimtab_cc::transport::Packet;
use trimtab_units::Time;

/// Records by packet number, time of sending, and the tracker's number. The numbers of QUIC's three
/// number spaces collide (RFC 9000 §12.3), and noq reports no spaces: during the
/// handshake two packets of one datagram may have the same number.
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
