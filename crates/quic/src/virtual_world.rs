//! Virtual time: flows over a link of the simulator. No socket is opened and no clock is read.

use std::collections::VecDeque;

use trimtab_lab::run::course;
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::scenario::Job;
use trimtab_net::{
    Capacity, DelayConfig, DelayLine, Event, JitterConfig, Link, LinkConfig, Packet,
};
use trimtab_units::{Bytes, Duration, Time};

use crate::carrier::{Carrier, End};
use crate::clock::Clock;
use crate::error::QuicError;
use crate::flow::{Flow, FlowConfig};
use crate::identity::Identity;
use crate::logs::RunLogs;
use crate::side::Datagram;
use crate::world::{Crossed, World};

/// The propagation of a path, in the time of the run.
pub(crate) struct Propagation {
    /// From the server to the client, and back.
    pub(crate) halves: (DelayConfig, DelayConfig),
    /// How much a packet to the client is late.
    pub(crate) jitter: JitterConfig,
}

/// What the link carries.
#[derive(Debug)]
struct Cargo {
    flow: usize,
    datagram: Datagram,
}

/// The lines between the ends of a flow and the link.
#[derive(Debug)]
pub(crate) struct Lines {
    forward: DelayLine,
    reverse: DelayLine,
    /// Datagrams between the server and the link.
    outbound: VecDeque<(Time, Datagram)>,
    /// Datagrams between the client and the server.
    inbound: VecDeque<(Time, Datagram)>,
    /// Datagrams that have reached the client.
    delivered: VecDeque<Datagram>,
    crossed: Crossed,
}

impl Lines {
    fn new(propagation: &Propagation, clock: Clock, seed: u64) -> Self {
        let Propagation { halves: (there, back), jitter } = propagation;
        let of_run = |delay: &DelayConfig| delay.clone().begin(clock.of_run(Time::ZERO));
        Self {
            forward: DelayLine::new(of_run(there), *jitter, None, seed),
            reverse: DelayLine::plain(of_run(back)),
            outbound: VecDeque::new(),
            inbound: VecDeque::new(),
            delivered: VecDeque::new(),
            crossed: Crossed::default(),
        }
    }

    /// When the next datagram reaches the link.
    fn leaves(&self) -> Time {
        due(&self.outbound)
    }

    /// Takes the next datagram that reaches the link now. Those of the handshake, before `opens`,
    /// pass it by: they find no queue, whatever other flows do.
    fn take_outbound(&mut self, now: Time, opens: Time) -> Option<Datagram> {
        while let Some(datagram) = take_due(&mut self.outbound, now) {
            if now >= opens {
                return Some(datagram);
            }
            self.delivered.push_back(datagram);
        }
        None
    }
}

impl Carrier for Lines {
    fn send(&mut self, from: End, now: Time, datagram: Datagram) {
        match from {
            End::Server => self.outbound.push_back((self.forward.release(now), datagram)),
            End::Client => self.inbound.push_back((self.reverse.release(now), datagram)),
        }
    }

    fn take(&mut self, at: End, now: Time) -> Option<Datagram> {
        match at {
            End::Server => take_due(&mut self.inbound, now),
            End::Client => self.delivered.pop_front(),
        }
    }

    fn next(&self, at: End) -> Time {
        match at {
            End::Server => due(&self.inbound),
            End::Client if self.delivered.is_empty() => Time::MAX,
            End::Client => Time::ZERO,
        }
    }
}

/// When the next datagram of a line reaches its end.
fn due(line: &VecDeque<(Time, Datagram)>) -> Time {
    line.front().map_or(Time::MAX, |&(at, _)| at)
}

/// The next datagram of a line, if it has reached the end.
fn take_due(line: &mut VecDeque<(Time, Datagram)>, now: Time) -> Option<Datagram> {
    line.front().filter(|&&(at, _)| at <= now)?;
    line.pop_front().map(|(_, datagram)| datagram)
}

/// Flows of noq in virtual time. Equal configurations give equal runs on every machine.
#[derive(Debug)]
pub(crate) struct VirtualWorld {
    clock: Clock,
    /// By the clock of connections.
    now: Time,
    /// It lives in the time of the run: its traces begin with it.
    link: Link<Cargo>,
    capacity: Capacity,
    flows: Vec<Flow<Lines>>,
}

impl VirtualWorld {
    /// The world of a run, before its first handshake.
    pub(crate) fn new(
        identity: &Identity,
        prepared: &Prepared,
        job: &Job,
        logs: RunLogs<'_>,
    ) -> Self {
        let clock = Clock::new(lead(job.cell.rtt.longest() + job.cell.jitter));
        let run = (prepared, job);
        let flow = |(number, member)| FlowConfig::new(number, member, run, logs, clock);
        let flows = course::members(prepared, job).into_iter().enumerate().map(flow).collect();
        let link = course::bottleneck(prepared, job, course::capacity(prepared, job));
        let propagation =
            Propagation { halves: job.cell.rtt.halves(), jitter: course::jitter(job) };
        Self::with(identity, clock, (&link, job.seed), &propagation, flows)
    }

    /// Flows over a link with its seed, before their first handshake.
    pub(crate) fn with(
        identity: &Identity,
        clock: Clock,
        (link, seed): (&LinkConfig, u64),
        propagation: &Propagation,
        flows: Vec<FlowConfig>,
    ) -> Self {
        let flow = |config: FlowConfig| {
            let lines = Lines::new(propagation, clock, config.seed);
            // As far ahead of its part of the run as the clock is of the run.
            let dials_at = config.start();
            Flow::new(config, identity, clock, dials_at, lines)
        };
        let flows = flows.into_iter().map(flow).collect();
        let capacity = link.capacity.clone();
        Self { clock, now: Time::ZERO, link: Link::new(link, seed), capacity, flows }
    }

    /// When something is due.
    fn next(&self) -> Time {
        let link = self.link.next_event().map_or(Time::MAX, |at| self.clock.of_run(at));
        let flows = self.flows.iter().map(|flow| flow.next(self.now).min(flow.carrier.leaves()));
        flows.min().unwrap_or(Time::MAX).min(link).max(self.now)
    }

    /// Does what is due now: first on the link, then at each flow in turn.
    fn step(&mut self) -> Result<(), QuicError> {
        let Self { clock, now, link, flows, .. } = self;
        let (now, run) = (*now, clock.run(*now));
        while let Some(event) = link.poll(run) {
            match event {
                Event::Delivered(delivery) => {
                    let Cargo { flow, datagram } = delivery.packet.payload;
                    let datagram = if delivery.marked { datagram.marked() } else { datagram };
                    let waited = delivery.departed_at.since(delivery.enqueued_at);
                    let lines = &mut flows[flow].carrier;
                    lines.crossed.queue.record(waited);
                    lines.delivered.push_back(datagram);
                }
                Event::Dropped(dropped) => {
                    flows[dropped.packet.payload.flow].carrier.crossed.dropped += 1;
                }
            }
        }
        for (number, flow) in flows.iter_mut().enumerate() {
            if flow.next(now).min(flow.carrier.leaves()) > now {
                continue;
            }
            flow.turn(now)?;
            let opens = flow.opens();
            while let Some(datagram) = flow.carrier.take_outbound(now, opens) {
                let (size, capable) = (datagram.size(), datagram.is_capable());
                let packet = Packet { size, payload: Cargo { flow: number, datagram } };
                let entered = match capable {
                    true => link.send_capable(run, packet),
                    false => link.send(run, packet),
                };
                flow.carrier.crossed.dropped += u64::from(entered.is_err());
            }
        }
        Ok(())
    }
}

/// How long before a flow's part of the run its handshake begins: two round trips, until the client
/// knows that the server knows that all is well (RFC 9001 §4.1.2).
pub(crate) fn lead(longest_rtt: Duration) -> Duration {
    longest_rtt * 2 + Duration::from_millis(1)
}

impl World for VirtualWorld {
    type Carrier = Lines;

    fn now(&self) -> Time {
        self.clock.run(self.now)
    }

    fn run_until(&mut self, until: Time) -> Result<(), QuicError> {
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

    fn flows(&self) -> &[Flow<Lines>] {
        &self.flows
    }

    fn first(&mut self) -> &mut Flow<Lines> {
        &mut self.flows[0]
    }

    fn crossed(&self, flow: usize) -> Crossed {
        self.flows[flow].carrier.crossed.clone()
    }

    fn carried(&self) -> Bytes {
        self.link.stats().departures.bytes
    }

    /// How long what waits now will take, as in the simulator.
    fn queue_delay_ms(&mut self) -> f64 {
        course::drain_time(&self.capacity, self.now(), self.link.queue_bytes()).as_millis_f64()
    }
}
