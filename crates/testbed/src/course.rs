//! The course of a run: a link, its flows, and what is noted while they run.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use trimtab_apps::{App, Application, BulkConfig};
use trimtab_emu::{Config, Report, ServerSide, Topology};
use trimtab_lab::result::Series;
use trimtab_lab::run::course::{BIN, GRACE, is_answered};
use trimtab_lab::run::links;
use trimtab_lab::run::pool::INTERRUPTED;
use trimtab_lab::run::prepare::{Prepared, PreparedApp};
use trimtab_lab::run::record::{Delays, FlowMeasurement, Measurement};
use trimtab_lab::scenario::{AppKind, Job};
use trimtab_net::{Capacity, JitterConfig, LinkConfig, LossConfig, MarkConfig};
use trimtab_steer::scheme::Scheme;
use trimtab_units::{Bytes, Duration, Rate, Time};

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
struct Member {
    governor: Governor,
    app: App,
    start: Time,
}

/// A flow of the run.
struct Flow {
    connection: Connection,
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
    let (own_flows, members) = members(prepared, job)?;
    let mut topology = Topology::new(ServerSide::Private)?;
    topology.client().set_sysctl("net.ipv4.tcp_rmem", SOCKET_MEMORY)?;
    topology.server().set_sysctl("net.ipv4.tcp_wmem", SOCKET_MEMORY)?;
    if prepared.plan.scenario.mark.is_some() {
        // The client asks for ECN, and the server's default is to agree.
        topology.client().set_sysctl("net.ipv4.tcp_ecn", "1")?;
    }
    let connections = establish(rig, &mut topology, &members, job)?;
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
    let mut course = Course {
        capacity: links::at_seed(&prepared.plan.links[job.trace], job.seed),
        flows,
        own_flows,
        watch,
        clock,
        series: Series { bin_ms: BIN.as_millis_f64(), ..Series::default() },
        delivered_before: Bytes::ZERO,
    };
    let measurement = course.measure(Time::ZERO + prepared.plan.scenario.warmup, end);
    let report = topology.stop();
    crew.end()?;
    Ok((measurement?, report?))
}

/// Who takes part, and how many of them are the contender's: those come first.
fn members(prepared: &Prepared, job: &Job) -> Result<(usize, Vec<Member>), RealError> {
    let scenario = &prepared.plan.scenario;
    let app = &prepared.apps[job.app];
    // The same requests as in the simulator. Checked when the application was prepared: only the seed differs.
    let client = |kind: AppKind, number: u64| {
        app.app(kind, scenario.duration, job.seed + (number << 20))
            .unwrap_or_else(|_| App::bulk(&BulkConfig::default()))
    };
    let mut members = Vec::new();
    for number in 0..u64::from(job.cell.flows) {
        members.push(Member {
            governor: governor(prepared, &scenario.cc[job.contender], app)?,
            app: client(app.settings.kind, number),
            start: Time::from_nanos(scenario.stagger.as_nanos().saturating_mul(number)),
        });
    }
    let own_flows = members.len();
    for competitor in &scenario.competitor {
        for _ in 0..competitor.flows {
            let app = client(competitor.app, members.len() as u64);
            let governor = governor(prepared, &competitor.cc, &prepared.apps[job.app])?;
            members.push(Member { governor, app, start: Time::ZERO + competitor.start });
        }
    }
    Ok((own_flows, members))
}

fn governor(
    prepared: &Prepared,
    contender: &Scheme,
    app: &PreparedApp,
) -> Result<Governor, RealError> {
    Governor::of(contender, app, prepared.policy_of(contender))
}

/// Half of the base round trip: the propagation delay of each direction.
fn one_way(job: &Job) -> Duration {
    job.cell.rtt.mul_f64(0.5)
}

/// A direction that only delays.
fn delay(by: Duration) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(by)
}

/// The link of a run, as the simulator has it.
fn link(prepared: &Prepared, job: &Job) -> Config {
    let capacity = links::at_seed(&prepared.plan.links[job.trace], job.seed);
    let loss = job.cell.loss.get();
    let rate = capacity.mean_rate();
    let queue = job.cell.queue(rate);
    let mark = prepared.plan.scenario.mark;
    // There the packets are delayed on their way to the queue, here behind it: so that they meet the trace at the
    // same moment of the run, it is that much ahead.
    let down = LinkConfig::new(ahead(capacity, one_way(job)))
        .queue(queue)
        .mark(mark.map_or(MarkConfig::None, |mark| mark.on(rate, job.cell.rtt)))
        .loss(if loss > 0.0 { LossConfig::Independent(loss) } else { LossConfig::None })
        .jitter(match job.cell.jitter {
            Duration::ZERO => JitterConfig::None,
            max => JitterConfig::Uniform { max },
        })
        .delay(one_way(job));
    let up = delay(job.cell.rtt - one_way(job));
    Config { down, up, seed: job.seed, log: None }
}

/// The same capacity, `by` later in its trace.
fn ahead(mut capacity: Capacity, by: Duration) -> Capacity {
    if let Capacity::Trace { offset, .. } = &mut capacity {
        *offset += by;
    }
    capacity
}

/// Connects every flow over a link that only delays: handshakes measure the path, and the run begins with all
/// connections established, as it does in the simulator.
fn establish(
    rig: &Rig,
    topology: &mut Topology,
    members: &[Member],
    job: &Job,
) -> Result<Vec<Connection>, RealError> {
    let (down, up) = (delay(one_way(job)), delay(job.cell.rtt - one_way(job)));
    topology.start(&Config { down, up, seed: job.seed, log: None })?;
    let connections = members.iter().map(|m| connect(rig, topology, &m.governor)).collect();
    topology.stop()?;
    connections
}

/// The threads of a run.
#[derive(Default)]
struct Crew {
    threads: Vec<JoinHandle<()>>,
    /// All sockets, to end the threads that wait for them.
    sockets: Vec<TcpStream>,
    stop: Arc<AtomicBool>,
}

impl Crew {
    /// Starts all clients, servers and the steering.
    fn begin(
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
                let (flow, app, insight) = (flow.clone(), app.clone(), insight.clone());
                let next = member.start;
                steered.push(Steered { flow, steerer, app, insight, next, reporter: None });
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
    fn end(self) -> Result<(), RealError> {
        self.stop.store(true, Ordering::Relaxed);
        for socket in self.sockets {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
        let ended: Vec<_> = self.threads.into_iter().map(JoinHandle::join).collect();
        if ended.iter().all(Result::is_ok) { Ok(()) } else { Err(RealError::Thread) }
    }
}

/// What was delivered by a point in time.
struct Mark {
    at: Time,
    goodput: Vec<Bytes>,
    carried: Bytes,
}

/// A run in progress.
struct Course {
    capacity: Capacity,
    flows: Vec<Flow>,
    own_flows: usize,
    watch: Arc<Mutex<Watch>>,
    clock: Clock,
    series: Series,
    /// What the contender's flows had received when the last bin ended.
    delivered_before: Bytes,
}

impl Course {
    /// Waits until the run is over, outstanding requests and all; what was measured.
    fn measure(&mut self, warm: Time, end: Time) -> Result<Measurement, RealError> {
        let mut from = None;
        let mut now = Time::ZERO;
        while now < end {
            if from.is_none() && now >= warm {
                from = Some(self.mark());
            }
            let next = end.min(now + BIN);
            self.wait_until(next)?;
            self.bin(now, next);
            now = next;
        }
        let to = self.mark();
        while !self.is_answered() && self.clock.now() < end + GRACE {
            self.wait_until(self.clock.now() + BIN)?;
        }
        Ok(self.sum_up(&from.unwrap_or_else(|| self.mark()), &to))
    }

    fn wait_until(&self, then: Time) -> Result<(), RealError> {
        self.clock.sleep_until(then);
        if INTERRUPTED.load(Ordering::Relaxed) { Err(RealError::Interrupted) } else { Ok(()) }
    }

    fn own(&self) -> &[Flow] {
        &self.flows[..self.own_flows]
    }

    fn is_answered(&self) -> bool {
        let now = self.clock.now();
        self.own().iter().all(|flow| is_answered(&flow.app.lock().outcome(now)))
    }

    fn mark(&self) -> Mark {
        Mark {
            at: self.clock.now(),
            goodput: self.flows.iter().map(Flow::received).collect(),
            carried: lock(&self.watch).carried,
        }
    }

    /// Notes what happened in a bin.
    fn bin(&mut self, from: Time, until: Time) {
        let span = until.since(from);
        let delivered: Bytes = self.own().iter().map(Flow::received).sum();
        let rate = (delivered - self.delivered_before) / span;
        let (queue, rtt) = {
            let mut watch = lock(&self.watch);
            (watch.recent_queue.take_mean_ms(), watch.recent_rtt.take_mean_ms())
        };
        let first = &self.flows[0];
        let window = sys::window(&first.connection.server).map_or(f64::NAN, Bytes::as_f64);
        let delta = first.connection.flow.as_ref().and_then(|flow| flow.knob("delta").ok());
        let insight = first.insight.get();
        let s = &mut self.series;
        s.capacity_mbps.push((self.capacity.bytes_between(from, until) / span).mbps());
        s.throughput_mbps.push(rate.mbps());
        s.queue_delay_ms.push(queue);
        s.rtt_ms.push(rtt);
        s.cwnd_bytes.push(window);
        s.delta.push(delta.unwrap_or(f64::NAN));
        s.lambda.push(insight.preference.map_or(f64::NAN, |hints| hints.lambda));
        s.tau.push(insight.tradeoff.unwrap_or(f64::NAN));
        self.delivered_before = delivered;
    }

    fn sum_up(&mut self, from: &Mark, to: &Mark) -> Measurement {
        let ended = self.clock.now();
        let watch = lock(&self.watch);
        let measured = self.flows.iter().zip(watch.flows()).enumerate();
        let mut own: Vec<FlowMeasurement> = measured
            .map(|(i, (flow, seen))| FlowMeasurement {
                goodput: to.goodput[i] - from.goodput[i],
                packets: seen.packets,
                retransmits: seen.retransmits,
                dropped: seen.dropped,
                rtt: Delays::from(&seen.rtt),
                queue: Delays::from(&seen.queue),
                outcome: flow.app.lock().outcome(ended),
            })
            .collect();
        let competing = own.split_off(self.own_flows);
        Measurement {
            ended,
            span: to.at.since(from.at),
            carried: to.carried - from.carried,
            capacity: self.capacity.bytes_between(from.at, to.at),
            own,
            competing,
            series: std::mem::take(&mut self.series),
            switches: Vec::new(),
            selections: None,
        }
    }
}

impl Flow {
    fn received(&self) -> Bytes {
        Bytes::new(self.received.load(Ordering::Relaxed))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
