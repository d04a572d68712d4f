//! The daemon: one thread looks after all connections, a few more open the doors (control, hints, metrics).

pub(crate) mod governor;
mod limit;
pub(crate) mod lock;
pub(crate) mod logging;
pub(crate) mod note;
pub(crate) mod notify;
mod slots;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use log::{Level, error, info, warn};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use trimtab_fleet_client::edge::Edge;
use trimtab_fleet_client::{HostComparisons, RuleCompared};
use trimtab_kernel::{Algorithm, Datapath, Event, EventKind, Flow, Identity, Origin};
use trimtab_units::{Duration, Time};

use crate::config::{Config, Fleet};
use crate::core::{Before, Core};
use crate::daemon::note::Note;
use crate::daemon::slots::{Full, Room};
use crate::datapath::algorithm;
use crate::doors::access::{Access, Peer};
use crate::doors::control::{self, Question};
use crate::doors::hints;
use crate::doors::http;
use crate::doors::metrics;
use crate::doors::table::count;
use crate::doors::view::{DatapathStatus, EdgeStatus, Frame, Programs, Status};
use crate::error::Error;
use crate::kernel::assign::Assignment;
use crate::kernel::default::DefaultAlgorithm;
use crate::kernel::places::Namespaces;
use crate::kernel::sock_diag::{SockDiag, own_netns};
use crate::loader::client::Hand;
use crate::loader::{self, Client};
use crate::operate::file::OrderFile;
use crate::operate::holds::Holds;
use crate::operate::{Done, Order};

/// The loop wakes at least so often, and at most so often when events do not come.
const WAIT_MAX: Duration = Duration::from_millis(250);
const WAIT_MIN: Duration = Duration::from_millis(1);
/// Between looks at what changes rarely.
const CHORES: Duration = Duration::from_secs(1);
/// Between looks for slots whose connections are gone without a word from the kernel.
const REAP: Duration = Duration::from_secs(10);
/// Between walks over connections on former programs, which get the present ones when they rest.
const RENEW: Duration = Duration::from_secs(10);
/// Between hand-ins of comparisons to the engine of a fleet.
const COMPARED: Duration = Duration::from_secs(60);
/// Ended connections that are looked up in a second, to see whether they only changed their algorithm.
const LOOK_UPS: usize = 50;
/// Lines on connections in a second; further ones are counted.
const NOTES: usize = 20;

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    core: Mutex<Core<Datapath>>,
    frame: Mutex<Frame>,
    /// Where orders are kept. Locked before the core, so that the newest are written last.
    orders: Mutex<OrderFile>,
    /// An order changed what sockets are to run.
    ordered: AtomicBool,
    /// Whether an application has sent a hint for a connection that has no slot.
    hinted: AtomicBool,
}

impl Shared {
    pub(crate) fn core(&self) -> MutexGuard<'_, Core<Datapath>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn frame(&self) -> MutexGuard<'_, Frame> {
        self.frame.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An application has sent a hint for a connection that has no slot, perhaps not yet.
    pub(crate) fn on_early_hint(&self) {
        if !self.hinted.swap(true, Ordering::Relaxed) {
            let core = self.core();
            slots::tell(core.datapath(), core.config(), true);
        }
    }

    fn status(&self) -> Status {
        let frame = self.frame().clone();
        self.core().status(&frame, trimtab_kernel::now())
    }

    /// Does what an operator asks for, and keeps it.
    fn order(&self, order: &Order, by: &Peer) -> Result<Done, String> {
        let now = trimtab_kernel::now();
        let mut done = self.core().operate(order, &by.name(), now)?;
        self.ordered.store(true, Ordering::Relaxed);
        let (name, target) = (by.name(), &order.target);
        info!(by = name.as_str(), order_target:% = target; "{}, by order of {name}", done.text);
        if let Err(error) = self.keep_orders() {
            warn!("{error}");
            done.text = format!("{}. But: {error}", done.text);
        }
        Ok(done)
    }

    fn keep_orders(&self) -> Result<(), Error> {
        let file = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = self.core().holds().clone();
        file.write(&holds, trimtab_kernel::now())
    }

    fn answer(&self, question: &Question, by: &Peer) -> Result<serde_json::Value, String> {
        let now = trimtab_kernel::now();
        let told = match question {
            Question::Status => serde_json::to_value(self.status()),
            Question::Flows => {
                let flows = self.core().flows(now);
                serde_json::to_value(flows)
            }
            Question::Why { flow } => {
                let why = self.core().why(flow, now)?;
                serde_json::to_value(why)
            }
            Question::Order { order } => {
                let done = self.order(order, by)?;
                serde_json::to_value(done)
            }
        };
        told.map_err(|e| e.to_string())
    }
}

/// A flag that a signal sets.
fn on_signal(signal: i32) -> Result<Arc<AtomicBool>, Error> {
    let flag = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal, Arc::clone(&flag))
        .map_err(|e| Error::system("wait for signals", e))?;
    Ok(flag)
}

/// A door that cannot be served any more.
fn closed(door: &str, served: std::io::Result<()>) {
    if let Err(error) = served {
        error!("the {door} socket failed and serves no clients: {error}; restart the agent");
    }
}

/// What is not as a configuration has it, when it comes into force.
fn tell_of(config: &Config) {
    config.troubles().iter().for_each(|trouble| warn!("{trouble}"));
    config.remarks().iter().for_each(|remark| info!("{remark}"));
}

/// Runs the agent by a configuration file until SIGTERM or SIGINT; SIGHUP reads the file again. What is loaded stays in
/// the kernel. Connections get back what they had before they were steered; when the agent is killed they keep their
/// knobs, until the next agent or `trimtab agent unload`.
///
/// This process becomes the loader, and starts its own program, with the same arguments, as the
/// steerer: there this function is the steerer. Where that fails, it reports why, and this process
/// ends with its exit status.
///
/// # Errors
/// The configuration is wrong, another agent runs, the kernel lacks something, or a socket cannot be made.
pub fn run(path: &Path) -> Result<(), Error> {
    match loader::as_steerer()? {
        Some((channel, loader)) => steer(path, Arc::new(Client::new(channel)), loader),
        None => loader::run(path),
    }
}

/// The steerer of a loader, whose process this is.
fn steer(path: &Path, client: Arc<Client>, loader: u32) -> Result<(), Error> {
    loader::confine()?;
    let config = Config::read(path)?;
    logging::say(config.log, config.log_format);
    let reload = on_signal(SIGHUP)?;
    let stops = [on_signal(SIGTERM)?, on_signal(SIGINT)?];
    let edge = config.fleet.as_ref().map(start_edge).transpose()?;
    let Hand { datapath, control, hints, metrics, locks: _locks, system } = client.take()?;
    let limit = limit::trouble(config.datapath.slots);
    limit.iter().for_each(|trouble| warn!("{trouble}"));
    let from = Loaded { client, loader, datapath, system };
    let mut agent = Agent::new(path, config, edge, from)?;
    agent.limit = limit;
    agent.open_doors(control, hints, metrics)?;
    agent.loader.ready();
    while !stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
        if reload.swap(false, Ordering::Relaxed) {
            agent.reload();
        }
        agent.step()?;
    }
    agent.stop()
}

/// What the loader has done, and who it is.
struct Loaded {
    client: Arc<Client>,
    /// Its process.
    loader: u32,
    datapath: Datapath,
    /// What connections run where no agent has set the default.
    system: Option<String>,
}

fn start_edge(fleet: &Fleet) -> Result<Arc<Edge>, Error> {
    let refused = |why: String| Error::Refused(format!("[fleet]: {why}"));
    let options = fleet.options().map_err(refused)?;
    Edge::start(&options).map(Arc::new).map_err(|e| refused(e.to_string()))
}

/// How what is in the kernel came there.
fn came(datapath: &Datapath) -> String {
    if let Some(trouble) = datapath.unreached() {
        warn!("{trouble}");
    }
    let version = datapath.version();
    match datapath.origin() {
        Origin::Loaded => "loaded".to_owned(),
        Origin::Adopted => "found in the kernel".to_owned(),
        Origin::Replaced(former) => {
            let open: u64 = datapath.formers().iter().map(|former| former.connections).sum();
            format!(
                "took the place of other programs or options (layout {}, {} slots; now layout {}, \
                 {} slots), which {open} open connections keep until they close",
                former.layout, former.slots, version.layout, version.slots
            )
        }
    }
}

/// Gives connections on former programs their algorithms' own knobs: an agent that was killed has
/// left them others, and no agent guards them any more. Not only where this agent has replaced
/// something: the one that did may have been killed then.
fn give_own_knobs(datapath: &Datapath) {
    let formers = datapath.former_flows().unwrap_or_else(|error| {
        warn!(
            "connections on former programs keep their last knobs until they close: {error}; \
             restart the agent to try again"
        );
        Vec::new()
    });
    let given = formers.iter().filter(|flow| reset_knobs(flow)).count();
    if given > 0 {
        info!("{} on former programs got back their own knobs", count(given, "connection"));
    }
}

/// Gives a connection its algorithm's own knobs; whether it had others. Muses keeps its model:
/// without one it could not decide.
pub(crate) fn reset_knobs(flow: &Flow) -> bool {
    if flow.algorithm() == Algorithm::Muses {
        return false;
    }
    let mut had_others = false;
    for knob in flow.algorithm().knobs() {
        let is_another = |now: f64| (now - knob.default).abs() > 1e-3 * knob.default.abs();
        if flow.knob(knob.name).is_ok_and(is_another) {
            // An error is the connection's end.
            had_others |= flow.set(knob.name, knob.default).is_ok();
        }
    }
    had_others
}
/// What is known before the first connection: the orders in force, and what the system would run.
fn before(system: Option<&str>, loader: &Arc<Client>, orders: &OrderFile, now: Time) -> Before {
    let holds = orders.read(now).unwrap_or_else(|error| {
        warn!("{error}");
        Holds::default()
    });
    for hold in holds.status(now) {
        info!(
            "{} is {} since before the start, by order of {}",
            hold.target,
            hold.held.name(),
            hold.by
        );
    }
    let namespaces = Namespaces::Loader(Arc::clone(loader));
    Before { holds, system: system.and_then(algorithm), namespaces }
}

struct Agent {
    path: PathBuf,
    shared: Arc<Shared>,
    events: trimtab_kernel::Events,
    loader: Arc<Client>,
    default: Option<DefaultAlgorithm>,
    assignment: Assignment,
    /// What is wrong with the configuration on disk, when the one before is kept.
    refused: Option<String>,
    /// What rules name and was not there at the last chores.
    missing: Vec<String>,
    edge: Option<Arc<Edge>>,
    /// Whether the log was told that something is wrong with it.
    edge_told: bool,
    /// The same of what it tells the kernel ahead.
    ahead_told: bool,
    diag: Option<(SockDiag, u64)>,
    /// Connections that have ended since the last chores.
    ended: Vec<Identity>,
    /// Notes since the last chores.
    notes: usize,
    lost_events: u64,
    /// Connections that ended without a close event from the kernel.
    reaped: u64,
    chores_at: Time,
    reaped_at: Time,
    /// When comparisons were last handed to the engine of a fleet.
    compared_at: Time,
    /// What is wrong with the limit of memory.
    limit: Option<String>,
    room: Room,
    /// Open connections when slots were last looked through.
    open: usize,
    renewed_at: Time,
    cpu: Duration,
}

impl Agent {
    fn new(
        path: &Path,
        config: Config,
        edge: Option<Arc<Edge>>,
        from: Loaded,
    ) -> Result<Self, Error> {
        let Loaded { client, loader, datapath, system } = from;
        let now = trimtab_kernel::now();
        let events = datapath.events()?;
        let name = datapath.name().to_owned();
        let there = came(&datapath);
        give_own_knobs(&datapath);
        let programs = Programs::of(&datapath);
        let assignment = Assignment::new(Arc::clone(&client), &config, now);
        slots::tell(&datapath, &config, false);
        let orders = OrderFile::at(&config.sockets.state());
        let before = before(system.as_deref(), &client, &orders, now);
        let core = Core::begin(datapath, config, edge.clone(), before, now);
        let open = core.len();
        tell_of(core.config());
        info!("{name} {there}; {} taken over", count(core.adopted(), "connection"));
        let frame = Frame {
            config: path.display().to_string(),
            pid: loader,
            algorithm: name,
            since: now,
            troubles: Vec::new(),
            assigned: Vec::new(),
            datapath: DatapathStatus::default(),
            programs,
            edge: None,
        };
        let diag = SockDiag::open().ok().zip(own_netns());
        let mut agent = Self {
            path: path.to_owned(),
            shared: Arc::new(Shared {
                core: Mutex::new(core),
                frame: Mutex::new(frame),
                orders: Mutex::new(orders),
                ordered: AtomicBool::new(false),
                hinted: AtomicBool::new(false),
            }),
            events,
            loader: client,
            default: None,
            assignment,
            refused: None,
            missing: Vec::new(),
            edge,
            edge_told: false,
            ahead_told: false,
            diag,
            ended: Vec::new(),
            notes: 0,
            lost_events: 0,
            reaped: 0,
            chores_at: now,
            reaped_at: now,
            compared_at: now,
            limit: None,
            room: Room::default(),
            open,
            renewed_at: now,
            cpu: cpu_time(),
        };
        agent.set_default()?;
        agent.chores(now);
        Ok(agent)
    }

    fn open_doors(
        &self,
        control: UnixListener,
        hints: Option<OwnedFd>,
        metrics: Option<TcpListener>,
    ) -> Result<(), Error> {
        let access = Access::new(&self.shared.core().config().sockets)?;
        if let Some(listener) = hints {
            let shared = Arc::clone(&self.shared);
            spawn("hints", move || hints::serve(listener, shared))?;
        }
        if let Some(listener) = metrics {
            let (shared, loader) = (Arc::clone(&self.shared), Arc::clone(&self.loader));
            spawn("metrics", move || {
                let page = || metrics::page(shared.status(), loader.program_time());
                closed("metrics", http::serve(&listener, page));
            })?;
        }
        // Last: who gets an answer here finds the other doors open.
        let shared = Arc::clone(&self.shared);
        spawn("control", move || {
            let answer = |question, by: &Peer| shared.answer(&question, by);
            closed("control", control::serve(&control, &access, answer));
        })?;
        Ok(())
    }

    fn set_default(&mut self) -> Result<(), Error> {
        let wanted = {
            let core = self.shared.core();
            core.config().default_algorithm && !core.holds().restore_all()
        };
        if wanted {
            self.loader.set_default()?;
            self.default = Some(DefaultAlgorithm::new(&self.shared.frame().algorithm));
        } else if self.default.take().is_some() {
            self.loader.restore_default()?;
        }
        Ok(())
    }

    /// Waits for events or for the next connection that is due, and does what there is to do.
    fn step(&mut self) -> Result<(), Error> {
        let now = trimtab_kernel::now();
        let (next, notes, alerts) = {
            let mut core = self.shared.core();
            let next = core.run(now);
            let cpu = cpu_time();
            core.on_spent(now, cpu - self.cpu);
            self.cpu = cpu;
            (next, core.take_notes(), core.take_alerts())
        };
        if !alerts.is_empty() {
            alerts.iter().for_each(|alert| alert.log(Level::Warn));
            self.shared.ordered.store(true, Ordering::Relaxed);
            if let Err(error) = self.shared.keep_orders() {
                warn!("{error}");
            }
        }
        self.tell_some(&notes);
        if self.shared.ordered.swap(false, Ordering::Relaxed) {
            // What sockets run follows at once.
            self.assignment.hurry(now);
            self.set_default()?;
            self.chores_at = now;
            self.chores(now);
        }
        if now.since(self.chores_at) >= CHORES {
            self.chores_at = now;
            self.chores(now);
        }
        let wait = next.map_or(WAIT_MAX, |next| next.since(trimtab_kernel::now()));
        let wait = wait.clamp(WAIT_MIN, WAIT_MAX).as_nanos();
        let events = self.events.wait(std::time::Duration::from_nanos(wait))?;
        self.on_events(&events);
        Ok(())
    }

    /// Tells what is new of connections, but not of thousands at once.
    fn tell_some(&mut self, notes: &[Note]) {
        let room = NOTES.saturating_sub(self.notes);
        notes.iter().take(room).for_each(|note| note.log(Level::Info));
        self.notes += notes.len();
    }

    fn on_events(&mut self, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let now = trimtab_kernel::now();
        let mut core = self.shared.core();
        for event in events {
            if matches!(event.kind, EventKind::Close(_)) && self.ended.len() < LOOK_UPS {
                self.ended.extend(core.identity(event.id));
            }
            core.on_event(event, now);
        }
    }

    /// Whether connections that are gone from the datapath are still open, with an algorithm that
    /// somebody gave them. Not at once: the kernel tells of the end before it puts the other
    /// algorithm in place.
    fn look_up_ended(&mut self) {
        let ended = std::mem::take(&mut self.ended);
        let Some((diag, netns)) = &self.diag else { return };
        let by_others = |who: &&Identity| !self.assignment.has_moved(who);
        for who in ended.iter().filter(|who| who.netns_cookie == *netns).filter(by_others) {
            if let Ok(Some(found)) = diag.find(who, who.cookie)
                && !found.algorithm.is_empty()
                && !self.assignment.is_ours(&found.algorithm)
            {
                let network = logging::network(who.remote.ip());
                info!(
                    connection = who.id.0, network:%, algorithm = found.algorithm.as_str();
                    "{}: was given {} by hand, and is left to it",
                    logging::connection(who),
                    found.algorithm
                );
            }
        }
    }

    /// What need not be done more than once a second.
    fn chores(&mut self, now: Time) {
        if self.notes > NOTES {
            info!("and {} more like these within a second", self.notes - NOTES);
        }
        self.notes = 0;
        self.look_up_ended();
        self.expire_orders(now);
        let told = self.assignment.run(&self.shared, now);
        let notes: Vec<Note> = told.into_iter().map(Note::from).collect();
        self.tell_some(&notes);
        if let Some(trouble) = self.default.as_mut().and_then(DefaultAlgorithm::look) {
            warn!("{trouble}");
        }
        let default = self.default.as_ref().and_then(DefaultAlgorithm::trouble);
        let mut core = self.shared.core();
        let reaped = if now.since(self.reaped_at) >= REAP {
            self.reaped_at = now;
            core.sweep(now);
            self.open = core.len();
            core.datapath().reap()
        } else {
            Ok(Vec::new())
        };
        let stats = core.datapath().stats();
        self.room.make(&mut core, &stats, now);
        let full = Full::of(core.datapath(), &stats);
        let cgroup_slots = core.datapath().cgroup_slots();
        let programs = Programs::of(core.datapath());
        if stats.lost_events != self.lost_events {
            self.lost_events = stats.lost_events;
            core.find_all(now);
            core.sweep(now);
        }
        if let Ok(gone) = &reaped {
            core.gone(gone);
        }
        if !programs.former.is_empty() && now.since(self.renewed_at) >= RENEW {
            self.renewed_at = now;
            core.datapath().renew_soon();
        }
        let of_rules = core.config().troubles();
        let missing = core.missing(now);
        let ahead = core.ahead().trouble().map(str::to_owned);
        drop(core);
        if ahead.is_some() != self.ahead_told {
            self.ahead_told = ahead.is_some();
            match &ahead {
                Some(trouble) => warn!("{trouble}"),
                None => info!("new connections begin with the learnt knobs again"),
            }
        }
        self.reaped += reaped.as_ref().map_or(0, |gone| gone.len() as u64);
        match reaped {
            Ok(gone) if gone.is_empty() => {}
            Ok(gone) => info!(
                "{} ended without a close event from the kernel; their slots are free again",
                count(gone.len(), "connection")
            ),
            Err(error) => warn!("{error}"),
        }
        missing.iter().filter(|what| !self.missing.contains(what)).for_each(|what| warn!("{what}"));
        self.missing.clone_from(&missing);
        let full = self.room.troubles(&full);
        self.tell_comparisons(now);
        let edge = self.edge.as_ref().map(|edge| edge.status());
        let of_edge = edge.as_ref().and_then(|edge| edge.trouble.clone());
        if of_edge.is_some() != self.edge_told {
            self.edge_told = of_edge.is_some();
            match &of_edge {
                Some(trouble) => warn!("{trouble}"),
                None => info!("the fleet's engine answers again"),
            }
        }
        let mut frame = self.shared.frame();
        frame.programs = programs;
        frame.datapath = DatapathStatus {
            slots: stats.slots,
            taken: stats.live,
            cgroup_slots,
            slotless: stats.slotless,
            over_quota: stats.over_quota,
            brief: stats.brief,
            lost_events: stats.lost_events,
            reaped: self.reaped,
        };
        frame.edge = edge.as_ref().map(EdgeStatus::from);
        frame.troubles = default
            .into_iter()
            .chain(self.assignment.trouble())
            .chain(of_rules)
            .chain(missing)
            .chain(of_edge)
            .chain(ahead)
            .chain(full)
            .chain(self.limit.clone())
            .chain(self.refused.clone())
            .collect();
        drop(frame);
        self.loader.alive(&count(self.open, "connection"));
    }

    /// Hands what the rules' comparisons found to the engine of the fleet, once a minute.
    fn tell_comparisons(&mut self, now: Time) {
        let Some(edge) = self.edge.as_ref().filter(|_| now.since(self.compared_at) >= COMPARED)
        else {
            return;
        };
        self.compared_at = now;
        let found = self.shared.core().comparing().comparisons(now);
        if !found.is_empty() {
            let rules = found.iter().map(RuleCompared::from).collect();
            edge.compared(HostComparisons { host: host_name(), rules });
        }
    }

    /// Orders whose time is over end, and what sockets run follows.
    fn expire_orders(&mut self, now: Time) {
        let over = self.shared.core().expire_orders(now);
        if over.is_empty() {
            return;
        }
        over.iter().for_each(|what| info!("{what}: the time of the order is over"));
        self.assignment.hurry(now);
        let kept = self.shared.keep_orders().and_then(|()| self.set_default());
        if let Err(error) = kept {
            warn!("{error}");
        }
    }

    /// Reads the configuration again, and keeps the one in force when it is wrong.
    fn reload(&mut self) {
        let now = trimtab_kernel::now();
        match self.take_over(now) {
            Ok(()) => {
                self.refused = None;
                info!("configuration taken over");
            }
            Err(error) => {
                let refused = format!(
                    "cannot use the new configuration, so the old one stays in force: {error}"
                );
                warn!("{refused}");
                self.refused = Some(refused);
            }
        }
        self.chores(now);
        self.loader.ready();
    }

    fn take_over(&mut self, now: Time) -> Result<(), Error> {
        let config = Config::read(&self.path)?;
        let mut core = self.shared.core();
        let before = core.config();
        let fixed = |config: &Config| {
            let Config { user, sockets, datapath, fleet, .. } = config;
            (user.clone(), sockets.clone(), datapath.clone(), fleet.clone())
        };
        if fixed(before) != fixed(&config) {
            return Err(Error::Refused(
                "user, [sockets], [datapath] and [fleet] cannot change while the agent runs: restart it"
                    .to_owned(),
            ));
        }
        self.loader.reload()?;
        logging::say(config.log, config.log_format);
        tell_of(&config);
        self.assignment.follow(&config, now);
        core.reload(config, now);
        slots::tell(core.datapath(), core.config(), self.shared.hinted.load(Ordering::Relaxed));
        drop(core);
        self.set_default()
    }

    fn stop(self) -> Result<(), Error> {
        // Nothing guards them any more.
        self.shared.core().put_back(trimtab_kernel::now());
        info!("stopped; connections have their earlier knobs again");
        self.default.map_or(Ok(()), |_| self.loader.restore_default())
    }
}

/// A thread that lasts as long as its work.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
        .map_err(|e| Error::system(format!("start the thread {name}"), e))
}

/// The name of this machine, as the kernel has it.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // It counts up from 0.
    Duration::from_nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}
