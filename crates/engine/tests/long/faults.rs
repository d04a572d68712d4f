//! Random faults on real servers that write to the disk: PostgreSQL, NATS, an engine as a process
//! and edges with their real outbox, in real time.
//!
//! `TRIMTAB_REAL_FAULTS` sets how many short faults are drawn, `TRIMTAB_REAL_OUTAGES` how many
//! outages of ten minutes follow, `TRIMTAB_FAULTS_SEED` what is drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration as StdDuration, Instant};

use trimtab_fleet_client::edge::{Edge, Key, Observation, Options};
use trimtab_fleet_client::{Action, DecisionBody, Name, OrderBody};
use trimtab_servers::{Servers, Which};
use trimtab_units::{Rate, Time};

use super::proxy::Proxy;
use crate::common::{Chance, Process, Site, now_ms};

/// Short faults and outages, where nobody asks for more.
const USUAL: (u64, u64) = (3, 0);
/// Draws a kill of PostgreSQL, one of the engine and one of NATS first.
const SEED: u64 = 59;
const OUTAGE: StdDuration = StdDuration::from_secs(600);
/// A short fault lasts so long at most, and the next one begins so long after it at most, in s.
const SHORT_S: f64 = 8.0;
const GAP_S: f64 = 5.0;
/// How far a clock is off, in ms.
const OFF_MS: i64 = 300_000;
const INTERVAL_S: u64 = 6;
/// Less than an interval, as it has to be.
const GRACE_S: u64 = 5;
/// The aggregates of each edge; both have the first one.
const PREFIXES: [[&str; 2]; 2] =
    [["203.0.113.0/24", "198.51.100.0/24"], ["203.0.113.0/24", "192.0.2.0/24"]];
const LOOK: StdDuration = StdDuration::from_millis(200);

fn asked(name: &str, usual: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return usual };
    text.parse().unwrap_or_else(|e| panic!("{name}={text:?} is no whole number: {e}"))
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
enum Kind {
    EngineKilled,
    Killed(Which),
    /// Of one edge, or of both.
    Partition(Option<usize>),
    Unanswered(usize),
    /// An edge's clock is off, by ms.
    Clock(usize, i64),
    /// The row of the aggregate that both edges have.
    DamagedRow,
}

impl Kind {
    fn draw(chance: &mut Chance) -> Self {
        let mut below = |n: usize| (chance.next() * n as f64) as usize;
        let edge = below(2);
        match below(8) {
            0 => Self::EngineKilled,
            1 => Self::Killed(Which::Postgres),
            2 => Self::Killed(Which::Nats),
            3 => Self::Partition(Some(edge)),
            4 => Self::Partition(None),
            5 => Self::Unanswered(edge),
            6 => Self::Clock(edge, if below(2) == 0 { OFF_MS } else { -OFF_MS }),
            _ => Self::DamagedRow,
        }
    }
}

/// An edge, its clock, the network before it, and what it has recorded.
struct Client {
    edge: Edge,
    off_ms: Arc<AtomicI64>,
    proxy: Proxy,
    keys: Vec<Key>,
    /// Aggregate, interval and version: one report for each.
    recorded: BTreeSet<(String, i64, u64)>,
}

/// The fleet.
struct World {
    servers: Servers,
    database: String,
    site: Site,
    engine: Option<Process>,
    clients: Vec<Client>,
    /// Decisions as they were seen.
    seen: BTreeMap<(String, i64), DecisionBody>,
}

impl World {
    fn new(servers: Servers) -> Self {
        let store = servers.configuration(true);
        let line = store.lines().find_map(|line| line.strip_prefix("postgres = ")).expect("a line");
        let database = line.trim_matches('"').to_owned();
        let limits = "[limits]\nrequests_per_second = 1000";
        let (length, grace) = (format!("{INTERVAL_S}s"), format!("{GRACE_S}s"));
        let site = Site::with_intervals(&length, (0, &grace, limits), &store);
        let engine = site.start();
        let tokens = [site.edge.clone(), site.add_edge("edge-2")];
        let clients = PREFIXES
            .iter()
            .zip(tokens)
            .enumerate()
            .map(|(n, (prefixes, token))| {
                let proxy = Proxy::to(&engine.url);
                let off_ms = Arc::<AtomicI64>::default();
                let off = Arc::clone(&off_ms);
                let clock =
                    move || Time::from_millis((now_ms() + off.load(Ordering::Relaxed)) as u64);
                let options = Options {
                    engine: proxy.url.clone(),
                    token: token.as_str().into(),
                    authority: None,
                    folder: site.folder.path().join(format!("edge-{n}")),
                };
                let edge = Edge::start_by(&options, clock).expect("an edge");
                let key = |prefix: &&str| -> Key { format!("tv/{prefix}").parse().expect("a key") };
                let keys = prefixes.iter().map(key).collect();
                Client { edge, off_ms, proxy, keys, recorded: BTreeSet::new() }
            })
            .collect();
        Self { servers, database, site, engine: Some(engine), clients, seen: BTreeMap::new() }
    }

    /// Connections of both edges, for so long.
    fn serve(&mut self, time: StdDuration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for client in &mut self.clients {
                for key in &client.keys {
                    let Some(force) = client.edge.in_force(key) else { continue };
                    let throughput = Some(Rate::from_mbps(5.0));
                    let seen = Observation { throughput, ..Observation::default() };
                    let version = force.configuration.version;
                    let interval = client.edge.interval(&force);
                    if client.edge.record(key, version, interval, &seen) {
                        let of = (key.prefix.to_string(), interval.0 as i64, version);
                        client.recorded.insert(of);
                    }
                }
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Serves until something holds.
    fn serve_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            let status: Vec<_> = self.clients.iter().map(|one| one.edge.status()).collect();
            assert!(
                begun.elapsed() < StdDuration::from_secs(120),
                "not in 2 min: {what}: {status:?}"
            );
            self.serve(LOOK);
        }
    }

    fn start_engine(&mut self) {
        let engine = self.site.start();
        self.clients.iter().for_each(|client| client.proxy.point_to(&engine.url));
        self.engine = Some(engine);
    }

    fn bear(&mut self, kind: Kind, time: StdDuration) {
        match kind {
            Kind::EngineKilled => {
                self.engine.take().expect("it runs").kill();
                self.serve(time);
                self.start_engine();
            }
            Kind::Killed(which) => {
                self.servers.kill(which);
                self.serve(time);
                self.servers.start_again(which);
            }
            Kind::Partition(of) => {
                let cut = |world: &Self, is_cut| {
                    let all = world.clients.iter().enumerate();
                    let hit = all.filter(|(n, _)| of.is_none_or(|edge| edge == *n));
                    hit.for_each(|(_, client)| client.proxy.cut(is_cut));
                };
                cut(self, true);
                self.serve(time);
                cut(self, false);
            }
            Kind::Unanswered(n) => {
                self.clients[n].proxy.leave_unanswered(true);
                self.serve(time);
                self.clients[n].proxy.leave_unanswered(false);
            }
            Kind::Clock(n, off_ms) => {
                self.clients[n].off_ms.store(off_ms, Ordering::Relaxed);
                self.serve(time);
                self.clients[n].off_ms.store(0, Ordering::Relaxed);
            }
            Kind::DamagedRow => self.damage_for(time),
        }
    }

    /// The other aggregates go on, and an operator has this one learn anew.
    fn damage_for(&mut self, time: StdDuration) {
        let mut db =
            postgres::Client::connect(&self.database, postgres::NoTls).expect("it answers");
        let prefix = PREFIXES[0][0];
        let damage = format!("UPDATE aggregates SET state = '\\x5a5a5a' WHERE prefix = '{prefix}'");
        db.batch_execute(&damage).expect("it takes it");
        let others = |world: &Self| world.decisions_on(|of| of != prefix).len();
        let before = others(self);
        self.serve(time);
        self.serve_until("decisions on others", |world| others(world) > before);
        let order = OrderBody {
            service: "tv".to_owned(),
            prefix: prefix.to_owned(),
            action: Action::Reset,
            version: None,
            knobs: None,
            interval: None,
            reason: "its row was damaged".to_owned(),
        };
        self.engine().client(&self.site.operator).order(&order).expect("it learns anew");
    }

    fn engine(&self) -> &Process {
        self.engine.as_ref().expect("it runs")
    }

    /// All decisions, by aggregate and interval.
    fn decisions(&self) -> BTreeMap<(String, i64), DecisionBody> {
        self.decisions_on(|_| true)
    }

    /// Those on some aggregates: while a row is damaged, nobody reads what belongs to it.
    fn decisions_on(&self, asked: impl Fn(&str) -> bool) -> BTreeMap<(String, i64), DecisionBody> {
        let viewer = self.engine().client(&self.site.viewer);
        let mut prefixes: BTreeSet<&str> = PREFIXES.concat().into_iter().collect();
        prefixes.retain(|prefix| asked(prefix));
        let of = |prefix: &str| {
            let name = Name { service: "tv".to_owned(), prefix: prefix.to_owned() };
            let body = viewer.decisions(&name, 1000).expect("decisions");
            assert!(!body.more, "they fit a page");
            let prefix = prefix.to_owned();
            body.decisions.into_iter().map(move |one| ((prefix.clone(), one.interval), one))
        };
        prefixes.into_iter().flat_map(of).collect()
    }

    /// Decisions that were seen before are there, and the same.
    fn look(&mut self) {
        let now = self.decisions();
        for (at, decision) in &self.seen {
            assert_eq!(now.get(at), Some(decision), "the decision of {at:?} was lost or changed");
        }
        self.seen = now;
    }

    /// A batch of after the fault is kept.
    fn recover(&mut self) {
        let before: Vec<u64> = self.clients.iter().map(|one| one.edge.status().kept).collect();
        self.serve_until("reports are kept again", |world| {
            let now = world.clients.iter().map(|one| one.edge.status());
            now.zip(&before).all(|(now, before)| now.kept > *before)
        });
        self.look();
    }

    /// Waits until everything is reported and decided, and sees that it adds up.
    fn check(&mut self) -> Sum {
        // A clock that was ahead has an edge report an interval that is still to come.
        let all = self.clients.iter().flat_map(|client| &client.recorded);
        let last = all.map(|(_, interval, _)| *interval).max().expect("something was recorded");
        let end_ms = (last + 2) * (INTERVAL_S as i64) * 1000 + GRACE_S as i64 * 1000;
        let left_ms = (end_ms - now_ms()).max(0) as u64;
        std::thread::sleep(StdDuration::from_millis(left_ms));
        let viewer = self.engine().client(&self.site.viewer);
        // An aggregate that was set aside is tried again after a minute.
        let end = Instant::now() + StdDuration::from_secs(90);
        while viewer.status().expect("a status").counts.waiting_reports > 0 {
            assert!(Instant::now() < end, "not every interval is closed");
            std::thread::sleep(LOOK);
        }
        self.look();
        let mut sum = Sum { decisions: self.seen.len(), ..Sum::default() };
        let mut most: BTreeMap<(&str, i64), i64> = BTreeMap::new();
        for (n, client) in self.clients.iter().enumerate() {
            let status = client.edge.status();
            assert_eq!((status.waiting, status.dropped), (0, 0), "edge {n}: {status:?}");
            let recorded = client.recorded.len() as u64;
            // One that a wrong clock had an edge make twice is late, or was kept before.
            assert!(status.kept <= recorded && status.kept + status.late >= recorded, "{status:?}");
            for (prefix, interval, _) in &client.recorded {
                *most.entry((prefix.as_str(), *interval)).or_default() += 1;
            }
            sum.reports += recorded;
            sum.kept += status.kept;
            sum.late += status.late;
        }
        for ((prefix, interval), decision) in &self.seen {
            let most = most.get(&(prefix.as_str(), *interval)).copied().unwrap_or(0);
            assert!(decision.reports <= most, "{prefix} at {interval}: {decision:?} of {most}");
            sum.counted += decision.reports as u64;
        }
        assert_eq!(sum.counted, sum.kept, "what was acknowledged counts, once");
        sum
    }
}

/// What it came to.
#[derive(Debug, Default)]
struct Sum {
    reports: u64,
    kept: u64,
    late: u64,
    counted: u64,
    decisions: usize,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reports, kept, late, counted, decisions } = self;
        write!(
            f,
            "{reports} reports, {kept} acknowledged, {counted} counted, {late} late; {decisions} \
             decisions, none lost"
        )
    }
}

#[test]
fn under_random_faults_of_real_servers_each_report_counts_once_and_no_decision_is_lost() {
    let Some(servers) = Servers::synced_for_tests() else { return };
    let mut chance = Chance(asked("TRIMTAB_FAULTS_SEED", SEED));
    let mut world = World::new(servers);
    world.recover();
    let short = asked("TRIMTAB_REAL_FAULTS", USUAL.0);
    let outages = asked("TRIMTAB_REAL_OUTAGES", USUAL.1);
    let begun = Instant::now();
    for n in 0..short + outages {
        let (kind, time) = if n < short {
            let time = StdDuration::from_secs_f64(0.2 + chance.next() * SHORT_S);
            (Kind::draw(&mut chance), time)
        } else {
            // In turn: each takes reports in by another way when it is over.
            let kinds = [Kind::Killed(Which::Postgres), Kind::Partition(None), Kind::EngineKilled];
            (kinds[(n - short) as usize % kinds.len()], OUTAGE)
        };
        let at_s = begun.elapsed().as_secs_f64();
        println!("fault {} at {at_s:.1} s: {kind:?} for {:.1} s", n + 1, time.as_secs_f64());
        world.bear(kind, time);
        world.recover();
        world.serve(StdDuration::from_secs_f64(chance.next() * GAP_S));
    }
    println!("{} faults: {}", short + outages, world.check());
}
