//! What passes the link, measured packet by packet: round-trip times as the sender sees them, waits
//! in the queue, losses, and what was sent twice. It works for any congestion control, since it
//! looks at headers only.

use std::collections::VecDeque;

use trimtab_emu::{Direction, Fate, Passage};
use trimtab_sim::Histogram;
use trimtab_units::{Bytes, Duration, Time};

use crate::segment::Segment;

/// What was measured of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowWatch {
    /// Data packets that the server sent, and how many of them carried what had been sent before.
    pub(crate) packets: u64,
    pub(crate) retransmits: u64,
    /// Data packets that the link dropped.
    pub(crate) dropped: u64,
    /// From when a packet came to the link to when the server had its acknowledgement: one sample for each
    /// acknowledgement of a later packet than all before, as the simulator has it.
    pub(crate) rtt: Histogram,
    /// Waits of data packets in the queue.
    pub(crate) queue: Histogram,
    /// Data that is not acknowledged, by sequence number.
    outstanding: VecDeque<Sent>,
    numbers: Numbers,
    /// End of the data that was sent.
    end: u64,
    /// End of the latest data that gave a sample.
    sampled: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    at: Time,
    /// Sent once: then its acknowledgement is for that packet.
    once: bool,
    /// Acknowledged already, beyond a gap.
    beyond: bool,
}

/// Sequence numbers without wrapping.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    last: Option<u32>,
    unwrapped: u64,
}

impl Numbers {
    /// The number of which only the lower 32 bits are known: the one nearest to the latest.
    fn of(&self, number: u32) -> u64 {
        let last = self.last.unwrap_or(number);
        self.unwrapped.saturating_add_signed(i64::from(number.wrapping_sub(last).cast_signed()))
    }

    fn advance(&mut self, number: u32) -> u64 {
        // Far from zero, so that what came before the first is above zero, too.
        const FIRST: u64 = 1 << 32;
        match self.last {
            None => (self.last, self.unwrapped) = (Some(number), FIRST),
            Some(_) => {
                let next = self.of(number);
                if next > self.unwrapped {
                    (self.last, self.unwrapped) = (Some(number), next);
                }
            }
        }
        self.of(number)
    }
}

/// A sum of durations and their number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    total: Duration,
    count: u64,
}

impl Sum {
    fn add(&mut self, value: Duration) {
        self.total += value;
        self.count += 1;
    }

    /// The mean in milliseconds of what was added since the last call; NaN when nothing was.
    pub(crate) fn take_mean_ms(&mut self) -> f64 {
        let Self { total, count } = std::mem::take(self);
        if count == 0 { f64::NAN } else { total.as_millis_f64() / count as f64 }
    }
}

/// The flows of a run as the link sees them.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The client's port of each flow, which names it.
    ports: Vec<u16>,
    flows: Vec<FlowWatch>,
    /// What left the queue to the clients.
    pub(crate) carried: Bytes,
    /// Round-trip times of the first flow, and waits of all, since last asked.
    pub(crate) recent_rtt: Sum,
    pub(crate) recent_queue: Sum,
}

impl Watch {
    /// Watches the flows whose clients have these ports.
    pub(crate) fn new(ports: Vec<u16>) -> Self {
        let flows = vec![FlowWatch::default(); ports.len()];
        Self { ports, flows, ..Self::default() }
    }

    pub(crate) fn flows(&self) -> &[FlowWatch] {
        &self.flows
    }

    /// A packet passes.
    pub(crate) fn see(&mut self, passage: &Passage<'_>) {
        let Some(segment) = Segment::read(passage.packet) else { return };
        let client = match passage.direction {
            Direction::Down => segment.destination,
            Direction::Up => segment.source,
        };
        let Some(index) = self.ports.iter().position(|&port| port == client) else { return };
        let flow = &mut self.flows[index];
        match (passage.direction, passage.fate) {
            (Direction::Down, Fate::Arrived) if segment.length > 0 => {
                flow.sent(passage.arrived, &segment);
            }
            (Direction::Down, Fate::Dropped { .. }) if segment.length > 0 => flow.dropped += 1,
            (Direction::Down, Fate::Delivered { departed, .. }) => {
                self.carried += Bytes::new(passage.packet.len() as u64);
                if segment.length > 0 {
                    let wait = departed.since(passage.arrived);
                    flow.queue.record(wait);
                    self.recent_queue.add(wait);
                }
            }
            (Direction::Up, Fate::Delivered { at, .. }) => {
                if let Some(rtt) = flow.acknowledged(at, &segment) {
                    flow.rtt.record(rtt);
                    if index == 0 {
                        self.recent_rtt.add(rtt);
                    }
                }
            }
            _ => {}
        }
    }
}

impl FlowWatch {
    /// The server sent data.
    fn sent(&mut self, at: Time, segment: &Segment) {
        self.packets += 1;
        let start = self.numbers.advance(segment.sequence);
        let end = start + u64::from(segment.length);
        if end > self.end && start >= self.end {
            self.end = end;
            self.outstanding.push_back(Sent { end, at, once: true, beyond: false });
            return;
        }
        self.retransmits += 1;
        let first = self.outstanding.partition_point(|sent| sent.end <= start);
        let again = self.outstanding.range_mut(first..).take_while(|sent| sent.end <= end);
        again.for_each(|sent| sent.once = false);
    }

    /// The server heard what arrived; the round-trip time of the latest packet that is acknowledged for the first time.
    fn acknowledged(&mut self, at: Time, segment: &Segment) -> Option<Duration> {
        // Nothing was sent yet.
        self.numbers.last?;
        let mut newest: Option<Sent> = None;
        for &(start, end) in segment.sack() {
            let (start, end) = (self.numbers.of(start), self.numbers.of(end));
            let first = self.outstanding.partition_point(|sent| sent.end <= start);
            for sent in self.outstanding.range_mut(first..).take_while(|sent| sent.end <= end) {
                if !std::mem::replace(&mut sent.beyond, true) {
                    newest = newest.filter(|n| n.end > sent.end).or(Some(*sent));
                }
            }
        }
        let acknowledged = self.numbers.of(segment.acknowledged);
        let heard = self.outstanding.partition_point(|sent| sent.end <= acknowledged);
        for sent in self.outstanding.drain(..heard) {
            if !sent.beyond {
                newest = newest.filter(|n| n.end > sent.end).or(Some(sent));
            }
        }
        let newest = newest.filter(|sent| sent.once && sent.end > self.sampled)?;
        self.sampled = newest.end;
        Some(at.since(newest.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::packet;

    const SERVER: u16 = 8000;
    const CLIENT: u16 = 40_000;

    struct Path(Watch);

    impl Path {
        fn new() -> Self {
            Self(Watch::new(vec![CLIENT]))
        }

        /// Data of the server: `number` counts packets of 1000 bytes, near the end of the sequence space.
        fn data(&mut self, number: u32, at_ms: u64, fate: Fate) {
            let bytes = packet((SERVER, CLIENT), sequence(number), 0, 1000, &[]);
            let arrived = Time::from_millis(at_ms);
            self.0.see(&Passage { direction: Direction::Down, packet: &bytes, arrived, fate });
        }

        /// An acknowledgement of all packets before `number`, and of blocks beyond.
        fn ack(&mut self, number: u32, at_ms: u64, beyond: &[(u32, u32)]) {
            let blocks: Vec<_> = beyond.iter().map(|&(a, b)| (sequence(a), sequence(b))).collect();
            let bytes = packet((CLIENT, SERVER), 0, sequence(number), 0, &blocks);
            let at = Time::from_millis(at_ms);
            let fate = Fate::Delivered { at, departed: at };
            self.0.see(&Passage { direction: Direction::Up, packet: &bytes, arrived: at, fate });
        }

        fn flow(&self) -> &FlowWatch {
            &self.0.flows()[0]
        }
    }

    fn sequence(number: u32) -> u32 {
        (u32::MAX - 2500).wrapping_add(number * 1000)
    }

    #[test]
    fn round_trips_are_those_of_the_latest_packet() {
        let mut path = Path::new();
        for number in 0..4 {
            path.data(number, 10 * u64::from(number), Fate::Arrived);
        }
        path.ack(2, 40, &[]);
        // Beyond a gap counts, and a repetition does not.
        path.ack(2, 45, &[(3, 4)]);
        path.ack(2, 90, &[(3, 4)]);
        path.ack(4, 95, &[]);
        assert_eq!(path.flow().rtt.count(), 2);
        // 40 - 10 and 45 - 30.
        assert!((path.0.recent_rtt.take_mean_ms() - 22.5).abs() < 1e-9);
        assert!(path.0.recent_rtt.take_mean_ms().is_nan(), "nothing since");
    }

    #[test]
    fn what_was_sent_twice_gives_no_sample() {
        let mut path = Path::new();
        for number in 0..3 {
            path.data(number, 0, Fate::Arrived);
        }
        path.data(1, 0, Fate::Dropped { at: Time::ZERO });
        path.ack(1, 20, &[(2, 3)]);
        path.data(1, 50, Fate::Arrived);
        path.ack(3, 70, &[]);
        let flow = path.flow();
        assert_eq!((flow.packets, flow.retransmits, flow.dropped), (4, 1, 1));
        assert_eq!(flow.rtt.count(), 1, "that of the packet behind the lost one");
        assert!(flow.outstanding.is_empty());
    }

    #[test]
    fn waits_and_bytes_are_those_of_what_was_delivered() {
        let mut path = Path::new();
        let departed = Time::from_millis(7);
        path.data(0, 3, Fate::Arrived);
        path.data(0, 3, Fate::Delivered { at: Time::from_millis(17), departed });
        assert_eq!(path.flow().queue.mean(), Duration::from_millis(4));
        assert_eq!(path.0.carried, Bytes::new(1000 + 20 + 32));
        assert_eq!(path.flow().packets, 1);
    }

    #[test]
    fn other_traffic_is_not_measured() {
        let mut path = Path::new();
        let bytes = packet((SERVER, CLIENT + 1), 5, 0, 1000, &[]);
        let arrived = Time::ZERO;
        let passage =
            Passage { direction: Direction::Down, packet: &bytes, arrived, fate: Fate::Arrived };
        path.0.see(&passage);
        path.0.see(&Passage { packet: &[], ..passage });
        assert_eq!(path.flow().packets, 0);
    }

    /// Packets of a window are lost at random and sent again; what is counted is what was done.
    #[test]
    fn counts_are_exact_over_many_losses() {
        let mut random = 7_u32;
        let mut path = Path::new();
        let (mut sent, mut again, mut lost) = (0, 0, 0);
        for round in 0..400_u32 {
            let at = u64::from(round) * 100;
            let window = round * 10..(round + 1) * 10;
            let mut missing = Vec::new();
            for number in window.clone() {
                path.data(number, at, Fate::Arrived);
                sent += 1;
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if random >> 30 == 0 {
                    path.data(number, at, Fate::Dropped { at: Time::from_millis(at) });
                    missing.push(number);
                    lost += 1;
                }
            }
            for &number in &missing {
                path.data(number, at + 50, Fate::Arrived);
                (sent, again) = (sent + 1, again + 1);
            }
            // The last one is acknowledged 80 ms after it was sent: no sample where it was sent twice.
            path.ack(window.end, at + 80, &[]);
            let samples = path.flow().rtt.count();
            path.ack(window.end, at + 90, &[]);
            assert_eq!(path.flow().rtt.count(), samples, "it is known already");
        }
        let flow = path.flow();
        assert_eq!((flow.packets, flow.retransmits, flow.dropped), (sent, again, lost));
        assert!(lost > 800 && flow.outstanding.is_empty());
        assert_eq!(flow.rtt.mean(), Duration::from_millis(80));
    }

    #[test]
    fn the_other_flows_have_figures_of_their_own() {
        let mut watch = Watch::new(vec![CLIENT, CLIENT + 1]);
        let (first, second) = (Time::ZERO, Time::from_millis(30));
        let data = packet((SERVER, CLIENT + 1), 100, 0, 1000, &[]);
        let (direction, fate) = (Direction::Down, Fate::Arrived);
        watch.see(&Passage { direction, packet: &data, arrived: first, fate });
        let ack = packet((CLIENT + 1, SERVER), 0, 1100, 0, &[]);
        let fate = Fate::Delivered { at: second, departed: second };
        watch.see(&Passage { direction: Direction::Up, packet: &ack, arrived: second, fate });
        assert_eq!(watch.flows()[1].rtt.mean(), Duration::from_millis(30));
        assert_eq!((watch.flows()[0].packets, watch.flows()[1].packets), (0, 1));
        assert!(watch.recent_rtt.take_mean_ms().is_nan(), "that is of the first flow");
    }
}
