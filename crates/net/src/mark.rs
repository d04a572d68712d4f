//! Congestion marks (ECN, RFC 3168): what a link says to a sender without dropping anything.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_units::Bytes;

use crate::seed::{Purpose, generator};

/// Which packets the link marks with "congestion experienced" (CE). Only packets of a transport that understands
/// marks ([`Link::send_capable`](crate::Link::send_capable)) get one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum MarkConfig {
    /// None: the link drops what does not fit.
    #[default]
    None,
    /// A packet that finds so many bytes waiting, or more. At that length a packet of a transport that does not
    /// understand marks is dropped (RFC 3168 §5: a mark stands where a packet would be dropped).
    Above(Bytes),
    /// Each packet with this probability, whatever waits: for tests of what a sender makes of marks. Below 0 counts
    /// as 0, above 1 as 1. A packet that cannot be marked passes.
    Random(f64),
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// The state of a marker.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    config: MarkConfig,
    random: Pcg64Mcg,
}

impl Marker {
    pub(crate) fn new(config: MarkConfig, seed: u64) -> Self {
        Self { config, random: generator(seed, Purpose::Mark) }
    }

    /// Draws from another seed from now on.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.random = generator(seed, Purpose::Mark);
    }

    /// The verdict on a packet that finds so many bytes waiting.
    pub(crate) fn judge(&mut self, waiting: Bytes, capable: bool) -> Verdict {
        let congested = match self.config {
            MarkConfig::None => false,
            MarkConfig::Above(threshold) => waiting >= threshold,
            MarkConfig::Random(probability) => capable && self.random.random::<f64>() < probability,
        };
        match (congested, capable) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, DropCause, Event, Link, LinkConfig, Packet, QueueConfig};
    use trimtab_units::{Rate, Time};

    const PACKET: Bytes = Bytes::new(1500);

    /// Which of the packets that are sent at once come out, and which with a mark.
    fn burst(config: MarkConfig, packets: usize, capable: bool) -> (Vec<bool>, Vec<DropCause>) {
        let config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
            .queue(QueueConfig::drop_tail_packets(10))
            .mark(config);
        let mut link = Link::new(&config, 1);
        let mut dropped = Vec::new();
        for payload in 0..packets {
            let packet = Packet { size: PACKET, payload };
            let sent = if capable {
                link.send_capable(Time::ZERO, packet)
            } else {
                link.send(Time::ZERO, packet)
            };
            dropped.extend(sent.err().map(|dropped| dropped.cause));
        }
        let mut marked = Vec::new();
        while let Some(Event::Delivered(delivery)) = link.poll(Time::from_millis(100)) {
            marked.push(delivery.marked);
        }
        assert_eq!(link.stats().marked.packets, marked.iter().filter(|m| **m).count() as u64);
        (marked, dropped)
    }

    /// The first packet of a burst is in transmission, so packet `n` finds `n - 1` waiting.
    #[test]
    fn above_the_threshold_packets_are_marked_and_not_dropped() {
        let (marked, dropped) = burst(MarkConfig::Above(PACKET * 4), 8, true);
        assert_eq!(marked, [false, false, false, false, false, true, true, true]);
        assert_eq!(dropped, []);
        // A queue that is full drops all the same.
        assert_eq!(burst(MarkConfig::Above(PACKET * 4), 12, true).1, [DropCause::QueueFull]);
    }

    #[test]
    fn who_does_not_understand_marks_is_dropped_there() {
        let (marked, dropped) = burst(MarkConfig::Above(PACKET * 4), 8, false);
        assert_eq!(marked, [false; 5]);
        assert_eq!(dropped, [DropCause::Aqm; 3]);
        assert_eq!(burst(MarkConfig::Random(1.0), 8, false), (vec![false; 8], vec![]));
    }

    #[test]
    fn random_marks_have_their_rate() {
        let mut marker = Marker::new(MarkConfig::Random(0.1), 5);
        let marks = (0..100_000).filter(|_| marker.judge(PACKET, true) == Verdict::Mark).count();
        // Standard deviation: sqrt(0.1 * 0.9 * 100000) = 95.
        assert!((9_600..10_400).contains(&marks), "{marks}");
    }
}
