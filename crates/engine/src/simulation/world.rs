//! A fleet of three edges and one engine, second by second.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_fleet_client::edge::{Key, Observation, Turns};
use trimtab_fleet_client::{Client, Name};
use trimtab_units::{Rate, Time};

use super::faults::{Fault, Kind, Place};
use super::host::{Host, Link, Way, lock};
use super::ledger::{Ledger, Scope, Summary};
use crate::store::{Cut, Sqlite};

pub(super) const EDGES: usize = 3;
pub(super) const AGGREGATES: usize = 6;
/// The length of the service's intervals.
pub(super) const INTERVAL_MS: i64 = 20_000;
/// When an episode begins, in ms since 1970.
const BEGIN_MS: i64 = 1_795_320_000_000;
/// The time before the first fault.
const WARM_UP_S: i64 = 65;
/// Between the beginnings of two faults, at most.
const GAP_S: i64 = 60;
/// After the last one: clocks that were ahead have intervals that are still to come, and what an
/// edge tries again it tries every ten seconds.
const MENDED_S: i64 = 420;
/// Then nobody records any more, and what is left is closed and sent.
const QUIET_S: i64 = 80;
/// Between two questions of an edge for new configurations.
const FOLLOW_EVERY_S: i64 = 5;

pub(super) fn prefix(aggregate: usize) -> String {
    format!("203.0.{aggregate}.0/24")
}

pub(super) fn name(prefix: &str) -> Name {
    Name { service: "tv".to_owned(), prefix: prefix.to_owned() }
}

/// Whether an edge has traffic of an aggregate: each edge of four, each aggregate at two edges.
pub(super) fn serves(edge: usize, aggregate: usize) -> bool {
    !(edge + aggregate).is_multiple_of(EDGES)
}

/// An edge, and its link to the engine.
struct Edge {
    turns: Turns,
    clock: Arc<AtomicI64>,
    way: Way,
    follows_at_s: i64,
}

/// A fault that is there.
struct Active {
    fault: Fault,
    until_s: i64,
}

pub(super) struct World {
    chance: Pcg64Mcg,
    /// Since the episode began.
    now_s: i64,
    host: Arc<Host>,
    is_dying: Arc<AtomicBool>,
    edges: Vec<Edge>,
    active: Vec<Active>,
    ledger: Ledger,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let host = Arc::new(Host::new(BEGIN_MS));
        let is_dying = Arc::new(AtomicBool::new(false));
        let edges = (0..EDGES)
            .map(|n| {
                let way = Way {
                    host: Arc::clone(&host),
                    token: host.add_edge(&format!("edge-{n}")),
                    link: Arc::new(Mutex::new(Link::default())),
                    wire: Arc::default(),
                    is_dying: Arc::clone(&is_dying),
                };
                let clock = Arc::new(AtomicI64::new(BEGIN_MS));
                let own = Arc::clone(&clock);
                let now = move || Time::from_millis(own.load(Ordering::Relaxed) as u64);
                let client = Client::over("the simulated engine", way.clone());
                let turns = Turns::start(client, &host.folder_of(n), now).expect("a folder");
                Edge { turns, clock, way, follows_at_s: 0 }
            })
            .collect();
        let chance = Pcg64Mcg::seed_from_u64(seed);
        let ledger = Ledger::new(BEGIN_MS);
        Self { chance, now_s: 0, host, is_dying, edges, active: Vec::new(), ledger }
    }

    /// Lives through so many faults, until everything is mended and told; says what they were.
    pub(super) fn live(&mut self, faults: u64) -> Vec<String> {
        self.run_until(WARM_UP_S, true);
        let mut drawn = Vec::new();
        for _ in 0..faults {
            let fault = Fault::draw(&mut self.chance);
            drawn.push(format!("{fault} at {} s", self.now_s));
            self.begin(fault);
            let next_s = self.now_s + self.chance.random_range(1..=GAP_S);
            self.run_until(next_s, true);
        }
        let last_s = self.active.iter().map(|one| one.until_s).max().unwrap_or(0);
        self.run_until(last_s.max(self.now_s) + MENDED_S, true);
        self.run_until(self.now_s + QUIET_S, false);
        drawn
    }

    /// Checks what became of everything.
    pub(super) fn check(mut self) -> Summary {
        assert!(self.active.is_empty() && self.host.is_running(), "all is mended");
        self.ledger.look(&self.host);
        let edges: Vec<_> =
            self.edges.iter().map(|edge| (edge.turns.edge(), lock(&edge.way.wire))).collect();
        self.ledger.check(&self.host, &edges)
    }

    fn run_until(&mut self, until_s: i64, serves: bool) {
        while self.now_s < until_s {
            self.second(serves);
        }
    }

    /// What happens in a second; the clocks stand still meanwhile.
    fn second(&mut self, serves: bool) {
        self.now_s += 1;
        self.end_faults();
        self.set_clocks();
        self.keep_engine();
        for n in 0..EDGES {
            if serves {
                self.serve(n);
            }
            let edge = &mut self.edges[n];
            edge.turns.report();
            if self.now_s >= edge.follows_at_s {
                let rest_s = edge.turns.follow().as_millis() as i64 / 1000;
                edge.follows_at_s = self.now_s + rest_s.max(FOLLOW_EVERY_S);
            }
        }
        self.host.close();
        // What was to be killed in the middle of a write is, where that was.
        if self.is_dying.load(Ordering::Relaxed) && self.host.lost_store() {
            self.host.kill();
        }
        self.ledger.note(self.now_s, self.active.iter().map(|one| scope(one.fault.kind)));
    }

    /// Connections of an edge, one of each aggregate.
    fn serve(&mut self, n: usize) {
        let edge = self.edges[n].turns.edge();
        for aggregate in (0..AGGREGATES).filter(|aggregate| serves(n, *aggregate)) {
            let key: Key = format!("tv/{}", prefix(aggregate)).parse().expect("a key");
            let Some(force) = edge.in_force(&key) else { continue };
            let throughput = Some(Rate::from_mbps(self.chance.random_range(2.0..20.0)));
            let seen = Observation { throughput, ..Observation::default() };
            let (version, interval) = (force.configuration.version, edge.interval(&force));
            if edge.record(&key, version, interval, &seen) {
                self.ledger.recorded((n, self.now_s), &key, interval, version);
            }
        }
    }

    fn set_clocks(&self) {
        let off_ms = |place: Place| {
            let mut own = self.active.iter().filter_map(|one| match one.fault.kind {
                Kind::Clock(of, off_ms) if of == place => Some(off_ms),
                _ => None,
            });
            own.next_back().unwrap_or(0)
        };
        let now_ms = BEGIN_MS + self.now_s * 1000;
        self.host.clock.store(now_ms + off_ms(Place::Engine), Ordering::Relaxed);
        for (n, edge) in self.edges.iter().enumerate() {
            edge.clock.store(now_ms + off_ms(Place::Edge(n)), Ordering::Relaxed);
        }
    }

    fn has(&self, what: impl Fn(Kind) -> bool) -> bool {
        self.active.iter().any(|one| what(one.fault.kind))
    }

    /// Starts the engine where it does not run and nothing is in its way.
    fn keep_engine(&mut self) {
        let hindered = self.has(|kind| matches!(kind, Kind::EngineKilled(_) | Kind::StoreGone(_)));
        if !hindered && !self.host.is_running() {
            self.host.start();
            if self.has(|kind| kind == Kind::FullDisk) {
                self.host.store(|store| store.fill(true));
            }
        }
    }

    fn begin(&mut self, fault: Fault) {
        match fault.kind {
            Kind::EngineKilled(None) => self.host.kill(),
            Kind::EngineKilled(Some(cut)) => {
                self.is_dying.store(true, Ordering::Relaxed);
                self.cut(Some(cut));
            }
            Kind::StoreGone(cut) => self.cut(cut),
            Kind::Partition(Place::Engine) => self.edges.iter().for_each(|edge| cut(edge, true)),
            Kind::Partition(Place::Edge(n)) => cut(&self.edges[n], true),
            Kind::Unanswered(n) => lock(&self.edges[n].way.link).is_unanswered = true,
            Kind::Straggler(n) => lock(&self.edges[n].way.link).delays = true,
            // The clocks are set each second.
            Kind::Clock(..) => {}
            Kind::FullDisk => self.host.store(|store| store.fill(true)),
            Kind::DamagedRow(aggregate) => self.host.damage(&prefix(aggregate)),
        }
        self.active.push(Active { until_s: self.now_s + fault.lasts_s, fault });
    }

    fn cut(&self, at: Option<Cut>) {
        self.host.store(|store| {
            // What is away already stays so.
            if !store.is_away() {
                store.cut(at);
            }
        });
    }

    fn end_faults(&mut self) {
        let (over, active): (Vec<Active>, Vec<Active>) =
            self.active.drain(..).partition(|one| one.until_s <= self.now_s);
        self.active = active;
        for Active { fault, .. } in over {
            let others = |what: fn(Kind) -> bool| self.has(what);
            match fault.kind {
                Kind::EngineKilled(_) => {
                    // One that wrote nothing meanwhile is killed now.
                    if !others(|kind| matches!(kind, Kind::EngineKilled(Some(_)))) {
                        self.is_dying.store(false, Ordering::Relaxed);
                        self.host.kill();
                    }
                }
                Kind::StoreGone(_) => {
                    if !others(|kind| matches!(kind, Kind::StoreGone(_))) {
                        self.host.store(Sqlite::mend);
                    }
                }
                Kind::Partition(_) => {
                    for (n, edge) in self.edges.iter().enumerate() {
                        let is_cut = self.active.iter().any(|one| {
                            matches!(one.fault.kind, Kind::Partition(Place::Engine))
                                || one.fault.kind == Kind::Partition(Place::Edge(n))
                        });
                        cut(edge, is_cut);
                    }
                }
                Kind::Unanswered(n) => {
                    lock(&self.edges[n].way.link).is_unanswered =
                        self.active.iter().any(|one| one.fault.kind == Kind::Unanswered(n));
                }
                Kind::Straggler(n) => {
                    lock(&self.edges[n].way.link).delays = false;
                    self.edges[n].way.deliver();
                }
                Kind::Clock(..) => {}
                Kind::FullDisk => {
                    if !others(|kind| kind == Kind::FullDisk) {
                        self.host.store(|store| store.fill(false));
                    }
                }
                Kind::DamagedRow(aggregate) => self.mend(aggregate),
            }
            self.ledger.look(&self.host);
        }
    }

    /// An operator has the aggregate learn anew, as soon as the store is there.
    fn mend(&mut self, aggregate: usize) {
        let is_gone = self.has(|kind| matches!(kind, Kind::StoreGone(_)));
        if is_gone || self.host.reset(&prefix(aggregate)).is_err() {
            let fault = Fault { kind: Kind::DamagedRow(aggregate), lasts_s: 1 };
            self.active.push(Active { fault, until_s: self.now_s + 1 });
        }
    }
}

fn cut(edge: &Edge, is_cut: bool) {
    lock(&edge.way.link).is_cut = is_cut;
}

/// Whom a fault may keep waiting.
fn scope(kind: Kind) -> Scope {
    match kind {
        Kind::Partition(Place::Edge(n)) | Kind::Clock(Place::Edge(n), _) => Scope::Edge(n),
        Kind::Unanswered(n) | Kind::Straggler(n) => Scope::Edge(n),
        Kind::DamagedRow(aggregate) => Scope::Aggregate(aggregate),
        _ => Scope::All,
    }
}
