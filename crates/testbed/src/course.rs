//! A run on the kernel: a link, its flows, the threads that serve them, and what is seen of them.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use trimtab_apps::{App, Application, Outcome};
use trimtab_emu::{Config, Report, ServerSide, Topology};
use trimtab_lab::result::{SelectionsRecord, Series, SwitchRecord};
use trimtab_lab::run::course::{self, Course};
use trimtab_lab::run::datapath::{Run, Sample, Totals};
use trimtab_lab::run::emulated;
use trimtab_lab::run::pool::INTERRUPTED;
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::{Delays, Measurement};
use trimtab_lab::run::selection;
use trimtab_lab::run::switches::{self, Glance};
use trimtab_lab::scenario::Job;
use trimtab_steer::Steer;
use trimtab_units::{Bytes, Time};

use crate::admission::Governor;
use crate::client::{Client, SharedApp};
use crate::clock::Clock;
use crate::connection::{Connection, connect};
use crate::error::RealError;
use crate::rig::Rig;
use crate::server::serve;
use crate::steering::{SharedInsight, Steered, steer};
use crate::sys;
use crate::watch::Watch;

/// What sockets may hold: from the start enough for the paths of any scenario, and at most 64 MB, so that the window
/// and not a buffer limits a flow.
pub(crate) const SOCKET_MEMORY: &str = "4096 1048576 67108864";

/// A flow before it has a connection.
pub(crate) struct Member {
    pub(crate) governor: Governor,
    pub(crate) app: App,
    pub(crate) start: Time,
}

/// A flow of the run.
pub(crate) struct Flow {
    pub(crate) connection: Connection,
    app: SharedApp,
    received: Arc<AtomicU64>,
    insight: SharedInsight,
}

/// Carries out a run; what it measured, and what the link says of itself.
pub(crate) fn run(
    rig: &Rig,
    prepared: &Prepared,
    job: &Job,
) -> Result<(Measurement, Report), RealError> {
    let members = members(prepared, job)?;
    let mut topology = topology()?;
    if prepared.plan.scenario.mark.is_some() {
        // The client asks for ECN, and the server's default is to agree.
        topology.client().set_sysctl("net.ipv4.tcp_ecn", "1")?;
    }
    let (down, up) = emulated::path(job.cell.rtt.first());
    let path = Config { down, up, seed: job.seed, log: None };
    let connections = establish(rig, &mut topology, &members, &path)?;
    let steerer = members[0].governor.steerer();
    let switches = steerer.is_some_and(|steerer| steerer.needs().switching);
    let ports = connections.iter().map(|c| c.port).collect();
    let watch = Arc::new(Mutex::new(Watch::new(ports)));
    let eye = Arc::clone(&watch);
    let link = link(prepared, job);
    topology.start_observed(&link, Box::new(move |passage| lock(&eye).see(passage)))?;
    let clock = Clock::start();
    let mut crew = Crew::default();
    let end = Time::ZERO + prepared.plan.scenario.duration;
    let flows = match crew.begin(members, connections, clock, end) {
        Ok(flows) => flows,
        Err(e) => {
            // The first error is the one to tell.
            let _ = crew.end();
            return Err(e);
        }
    };
    let mut run = KernelRun { flows, watch, clock, end, switching: None };
    run.switching = run.glance().filter(|_| switches).as_ref().map(switches::Watch::new);
    let measurement = Course::new(prepared, job, run).measure();
    let report = topology.stop();
    crew.end()?;
    Ok((measurement?, report?))
}

/// Namespaces in which the window and not a buffer limits a flow.
pub(crate) fn topology() -> Result<Topology, RealError> {
    let topology = Topology::new(ServerSide::Private)?;
    topology.client().set_sysctl("net.ipv4.tcp_rmem", SOCKET_MEMORY)?;
    topology.server().set_sysctl("net.ipv4.tcp_wmem", SOCKET_MEMORY)?;
    Ok(topology)
}

/// Who takes part: the flows of the simulator, and the same requests.
fn members(prepared: &Prepared, job: &Job) -> Result<Vec<Member>, RealError> {
    let member = |member: course::Member<'_>| {
        let governor = Governor::of(member.scheme, member.goal, prepared)?;
        Ok(Member { governor, app: member.app, start: Time::ZERO + member.start })
    };
    course::members(prepared, job).into_iter().map(member).collect()
}

/// The link of a run, as the simulator has it.
fn link(prepared: &Prepared, job: &Job) -> Config {
    let (down, up) = emulated::link(prepared, job);
    Config { down, up, seed: job.seed, log: None }
}

/// Connects every flow over a link that only delays: handshakes measure the path, and the run begins with all
/// connections established, as it does in the simulator.
pub(crate) fn establish(
    rig: &Rig,
    topology: &mut Topology,
    members: &[Member],
    path: &Config,
) -> Result<Vec<Connection>, RealError> {
    topology.start(path)?;
    let connections = members.iter().map(|m| connect(rig, topology, &m.governor)).collect();
    topology.stop()?;
    connections
}

/// The threads of a run.
#[derive(Default)]
pub(crate) struct Crew {
    threads: Vec<JoinHandle<()>>,
    /// All sockets, to end the threads that wait for them.
    sockets: Vec<TcpStream>,
    stop: Arc<AtomicBool>,
}

impl Crew {
    /// Starts all clients, servers and the steering.
    pub(crate) fn begin(
        &mut self,
        members: Vec<Member>,
        connections: Vec<Connection>,
        clock: Clock,
        end: Time,
    ) -> Result<Vec<Flow>, RealError> {
        let mut flows = Vec::new();
        let mut steered = Vec::new();
        for (member, connection) in members.into_iter().zip(connections) {
            let (client, server) =
                self.copies(&connection).map_err(RealError::system("copy a socket"))?;
            let app = SharedApp::new(member.app);
            let received = Arc::new(AtomicU64::new(0));
            let insight = SharedInsight::default();
            if let (Some(steerer), Some(flow)) = (member.governor.steerer(), &connection.flow) {
                let (link, app, insight) = (flow.clone().into(), app.clone(), insight.clone());
                steered.push(Steered::new(link, steerer, app, insight, member.start));
            }
            let client = Client {
                socket: client,
                app: app.clone(),
                received: Arc::clone(&received),
                clock,
                active: (member.start, end),
            };
            self.spawn(move || serve(server))?;
            // The run ends connections, so their errors say nothing.
            self.spawn(move || drop(client.run()))?;
            flows.push(Flow { connection, app, received, insight });
        }
        if !steered.is_empty() {
            let stop = Arc::clone(&self.stop);
            self.spawn(move || steer(steered, clock, &stop))?;
        }
        Ok(flows)
    }

    /// Copies of both sockets for their threads, and more to end these with.
    fn copies(&mut self, connection: &Connection) -> io::Result<(TcpStream, TcpStream)> {
        let Connection { client, server, .. } = connection;
        self.sockets.extend([client.try_clone()?, server.try_clone()?]);
        Ok((client.try_clone()?, server.try_clone()?))
    }

    fn spawn(&mut self, work: impl FnOnce() + Send + 'static) -> Result<(), RealError> {
        let thread = std::thread::Builder::new().spawn(work);
        self.threads.push(thread.map_err(RealError::system("start a thread"))?);
        Ok(())
    }

    /// Ends all connections and waits for the threads.
    pub(crate) fn end(self) -> Result<(), RealError> {
        self.stop.store(true, Ordering::Relaxed);
        for socket in self.sockets {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
        let ended: Vec<_> = self.threads.into_iter().map(JoinHandle::join).collect();
        if ended.iter().all(Result::is_ok) { Ok(()) } else { Err(RealError::Thread) }
    }
}

/// A run in progress.
struct KernelRun {
    flows: Vec<Flow>,
    watch: Arc<Mutex<Watch>>,
    clock: Clock,
    /// The end of the run, after which outstanding requests may finish.
    end: Time,
    /// Where the first flow switches algorithms.
    switching: Option<switches::Watch>,
}

impl KernelRun {
    /// The first flow, whose algorithm may change; `None` where it is no eBPF, or has ended.
    fn glance(&self) -> Option<Glance> {
        let flow = self.flows[0].connection.flow.as_ref()?;
        let switching = flow.switching()?;
        let watch = lock(&self.watch);
        let seen = &watch.flows()[0];
        Some(Glance {
            algorithm: flow.algorithm().name(),
            pending: switching.pending.map(|algorithm| algorithm.name()),
            switches: switching.switches.into(),
            sent: seen.packets,
            dropped: seen.dropped,
        })
    }

    /// Waits until then, or for an end by the user.
    fn wait(&self, until: Time) -> Result<(), RealError> {
        self.clock.sleep_until(until);
        if INTERRUPTED.load(Ordering::Relaxed) { Err(RealError::Interrupted) } else { Ok(()) }
    }
}

impl Run for KernelRun {
    type Error = RealError;

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn advance(&mut self, until: Time) -> Result<(), RealError> {
        while self.switching.is_some() && self.now() < until.min(self.end) {
            self.wait(until.min(self.now() + switches::STEP))?;
            let (now, glance) = (self.now(), self.glance());
            if let (Some(switching), Some(glance)) = (&mut self.switching, glance) {
                switching.look(now, &glance);
            }
        }
        self.wait(until)
    }

    fn goodput(&self, flow: usize) -> Bytes {
        self.flows[flow].received()
    }

    fn carried(&self) -> Bytes {
        lock(&self.watch).carried
    }

    fn outcome(&self, flow: usize, now: Time) -> Outcome {
        self.flows[flow].app.lock().outcome(now)
    }

    fn sample(&mut self) -> Sample {
        let (queue_delay_ms, rtt_ms) = {
            let mut watch = lock(&self.watch);
            (watch.recent_queue.take_mean_ms(), watch.recent_rtt.take_mean_ms())
        };
        let first = &self.flows[0];
        let delta = first.connection.flow.as_ref().and_then(|flow| flow.knob("delta").ok());
        Sample {
            queue_delay_ms,
            rtt_ms,
            cwnd_bytes: sys::info(&first.connection.server)
                .map_or(f64::NAN, |info| (info.packet * u64::from(info.window)).as_f64()),
            delta: delta.unwrap_or(f64::NAN),
            insight: first.insight.get(),
        }
    }

    fn totals(&self) -> Vec<Totals> {
        let watch = lock(&self.watch);
        let totals = watch.flows().iter().map(|seen| Totals {
            packets: seen.packets,
            retransmits: seen.retransmits,
            dropped: seen.dropped,
            rtt: Delays::from(&seen.rtt),
            rtts: seen.rtt.micros().clone(),
            queue: Delays::from(&seen.queue),
        });
        totals.collect()
    }

    fn switches(&self, series: &Series, endless: bool) -> Vec<SwitchRecord> {
        let switching = self.switching.as_ref();
        switching.map_or_else(Vec::new, |switching| switching.records(series, endless))
    }

    fn selections(&self, own: usize) -> Option<SelectionsRecord> {
        selection::record(self.flows[..own].iter().map(|flow| flow.insight.get()))
    }
}

impl Flow {
    /// Bytes that its client has got.
    pub(crate) fn received(&self) -> Bytes {
        Bytes::new(self.received.load(Ordering::Relaxed))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_is_told_at_the_end() {
        let mut crew = Crew::default();
        crew.spawn(|| ()).unwrap();
        crew.spawn(|| std::panic::resume_unwind(Box::new("a test"))).unwrap();
        assert!(matches!(crew.end(), Err(RealError::Thread)));
        let mut crew = Crew::default();
        let stop = Arc::clone(&crew.stop);
        crew.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        })
        .unwrap();
        crew.end().unwrap();
    }
}
