//! What happens: the fleet learns; then what it learnt, what it began with and others take turns with the links.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use trimtab_emu::Report;
use trimtab_fleet_client::{DecisionBody, Hold};
use trimtab_lab::run::pool::INTERRUPTED;
use trimtab_units::{Bytes, Duration};

use super::edge::Edge;
use super::result::{Arm, Block, EdgeResult, FleetRun, Knobs, Moment, arms, differences};
use super::scenario::{EdgePlan, KernelFleet};
use super::site::Site;
use super::traffic::{Crew, Download, Downloads};
use crate::clock::real;
use crate::error::RealError;
use crate::rig;

/// Steps in which it is looked whether all still run.
const LOOK: Duration = Duration::from_millis(100);
/// Between two lines that say how far it is.
const TELL: Duration = Duration::from_secs(10);
/// What is under way when a block ends is waited for so long.
const PATIENCE: Duration = Duration::from_secs(8);
/// Between an order to the engine and the block that it is for, at least: configurations are with the edges by then.
const SETTLE: Duration = Duration::from_millis(500);
/// More than there are between two looks.
const LATEST: usize = 50;

/// How a fleet is run.
pub struct Course<'a> {
    /// The `trimtab` command, which engine and agents are.
    pub program: &'a Path,
    /// A folder for configurations, logs and the engine's store.
    pub folder: &'a Path,
    /// The command that the result names.
    pub command: &'a str,
    /// Told how far it is.
    pub tell: &'a dyn Fn(&str),
}

/// Runs a fleet. What it loads into the kernel is gone in the end.
///
/// # Errors
/// Rights or parts of the kernel are missing, a process does not start or ends, or the user asked
/// to stop: one message that says what to do.
pub fn run(fleet: &KernelFleet, course: &Course<'_>) -> Result<FleetRun, RealError> {
    if !rustix::process::geteuid().is_root() {
        return Err(RealError::FleetNotRoot);
    }
    let site = Site::start(fleet, course.folder, course.program)?;
    let mut edges = Vec::new();
    for plan in &fleet.edges {
        (course.tell)(&format!("starts the edge {}", plan.name));
        edges.push(Edge::start(plan, fleet, &site)?);
    }
    let decisions = vec![BTreeMap::new(); edges.len()];
    let mut run =
        Run { fleet, course, edges, site, decisions, late_p99_ms: 0.0, lost_elsewhere: 0 };
    let begun_ms = run.learn()?;
    run.compare(begun_ms)
}

/// A run in progress. Edges end before the engine.
struct Run<'a> {
    fleet: &'a KernelFleet,
    course: &'a Course<'a>,
    edges: Vec<Edge>,
    site: Site,
    /// By edge and interval.
    decisions: Vec<BTreeMap<i64, DecisionBody>>,
    late_p99_ms: f64,
    lost_elsewhere: u64,
}

/// What the arms did in one round on one edge.
struct Played {
    arm: Arm,
    downloads: Downloads,
    report: Report,
    /// Its first and last interval.
    intervals: (i64, i64),
}

impl Run<'_> {
    fn interval(&self) -> Duration {
        self.fleet.service.interval()
    }

    /// Waits for a while and looks after all that runs.
    fn wait(&mut self, time: Duration) -> Result<(), RealError> {
        let until = now() + time;
        while now() < until {
            if INTERRUPTED.load(Ordering::Relaxed) {
                return Err(RealError::Interrupted);
            }
            std::thread::sleep(real(LOOK.min(until - now())));
        }
        self.site.check()?;
        self.edges.iter_mut().try_for_each(Edge::check)
    }

    /// Waits for the beginning of an interval, `SETTLE` from now or more; its number.
    fn wait_for_interval(&mut self) -> Result<i64, RealError> {
        let interval = self.interval();
        let number = (now() + SETTLE).as_nanos() / interval.as_nanos() + 1;
        self.wait(interval * number - now())?;
        Ok(number as i64)
    }

    /// Takes in what the engine has decided since the last time.
    fn gather(&mut self) -> Result<(), RealError> {
        for (edge, all) in self.edges.iter().zip(&mut self.decisions) {
            let prefix = edge.prefix();
            if self.site.knows(&prefix)? {
                let latest = self.site.decisions(&prefix, LATEST)?;
                all.extend(latest.into_iter().map(|decision| (decision.interval, decision)));
            }
        }
        Ok(())
    }

    fn begin(&mut self, arm: usize, seed: u64) -> Result<Vec<Crew>, RealError> {
        let clients = self.fleet.clients;
        self.edges.iter_mut().map(|edge| edge.begin(arm, clients, seed)).collect()
    }

    /// Ends what is under way, after some patience.
    fn end(&mut self, crews: Vec<Crew>, arm: usize) -> Result<Vec<(Downloads, Report)>, RealError> {
        crews.iter().for_each(Crew::stop);
        let until = now() + PATIENCE;
        while now() < until && !crews.iter().all(Crew::is_done) {
            self.wait(LOOK)?;
        }
        let mut all = Vec::new();
        for (edge, crew) in self.edges.iter_mut().zip(crews) {
            let downloads = crew.end()?;
            let report = edge.end(arm)?;
            for direction in [&report.down, &report.up] {
                let late = direction.late.map_or(0.0, |late| late.p99_ms);
                self.late_p99_ms = self.late_p99_ms.max(late);
                self.lost_elsewhere += direction.drops.before_link + direction.drops.refused;
            }
            all.push((downloads, report));
        }
        Ok(all)
    }

    /// The fleet learns; when it began, in ms since 1970.
    fn learn(&mut self) -> Result<i64, RealError> {
        let begun = self.wait_for_interval()?;
        let crews = self.begin(0, 0)?;
        let (start, mut told) = (now(), now());
        while now() < start + self.fleet.learn {
            self.wait(self.interval().min(start + self.fleet.learn - now()))?;
            self.gather()?;
            if now() - told >= TELL {
                told = now();
                self.tell_learning(now() - start);
            }
        }
        self.end(crews, 0)?;
        // The last interval's decision.
        self.wait(self.fleet.grace + self.interval())?;
        self.gather()?;
        for (edge, decisions) in self.edges.iter().zip(&self.decisions) {
            if decisions.is_empty() {
                return Err(RealError::NothingLearnt {
                    edge: edge.plan.name.clone(),
                    waited: self.fleet.learn,
                });
            }
        }
        Ok(begun * self.interval().as_millis() as i64)
    }

    fn tell_learning(&self, since: Duration) {
        let guess = |(edge, all): (&Edge, &BTreeMap<i64, DecisionBody>)| {
            let latest = all.values().rev().find_map(|d| knobs(d, "after"));
            let knobs = latest.unwrap_or_default();
            let text: Vec<String> =
                knobs.iter().map(|(knob, value)| format!("{knob} {value:.3}")).collect();
            format!("{}: {}", edge.plan.name, text.join(" "))
        };
        let all: Vec<String> = self.edges.iter().zip(&self.decisions).map(guess).collect();
        let (since, learn) = (since.as_secs_f64(), self.fleet.learn.as_secs_f64());
        (self.course.tell)(&format!("learning, {since:.0} of {learn:.0} s; {}", all.join("; ")));
    }

    fn compare(mut self, begun_ms: i64) -> Result<FleetRun, RealError> {
        let rivals = self.fleet.compare_with.iter().cloned().map(Arm::Rival);
        let all: Vec<Arm> = [Arm::Learnt, Arm::Default].into_iter().chain(rivals).collect();
        let mut learnt: Vec<Knobs> = Vec::new();
        for edge in &self.edges {
            learnt.push(knobs_of(&self.site.hold(&edge.prefix(), false)?));
        }
        let ended_learning = self.decisions.iter().map(|all| all.keys().max().copied());
        let ended_learning: Vec<i64> = ended_learning.map(Option::unwrap_or_default).collect();
        let mut rounds: Vec<Vec<Vec<Played>>> = Vec::new();
        for round in 1..=self.fleet.rounds {
            // There and back, so that what drifts favours none.
            let mut order: Vec<usize> = (0..all.len()).collect();
            if round % 2 == 0 {
                order.reverse();
            }
            let mut played: Vec<Vec<Played>> = self.edges.iter().map(|_| Vec::new()).collect();
            for place in order {
                (self.course.tell)(&format!(
                    "comparing, round {round} of {}: {}",
                    self.fleet.rounds,
                    all[place].name()
                ));
                for (edge, one) in
                    self.edge_blocks(&all[place], place, round)?.into_iter().enumerate()
                {
                    played[edge].push(one);
                }
            }
            rounds.push(played);
        }
        self.wait(self.fleet.grace + self.interval())?;
        self.gather()?;
        let edges = (0..self.edges.len()).map(|edge| {
            let played = rounds
                .iter()
                .enumerate()
                .flat_map(|(round, played)| self.blocks(edge, round as u32 + 1, &played[edge]));
            let blocks: Vec<Block> = played.collect();
            self.result(edge, &all, learnt[edge].clone(), blocks, (begun_ms, ended_learning[edge]))
        });
        Ok(self.told(edges.collect()))
    }

    /// A block of every edge for one arm.
    fn edge_blocks(
        &mut self,
        arm: &Arm,
        place: usize,
        round: u32,
    ) -> Result<Vec<Played>, RealError> {
        if let Arm::Learnt | Arm::Default = arm {
            for edge in &self.edges {
                self.site.hold(&edge.prefix(), *arm == Arm::Default)?;
            }
        }
        let first = self.wait_for_interval()?;
        // The servers of both arms of the engine's are the agent's; next to them each algorithm has its own.
        let servers = place.saturating_sub(1);
        let crews = self.begin(servers, u64::from(round))?;
        self.wait(self.fleet.block)?;
        let ended = self.end(crews, servers)?;
        self.gather()?;
        let count = (self.fleet.block.as_nanos() / self.interval().as_nanos()) as i64;
        let intervals = (first, first + count - 1);
        let played = ended.into_iter();
        Ok(played
            .map(|(downloads, report)| Played { arm: arm.clone(), downloads, report, intervals })
            .collect())
    }

    /// The blocks of a round on an edge, by what all of its arms downloaded.
    fn blocks(&self, edge: usize, round: u32, played: &[Played]) -> Vec<Block> {
        let clients = self.fleet.clients.count as usize;
        let common: Vec<usize> = (0..clients)
            .map(|c| played.iter().map(|p| p.downloads.done[c].len()).min().unwrap_or(0))
            .collect();
        let of = |played: &Played| {
            let done = &played.downloads.done;
            let counted: Vec<Download> =
                done.iter().zip(&common).flat_map(|(all, &n)| all[..n].to_vec()).collect();
            let time: f64 = counted.iter().map(|d| d.took.as_secs_f64()).sum();
            let bytes: Bytes = counted.iter().map(|d| d.size).sum();
            let down = &played.report.down;
            let dropped = down.drops.queue_full
                + down.drops.random_loss
                + down.drops.aqm
                + down.drops.policer;
            Block {
                round,
                arm: played.arm.clone(),
                downloads: counted.len(),
                done: done.iter().map(Vec::len).sum(),
                failed: played.downloads.failed,
                download_s: time / counted.len() as f64,
                download_mbps: bytes.as_f64() * 8e-6 / time,
                queue_ms: down.queueing.map_or(f64::NAN, |queueing| queueing.mean_ms),
                lost: dropped as f64 / down.arrivals.max(1) as f64,
                carried_mbps: down.carried_mbps,
                reward: self.reward(edge, played),
            }
        };
        played.iter().map(of).collect()
    }

    /// The mean reward of a block's intervals.
    fn reward(&self, edge: usize, played: &Played) -> Option<f64> {
        if matches!(played.arm, Arm::Rival(_)) {
            return None;
        }
        let own = self.decisions[edge].range(played.intervals.0..=played.intervals.1);
        let rewards: Vec<f64> = own.filter_map(|(_, decision)| decision.reward).collect();
        (!rewards.is_empty()).then(|| rewards.iter().sum::<f64>() / rewards.len() as f64)
    }

    fn result(
        &self,
        edge: usize,
        all: &[Arm],
        learnt: Knobs,
        blocks: Vec<Block>,
        (begun_ms, last): (i64, i64),
    ) -> EdgeResult {
        let EdgePlan { name, source, capacity, cell } = &self.edges[edge].plan;
        let interval_ms = self.interval().as_millis() as i64;
        let moment = |(&interval, decision): (&i64, &DecisionBody)| {
            Some(Moment {
                at_s: (interval * interval_ms - begun_ms) as f64 / 1e3,
                tried: knobs(decision, "tried")?,
                guess: knobs(decision, "after")?,
                reward: decision.reward,
            })
        };
        let learning = self.decisions[edge].range(..=last);
        let learning = learning.filter(|(_, decision)| decision.hold == Hold::Learning);
        let service = &self.fleet.service;
        EdgeResult {
            name: name.clone(),
            prefix: self.edges[edge].prefix(),
            link: source.to_string(),
            capacity_mbps: capacity.mean_rate().mbps(),
            rtt_ms: cell.rtt.longest().as_millis_f64(),
            buffer_kb: cell.buffer_bytes(capacity.mean_rate()).as_f64() / 1e3,
            loss: cell.loss.get(),
            default: service.configured(&service.safe()).into_iter().collect(),
            learnt,
            course: learning.filter_map(moment).collect(),
            arms: arms(all, &blocks),
            differences: differences(all, &blocks),
            blocks,
        }
    }

    fn told(&self, edges: Vec<EdgeResult>) -> FleetRun {
        let fleet = self.fleet;
        FleetRun {
            schema: "trimtab.fleet-kernel/2",
            version: env!("CARGO_PKG_VERSION"),
            command: self.course.command.to_owned(),
            kernel: rig::kernel(),
            scenario: fleet.name.clone(),
            about: fleet.about.clone(),
            service: self.site.service().to_owned(),
            reward: fleet.reward.clone(),
            interval_s: self.interval().as_secs_f64(),
            learn_s: fleet.learn.as_secs_f64(),
            block_s: fleet.block.as_secs_f64(),
            rounds: fleet.rounds,
            clients: fleet.clients.count,
            edges,
            late_p99_ms: self.late_p99_ms,
            lost_elsewhere: self.lost_elsewhere,
        }
    }
}

/// Since 1970, as intervals are counted.
fn now() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(since.as_nanos() as u64)
}

/// The knobs that a decision tells of.
fn knobs(decision: &DecisionBody, which: &str) -> Option<Knobs> {
    let pairs = decision.why["decision"].get(which)?;
    let pairs: Vec<(String, f64)> = serde_json::from_value(pairs.clone()).ok()?;
    Some(pairs.into_iter().collect())
}

/// The knobs of a configuration.
fn knobs_of(configuration: &serde_json::Value) -> Knobs {
    serde_json::from_value(configuration["knobs"].clone()).unwrap_or_default()
}
