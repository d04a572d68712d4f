//! The network of s2n-quic's executor: the simulator's link, and the lines to and from it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Std;

use s2n_quic::provider::io::testing::network::{Buffers, Network, Packet};
use s2n_quic::provider::io::testing::{self, spawn};
use s2n_quic_core::inet::{ExplicitCongestionNotification, SocketAddress};
use s2n_quic_core::time::Timestamp;
use trimtab_net::{DelayLine, Event, Link, LinkConfig};
use trimtab_units::{Bytes, Time};

use crate::clock::Clock;
use crate::side::HEADERS;
use crate::virtual_world::Propagation;
use crate::world::Crossed;

/// What lies between the two ends.
pub(super) struct Wire {
    clock: Clock,
    /// Time zero by s2n-quic's clock.
    zero: Timestamp,
    /// It lives in the time of the run.
    pub(super) link: Link<Packet>,
    forward: DelayLine,
    reverse: DelayLine,
    /// Datagrams between the server and the link, and between the client and the server.
    outbound: VecDeque<(Time, Packet)>,
    inbound: VecDeque<(Time, Packet)>,
    /// Who sent the first datagram.
    client: Option<SocketAddress>,
    /// Datagrams that the server sent, handshake apart, and what became of them.
    pub(super) sent: u64,
    pub(super) crossed: Crossed,
}

/// The wire, in the hands of the network and of who looks at it.
#[derive(Clone)]
pub(super) struct SharedWire(Arc<Mutex<Wire>>);

impl SharedWire {
    pub(super) fn lock(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `zero`: what s2n-quic's clock says before anything happens.
    pub(super) fn new(
        clock: Clock,
        zero: Timestamp,
        (link, seed): (&LinkConfig, u64),
        propagation: &Propagation,
    ) -> Self {
        let Propagation { halves: (there, back), jitter } = propagation;
        let opens = clock.of_run(Time::ZERO);
        Self(Arc::new(Mutex::new(Wire {
            clock,
            zero,
            link: Link::new(link, seed),
            forward: DelayLine::new(there.clone().begin(opens), *jitter, None, seed),
            reverse: DelayLine::plain(back.clone().begin(opens)),
            outbound: VecDeque::new(),
            inbound: VecDeque::new(),
            client: None,
            sent: 0,
            crossed: Crossed::default(),
        })))
    }
}

/// A time of connections by s2n-quic's clock, which has microseconds, and rounds time zero up by
/// one: a timer for this time never fires before it.
pub(super) fn timestamp(zero: Timestamp, at: Time) -> Timestamp {
    zero + Std::from_micros(at.as_nanos().div_ceil(1000) + 1)
}

/// The time of connections now.
pub(super) fn now(zero: Timestamp) -> Time {
    let passed = (testing::now() - zero).as_nanos();
    Time::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX))
}

impl Wire {
    /// A datagram leaves an end.
    fn take(&mut self, now: Time, packet: Packet) {
        let from: SocketAddress = *packet.path.local_address;
        if from == *self.client.get_or_insert(from) {
            self.inbound.push_back((self.reverse.release(now), packet));
        } else {
            self.sent += u64::from(now >= self.clock.of_run(Time::ZERO));
            self.outbound.push_back((self.forward.release(now), packet));
        }
    }

    /// What is due now: the datagrams that reach an end.
    fn step(&mut self, now: Time) -> Vec<Packet> {
        let (run, opens) = (self.clock.run(now), self.clock.of_run(Time::ZERO));
        let mut arrived = Vec::new();
        self.poll(run, &mut arrived);
        while let Some(mut packet) = take_due(&mut self.outbound, now) {
            // Those of the handshake pass the link by.
            if now < opens {
                arrived.push(packet);
                continue;
            }
            let size = Bytes::new(packet.payload.len() as u64) + HEADERS;
            let capable = packet.ecn.using_ecn();
            packet.payload.shrink_to_fit();
            let packet = trimtab_net::Packet { size, payload: packet };
            let entered = match capable {
                true => self.link.send_capable(run, packet),
                false => self.link.send(run, packet),
            };
            self.crossed.dropped += u64::from(entered.is_err());
        }
        self.poll(run, &mut arrived);
        while let Some(packet) = take_due(&mut self.inbound, now) {
            arrived.push(packet);
        }
        arrived
    }

    fn poll(&mut self, run: Time, arrived: &mut Vec<Packet>) {
        while let Some(event) = self.link.poll(run) {
            match event {
                Event::Delivered(delivery) => {
                    let waited = delivery.departed_at.since(delivery.enqueued_at);
                    self.crossed.queue.record(waited);
                    let mut packet = delivery.packet.payload;
                    if delivery.marked {
                        packet.ecn = ExplicitCongestionNotification::Ce;
                    }
                    arrived.push(packet);
                }
                Event::Dropped(_) => self.crossed.dropped += 1,
            }
        }
    }

    /// When something is due.
    fn next(&self) -> Time {
        let due = |line: &VecDeque<(Time, Packet)>| line.front().map_or(Time::MAX, |&(at, _)| at);
        let link = self.link.next_event().map_or(Time::MAX, |at| self.clock.of_run(at));
        link.min(due(&self.outbound)).min(due(&self.inbound))
    }
}

fn take_due(line: &mut VecDeque<(Time, Packet)>, now: Time) -> Option<Packet> {
    line.front().filter(|&&(at, _)| at <= now)?;
    line.pop_front().map(|(_, packet)| packet)
}

/// Carries datagrams whenever the executor lets it.
pub(super) struct Carrying {
    pub(super) wire: SharedWire,
    /// When a timer brings the executor back here.
    pub(super) wakes: Time,
}

impl Network for Carrying {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let mut left = Vec::new();
        buffers.drain_pending_transmissions(|packet| {
            left.push(packet);
            Ok(())
        });
        let mut moved = left.len();
        let mut wire = self.wire.lock();
        let now = now(wire.zero);
        left.into_iter().for_each(|packet| wire.take(now, packet));
        for mut packet in wire.step(now) {
            packet.switch();
            moved += 1;
            buffers.rx(*packet.path.local_address, |queue| queue.enqueue(packet));
        }
        let next = wire.next();
        if next < Time::MAX && (next < self.wakes || self.wakes <= now) {
            self.wakes = next;
            spawn(testing::time::delay_until(timestamp(wire.zero, next)));
        }
        moved
    }
}
