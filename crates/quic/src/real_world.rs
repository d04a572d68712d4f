//! Real time: flows over UDP sockets and an emulated link.
//!
//! One thread drives both ends of all flows: it reads their sockets, does what is due, and sleeps in
//! `ppoll` until a datagram arrives or a timer of noq is due. Its timers have no slack, so it wakes
//! within some tens of microseconds, and does not spin.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use trimtab_emu::{Config, Topology, act_as_kernel};
use trimtab_lab::run::pool::INTERRUPTED;
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::{course, emulated};
use trimtab_lab::scenario::Job;
use trimtab_sim::Histogram;
use trimtab_units::{Bytes, Duration, Time};

use crate::clock::Clock;
use crate::error::QuicError;
use crate::flow::{Flow, FlowConfig};
use crate::identity::Identity;
use crate::logs::RunLogs;
use crate::socket::{Room, Socket, Sockets};
use crate::watch::Watch;
use crate::world::{Crossed, World};

/// Longer than any handshake: the run begins when all are over.
const FAR: Duration = Duration::from_secs(3600);
/// A handshake may take so long, and twenty round trips.
const PATIENCE: Duration = Duration::from_secs(10);
/// Handshakes are over when nothing was sent for a round trip and this: longer than any end delays an
/// acknowledgement.
const QUIET: Duration = Duration::from_millis(50);

/// How well the thread of a run keeps up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    /// How late it woke for what was due.
    pub(crate) late: Histogram,
    /// How long the run took, and how much of that the thread slept.
    took: Duration,
    slept: Duration,
}

impl Pace {
    /// The share of the run in which the thread did not sleep.
    pub(crate) fn awake(&self) -> f64 {
        if self.took.is_zero() { 0.0 } else { 1.0 - self.slept.ratio(self.took) }
    }
}

/// Flows of noq in real time.
pub(crate) struct RealWorld<'a> {
    clock: Clock,
    flows: Vec<Flow<Sockets>>,
    watch: Arc<Mutex<Watch>>,
    room: Room,
    /// When something arrived, or was due, last.
    active_at: Time,
    pace: &'a mut Pace,
}

impl<'a> RealWorld<'a> {
    /// Establishes the connections of a run over a path that only delays, then starts the run's link.
    /// Calls from then on are for this thread only.
    ///
    /// # Errors
    /// The system refuses a socket or the link, or a handshake does not end.
    pub(crate) fn begin(
        identity: &Identity,
        topology: &mut Topology,
        (prepared, job, logs): (&Prepared, &Job, RunLogs<'_>),
        pace: &'a mut Pace,
    ) -> Result<Self, QuicError> {
        act_as_kernel();
        let clock = Clock::new(FAR);
        let mut flows = Vec::new();
        for (number, member) in course::members(prepared, job).into_iter().enumerate() {
            let server = (topology.server(), topology.server_address());
            let client = (topology.client(), topology.client_address());
            let sockets = Sockets::open(server, client)
                .map_err(QuicError::system("open the sockets of a connection"))?;
            let config = FlowConfig::new(number, member, (prepared, job), logs, clock);
            flows.push(Flow::new(config, identity, clock, Time::ZERO, sockets));
        }
        let ports = flows.iter().map(|flow| flow.carrier.port()).collect();
        let watch = Arc::new(Mutex::new(Watch::new(ports)));
        let (room, active_at) = (Room::new(), Time::ZERO);
        let mut world = Self { clock, flows, watch, room, active_at, pace };

        let config = |(down, up)| Config { down, up, seed: job.seed, log: None };
        topology.start(&config(emulated::path(job.cell.rtt.first())))?;
        let established = world.establish(job.cell.rtt.longest());
        topology.stop()?;
        established?;
        let eye = Arc::clone(&world.watch);
        let link = config(emulated::link(prepared, job));
        topology.start_observed(&link, Box::new(move |passage| lock(&eye).see(passage)))?;
        world.clock = clock.beginning(clock.now());
        world.flows.iter_mut().for_each(|flow| flow.set_clock(world.clock));
        *world.pace = Pace::default();
        Ok(world)
    }

    /// Goes on until all handshakes are over, and nothing is under way any more.
    fn establish(&mut self, rtt: Duration) -> Result<(), QuicError> {
        let last = self.clock.now() + PATIENCE + rtt * 20;
        loop {
            let now = self.step()?;
            let open = self.flows.iter().find(|flow| !flow.is_established());
            let quiet_at = self.active_at + rtt + QUIET;
            match open {
                None if now >= quiet_at => return Ok(()),
                Some(flow) if now >= last => return Err(flow.has_no_handshake(now)),
                None => self.wait(quiet_at)?,
                Some(_) => self.wait(last)?,
            }
        }
    }

    /// Does what is due at each flow; the time when it began.
    fn step(&mut self) -> Result<Time, QuicError> {
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(QuicError::Interrupted);
        }
        let begin = self.clock.now();
        for flow in &mut self.flows {
            let now = self.clock.now();
            if flow.next(now) <= now {
                flow.turn(now)?;
                self.active_at = now;
            }
        }
        Ok(begin)
    }

    /// Sleeps until a datagram arrives, `last` has come, or something is due; reads what has arrived.
    fn wait(&mut self, last: Time) -> Result<(), QuicError> {
        let now = self.clock.now();
        let flows = self.flows.iter().map(|flow| flow.next(now));
        let next = flows.min().unwrap_or(Time::MAX).min(last);
        let left = next.since(now).as_nanos();
        let (s, ns) = (left / 1_000_000_000, left % 1_000_000_000);
        // Both fit: `last` is within hours.
        let timeout = Timespec { tv_sec: s.cast_signed(), tv_nsec: ns.cast_signed() };
        let sockets =
            self.flows.iter().flat_map(|flow| [&flow.carrier.server, &flow.carrier.client]);
        let mut fds: Vec<PollFd<'_>> = sockets
            .map(|socket| {
                let room = if socket.has_unsent() { PollFlags::OUT } else { PollFlags::empty() };
                PollFd::new(socket, PollFlags::IN | room)
            })
            .collect();
        let ready = match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => 0,
            Err(e) => return Err(QuicError::system("wait for datagrams")(e)),
        };
        let woke_at = self.clock.now();
        self.pace.slept += woke_at.since(now);
        if ready == 0 {
            // Interrupted by a signal, it may also be early.
            self.pace.late.record(woke_at.since(next));
            return Ok(());
        }
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        self.receive(&events).map_err(QuicError::system("receive or send a datagram"))
    }

    /// Reads the sockets with these events, two for each flow.
    fn receive(&mut self, events: &[PollFlags]) -> io::Result<()> {
        let Self { flows, room, .. } = self;
        let ends = flows.iter_mut().flat_map(|flow| {
            let Sockets { server, client } = &mut flow.carrier;
            [server, client]
        });
        let serve = |(socket, &events): (&mut Socket, &PollFlags)| {
            if events.contains(PollFlags::OUT) {
                socket.flush();
            }
            match events.difference(PollFlags::OUT).is_empty() {
                true => Ok(()),
                false => socket.receive(room).map(drop),
            }
        };
        ends.zip(events).try_for_each(serve)
    }
}

impl World for RealWorld<'_> {
    type Carrier = Sockets;

    fn now(&self) -> Time {
        self.clock.run(self.clock.now())
    }

    fn run_until(&mut self, until: Time) -> Result<(), QuicError> {
        let end = self.clock.of_run(until);
        while self.step()? < end {
            self.wait(end)?;
        }
        self.pace.took = self.now().since(Time::ZERO);
        Ok(())
    }

    fn flows(&self) -> &[Flow<Sockets>] {
        &self.flows
    }

    fn first(&mut self) -> &mut Flow<Sockets> {
        &mut self.flows[0]
    }

    fn crossed(&self, flow: usize) -> Crossed {
        lock(&self.watch).flows()[flow].clone()
    }

    fn carried(&self) -> Bytes {
        lock(&self.watch).carried
    }

    /// The mean of those packets that left the queue since last asked.
    fn queue_delay_ms(&mut self) -> f64 {
        lock(&self.watch).take_queue_delay_ms()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use trimtab_emu::ServerSide;
    use trimtab_lab::run::prepare::prepare;
    use trimtab_lab::scenario::Scenario;

    use super::*;

    /// How long from a call of `set_knob`, at any moment, to the first packet that leaves under it.
    #[test]
    fn a_knob_that_is_turned_reaches_the_wire_at_once() {
        let mut topology = match Topology::new(ServerSide::Private) {
            Ok(topology) => topology,
            Err(reason) => {
                let is_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
                assert!(!is_ci, "CI must run this test: {reason}");
                println!("skipped: {reason}");
                return;
            }
        };
        let text = "cc = [\"copa\"]\ntraces = [\"constant:12Mbit/s\"]\nrtt = \"40ms\"\n\
                    duration = \"5s\"\n[[app]]\nkind = \"bulk\"\n";
        let plan = Scenario::parse(text).unwrap().plan().unwrap();
        let prepared = prepare(&plan).unwrap();
        let (identity, mut pace) = (Identity::new().unwrap(), Pace::default());
        let logs = RunLogs::new(None, &prepared, &plan.jobs[0]);
        let run = (&prepared, &plan.jobs[0], logs);
        let mut world = RealWorld::begin(&identity, &mut topology, run, &mut pace).unwrap();
        let handle = world.flows()[0].handle().unwrap().clone();
        world.run_until(Time::from_secs(1)).unwrap();
        let mut took = Vec::new();
        for turn in 0..50 {
            world.run_until(world.now() + Duration::from_millis(41)).unwrap();
            let delta = if turn % 2 == 0 { 0.1 } else { 0.5 };
            let begin = world.clock.now();
            handle.set_knob("delta", delta).unwrap();
            loop {
                world.wait(begin + Duration::from_secs(1)).unwrap();
                let sent = world.flows()[0].sent();
                world.step().unwrap();
                let is_turned = handle.metrics().unwrap().knobs.get("delta") == Some(delta);
                if is_turned && world.flows()[0].sent() > sent {
                    break;
                }
            }
            took.push(world.clock.now().since(begin));
        }
        took.sort_unstable();
        let [median, p90, max] = [25, 45, 49].map(|at| took[at]);
        println!("a knob is on the wire after {median} (median), {p90} (p90), {max} (most)");
        assert!(median < Duration::from_millis(5), "{took:?}");
        drop(world);
        println!("{:.2} of the time awake", pace.awake());
        assert!(pace.awake() > 0.0 && pace.awake() < 0.8, "{pace:?}");
    }
}
