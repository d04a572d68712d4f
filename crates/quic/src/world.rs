//! The world: flows over one link, under a virtual clock.

use trimtab_net::{Event, Link, LinkConfig, LinkStats, Packet};
use trimtab_units::{Bytes, Time};

use crate::clock::Clock;
use crate::error::QuicError;
use crate::flow::Flow;
use crate::side::Datagram;

/// What the link carries.
#[derive(Debug)]
struct Cargo {
    flow: usize,
    datagram: Datagram,
}

/// A run of noq in virtual time. Equal configurations give equal runs on every machine.
#[derive(Debug)]
pub(crate) struct World {
    clock: Clock,
    /// By the clock of connections.
    now: Time,
    /// It lives in the time of the run: its traces begin with it.
    link: Link<Cargo>,
    flows: Vec<Flow>,
}

impl World {
    /// A world before its first handshake.
    pub(crate) fn new(clock: Clock, link: &LinkConfig, seed: u64, flows: Vec<Flow>) -> Self {
        Self { clock, now: Time::ZERO, link: Link::new(link, seed), flows }
    }

    /// The time of the run.
    pub(crate) fn now(&self) -> Time {
        self.clock.run(self.now)
    }

    /// The flows.
    pub(crate) fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// A flow, to read noq's figures.
    pub(crate) fn flow_mut(&mut self, flow: usize) -> &mut Flow {
        &mut self.flows[flow]
    }

    /// What the link counted.
    pub(crate) fn link_stats(&self) -> &LinkStats {
        self.link.stats()
    }

    /// Bytes waiting in the link's queue.
    pub(crate) fn queue(&self) -> Bytes {
        self.link.queue_bytes()
    }

    /// Goes on up to and including `until`, in the time of the run.
    ///
    /// # Errors
    /// A connection ended.
    pub(crate) fn run_until(&mut self, until: Time) -> Result<(), QuicError> {
        let end = self.clock.of_run(until);
        loop {
            let next = self.next();
            if next > end {
                break;
            }
            self.now = next;
            self.step()?;
        }
        self.now = end;
        self.link.advance(until);
        Ok(())
    }

    /// When something is due.
    fn next(&self) -> Time {
        let link = self.link.next_event().map_or(Time::MAX, |at| self.clock.of_run(at));
        let flows = self.flows.iter().map(|flow| flow.next(self.now));
        flows.min().unwrap_or(Time::MAX).min(link.max(self.now))
    }

    /// Does what is due now: first on the link, then at each flow in turn.
    fn step(&mut self) -> Result<(), QuicError> {
        let Self { clock, now, link, flows } = self;
        let (now, run) = (*now, clock.run(*now));
        while let Some(event) = link.poll(run) {
            match event {
                Event::Delivered(delivery) => {
                    let Cargo { flow, datagram } = delivery.packet.payload;
                    let datagram = if delivery.marked { datagram.marked() } else { datagram };
                    let waited = delivery.departed_at.since(delivery.enqueued_at);
                    flows[flow].queue_delay.record(waited);
                    flows[flow].deliver(now, datagram);
                }
                Event::Dropped(dropped) => flows[dropped.packet.payload.flow].dropped += 1,
            }
        }
        for (number, flow) in flows.iter_mut().enumerate() {
            if flow.next(now) > now {
                continue;
            }
            flow.turn(now)?;
            while let Some(datagram) = flow.take_outbound(now) {
                let (size, capable) = (datagram.size(), datagram.is_capable());
                let packet = Packet { size, payload: Cargo { flow: number, datagram } };
                let entered = match capable {
                    true => link.send_capable(run, packet),
                    false => link.send(run, packet),
                };
                flow.dropped += u64::from(entered.is_err());
            }
        }
        Ok(())
    }
}
