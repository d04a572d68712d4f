//! The receiving side of a transport: arrivals, reassembly, and when to acknowledge.

use std::collections::VecDeque;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg32;
use trimtab_units::{Duration, Time};

use crate::sender::{AckInfo, Outgoing};
use crate::streams::{Progress, ReceiveStreams};
use crate::transport::{LossDetection, Transport};

/// The receiver of one flow.
///
/// An acknowledgement names a prefix of the list of arrivals. That says what a QUIC ACK frame with
/// all its ranges says (or TCP's cumulative acknowledgement with enough SACK blocks), costs one
/// number, and survives the loss of earlier acknowledgements.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) streams: ReceiveStreams,
    transport: Transport,
    /// Packet numbers in the order of arrival, without the first `taken`.
    arrivals: VecDeque<u64>,
    taken: u64,
    next_number: u64,
    newest_at: Time,
    unacknowledged: u32,
    received: u64,
    ack_at: Time,
    marks: u64,
    echo: bool,
    /// For when its reader wakes up.
    random: Pcg32,
}

impl Receiver {
    pub(crate) fn new(streams: ReceiveStreams, transport: Transport, seed: u64) -> Self {
        Self {
            streams,
            transport,
            arrivals: VecDeque::new(),
            taken: 0,
            next_number: 0,
            newest_at: Time::ZERO,
            unacknowledged: 0,
            received: 0,
            ack_at: Time::MAX,
            marks: 0,
            echo: false,
            random: Pcg32::seed_from_u64(seed),
        }
    }

    /// A packet arrived; `progress` gets every response that moves.
    #[inline]
    pub(crate) fn on_packet(
        &mut self,
        now: Time,
        packet: &Outgoing,
        progress: impl FnMut(Progress),
    ) {
        let number = packet.number;
        self.arrivals.push_back(number);
        self.received += 1;
        self.unacknowledged += 1;
        let in_order = number == self.next_number;
        self.next_number = self.next_number.max(number + 1);
        let filled = self.streams.insert(packet.chunk, progress);
        self.marks += u64::from(packet.marked);
        // RFC 9000 §13.2.1 and RFC 5681 §4.2: what is out of order is acknowledged at once, and so is
        // a mark; so is what leaves a gap open on TCP.
        let at_once = match self.transport.loss_detection {
            LossDetection::Rfc9002 => !in_order || packet.marked,
            LossDetection::RackTlp => filled || !in_order || self.changes_echo(packet),
        };
        let due = at_once
            || self.unacknowledged >= self.transport.ack_every
            || self.received <= u64::from(self.transport.quick_acks);
        if !due {
            self.ack_at = self.ack_at.min(now + self.transport.max_ack_delay);
        } else if self.ack_at > now + self.transport.ack_wait {
            let (least, most) = (self.transport.ack_wait_least, self.transport.ack_wait);
            // Those that all wait alike draw nothing.
            let spread = most - least;
            let more = if spread.is_zero() { spread } else { spread.mul_f64(self.random.random()) };
            self.ack_at = now + least + more;
        }
        self.newest_at = now;
    }

    /// RFC 3168 §6.1.3: the echo of a mark is repeated until the sender says that it has reduced its window. Whether
    /// the packet turns it on or off, which Linux acknowledges at once.
    fn changes_echo(&mut self, packet: &Outgoing) -> bool {
        let before = self.echo;
        self.echo = packet.marked || (before && !packet.reduced);
        self.echo != before || (before && packet.reduced)
    }

    /// Packets that arrived with a congestion mark.
    pub(crate) fn marks(&self) -> u64 {
        self.marks
    }

    /// When an acknowledgement is to leave; [`Time::MAX`] for not at all.
    pub(crate) fn ack_at(&self) -> Time {
        self.ack_at
    }

    /// The acknowledgement.
    pub(crate) fn acknowledge(&mut self, now: Time) -> AckInfo {
        self.unacknowledged = 0;
        self.ack_at = Time::MAX;
        AckInfo {
            arrivals: self.taken + self.arrivals.len() as u64,
            cumulative: self.streams.cumulative(),
            delay: match self.transport.loss_detection {
                LossDetection::Rfc9002 => now.since(self.newest_at),
                LossDetection::RackTlp => Duration::ZERO,
            },
            marks: self.marks,
            echo: self.echo,
        }
    }

    /// The numbers that an acknowledgement newly covers, as the sender reads it.
    pub(crate) fn take(&mut self, info: AckInfo) -> impl Iterator<Item = u64> {
        let count = info.arrivals.saturating_sub(self.taken);
        self.taken += count;
        (0..count).map_while(|_| self.arrivals.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use trimtab_apps::Concurrency;
    use trimtab_units::Bytes;

    use super::*;
    use crate::streams::SendStreams;

    /// A receiver that expects one response, and the packets of that response.
    fn response(transport: Transport) -> (Receiver, Vec<Outgoing>) {
        let payload = transport.payload();
        let mut streams = SendStreams::new(Concurrency::InOrder);
        streams.write(0, payload * 40);
        let packet = |number| Outgoing {
            number,
            size: transport.packet,
            chunk: streams.next(payload).expect("there is more"),
            capable: true,
            reduced: false,
            marked: false,
        };
        let packets = (0..40).map(packet).collect();
        let mut receiver = Receiver::new(ReceiveStreams::new(Concurrency::InOrder), transport, 1);
        receiver.streams.expect(trimtab_apps::RequestId(0), payload * 40);
        (receiver, packets)
    }

    fn arrive(receiver: &mut Receiver, ms: u64, packet: &Outgoing) -> Time {
        receiver.on_packet(Time::from_millis(ms), packet, |_| {});
        receiver.ack_at()
    }

    /// RFC 9000 §13.2.1 and §13.2.2.
    #[test]
    fn quic_acknowledges_every_second_packet_and_what_is_out_of_order() {
        let (mut receiver, packets) = response(Transport::quic());
        assert_eq!(arrive(&mut receiver, 0, &packets[0]), Time::from_millis(25), "max_ack_delay");
        assert_eq!(arrive(&mut receiver, 3, &packets[1]), Time::from_millis(3));
        let info = receiver.acknowledge(Time::from_millis(5));
        assert_eq!(info.delay, Duration::from_millis(2), "since the newest packet");
        assert_eq!(receiver.take(info).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(receiver.ack_at(), Time::MAX);
        assert_eq!(arrive(&mut receiver, 9, &packets[3]), Time::from_millis(9), "packet 2 is late");
        let early = receiver.acknowledge(Time::from_millis(9));
        let marked = Outgoing { marked: true, ..packets[4] };
        assert_eq!(arrive(&mut receiver, 10, &marked), Time::from_millis(10), "a mark");
        let late = receiver.acknowledge(Time::from_millis(10));
        assert_eq!((early.marks, late.marks), (0, 1));
        // The earlier acknowledgement was lost; this one says what it said.
        assert_eq!(receiver.take(late).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(receiver.take(early).count(), 0, "it overtook the other");
    }

    /// RFC 3168 §6.1.3: the echo stays on until the sender says that it reduced its window.
    #[test]
    fn tcp_repeats_its_echo_until_it_is_answered() {
        let (mut receiver, packets) = response(Transport::linux_tcp());
        let mut echo = |number: usize, marked, reduced| {
            let packet = Outgoing { marked, reduced, ..packets[number] };
            arrive(&mut receiver, number as u64, &packet);
            let info = receiver.acknowledge(Time::from_millis(number as u64));
            assert_eq!(info.delay, Duration::ZERO, "TCP says nothing of its delay");
            assert_eq!(info.cumulative, (packet.size - Bytes::new(52)).get() * (number as u64 + 1));
            info.echo
        };
        let answers = [
            echo(0, false, false),
            echo(1, true, false),
            echo(2, false, false),
            echo(3, false, true),
            echo(4, false, false),
            echo(5, true, true),
        ];
        assert_eq!(answers, [false, true, true, false, false, true]);
    }

    /// Linux's quick acknowledgements end after the first packets of a connection.
    #[test]
    fn tcp_acknowledges_its_first_packets_one_by_one() {
        let transport = Transport { ack_wait: Duration::ZERO, ..Transport::linux_tcp() };
        let transport = Transport { ack_wait_least: Duration::ZERO, ..transport };
        let (mut receiver, packets) = response(transport);
        for (number, packet) in packets.iter().enumerate() {
            let ms = number as u64;
            let at = arrive(&mut receiver, ms, packet);
            let quick = number < 16 || number % 2 == 1;
            let due = if quick { ms } else { ms + 40 };
            assert_eq!(at, Time::from_millis(due), "packet {number}");
            if quick {
                receiver.acknowledge(at);
            }
        }
    }
}
