//! One connection of a simulated fleet: its link, and what came of it.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_apps::{App, Outcome, Recipe, Session};
use trimtab_cc::Spec;
use trimtab_net::generate::Cellular;
use trimtab_net::{Capacity, LinkConfig, LossConfig, PolicerConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::scenario::FleetScenario;

/// A connection that is not done by then counts as done then.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a connection is looked at for its end.
const LOOK: Duration = Duration::from_millis(250);
/// Intervals in which drift goes once up and down: four weeks of 20 minutes.
const DRIFT_PERIOD: f64 = 2016.0;

/// What the links of an aggregate are like before load and chance.
#[derive(Clone, Copy, Debug)]
struct Links {
    rate_mbps: f64,
    rtt_s: f64,
    buffer_bdp: f64,
    loss: f64,
    phase: f64,
}

/// Everything that decides the course of a connection but for its congestion control.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    rate: Rate,
    rtt: Duration,
    buffer: Bytes,
    loss: f64,
    policer: Option<PolicerConfig>,
    cellular: Option<u64>,
    recipe: Recipe,
    /// Where in the distribution of sizes it lies, 0 to 1.
    quantile: f64,
    seed: u64,
}

/// What came of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    pub(super) throughput_mbps: f64,
    pub(super) rtt_s: f64,
    pub(super) loss: f64,
    pub(super) request_time_s: f64,
    /// Of video; zero otherwise.
    pub(super) rebuffering: f64,
    pub(super) bitrate_mbps: f64,
}

/// A generator for a purpose within a seed.
pub(super) fn generator(seed: u64, parts: &[u64]) -> Pcg64Mcg {
    let mixed = parts.iter().fold(seed ^ 0x5851_f42d_4c95_7f2d, |hash, &part| {
        let hash = (hash ^ part).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 29)
    });
    Pcg64Mcg::seed_from_u64(mixed)
}

/// A value between two, equal factors alike; the lower one where that is zero.
fn log_uniform(random: &mut Pcg64Mcg, range: (f64, f64)) -> f64 {
    log_between(random.random(), range)
}

fn log_between(at: f64, (low, high): (f64, f64)) -> f64 {
    if low <= 0.0 { high * at } else { low * libm::pow(high / low, at) }
}

/// The links of an aggregate after so many abrupt changes.
fn links(scenario: &FleetScenario, seed: u64, aggregate: u64, change: u64) -> Links {
    let l = &scenario.links;
    let mut random = generator(seed, &[1, aggregate, change]);
    Links {
        rate_mbps: log_uniform(&mut random, (l.rate.0.mbps(), l.rate.1.mbps())),
        rtt_s: log_uniform(&mut random, (l.rtt.0.as_secs_f64(), l.rtt.1.as_secs_f64())),
        buffer_bdp: log_uniform(&mut random, l.buffer),
        loss: log_uniform(&mut random, l.loss),
        phase: random.random::<f64>(),
    }
}

/// How many abrupt changes an aggregate has seen by an interval: they come at times of its own.
fn changes_by(scenario: &FleetScenario, seed: u64, aggregate: u64, interval: u64) -> u64 {
    let mut random = generator(seed, &[2, aggregate]);
    let intervals = scenario.intervals() as f64;
    (0..scenario.links.changes)
        .filter(|_| random.random::<f64>() * intervals <= interval as f64)
        .count() as u64
}

/// Which connections: those of the run, or others of the same kind, on which the best in hindsight
/// is looked for. On the same ones the best would be the luckiest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    Run,
    Apart,
}

/// A value between 0 and 1 for the connection `number` of `count`: one in each part of the range,
/// in an order that chance has. A real interval has hundreds of connections; a few that are spread
/// evenly stand for them better than as many at random.
fn stratum(seed: u64, parts: [u64; 4], (number, count): (u64, u64)) -> f64 {
    let mut random = generator(seed, &parts);
    let mut order: Vec<u64> = (0..count).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.random_range(0..=i));
    }
    let within: f64 =
        generator(seed, &[9, parts[0], parts[1], parts[2], parts[3], number]).random();
    (order[number as usize] as f64 + within) / count as f64
}

impl Connection {
    /// The connection `number` of an interval. `band` is the third of the day, `weekend` whether it is one.
    pub(super) fn of(
        scenario: &FleetScenario,
        seed: u64,
        sample: Sample,
        (aggregate, interval, number): (u64, u64, u64),
        (band, weekend): (usize, bool),
    ) -> Self {
        let l = &scenario.links;
        let change = changes_by(scenario, seed, aggregate, interval);
        let base = links(scenario, seed, aggregate, change);
        let kind = if sample == Sample::Run { 3 } else { 13 };
        let mut random = generator(seed, &[kind, aggregate, interval, number]);
        let count = u64::from(scenario.connections);
        let at = |what| stratum(seed, [kind, what, aggregate, interval], (number, count));
        let load = l.load[band.min(2)];
        let load = if weekend { (1.0 + load) / 2.0 } else { load };
        let turn = core::f64::consts::TAU * (interval as f64 / DRIFT_PERIOD + base.phase);
        let drift = libm::exp(l.drift * libm::sin(turn));
        let chance = libm::exp(l.spread * quantile(at(1)));
        let outage = scenario.outage.filter(|o| (o.from..o.until).contains(&interval));
        let left = outage.map_or(1.0, |o| o.capacity);
        let rate = Rate::from_mbps((base.rate_mbps * load * drift * chance * left).max(0.05));
        let rtt = Duration::from_secs_f64(base.rtt_s);
        let policer = l.policer.map(|(share, bucket)| PolicerConfig {
            rate: Rate::from_mbps(rate.mbps() * share),
            burst: (rate * bucket).max(Bytes::new(15_000)),
        });
        Self {
            rate,
            rtt,
            buffer: (rate * rtt.mul_f64(base.buffer_bdp)).max(Bytes::new(15_000)),
            loss: base.loss + outage.map_or(0.0, |o| o.loss),
            policer,
            cellular: l.cellular.then(|| random.random()),
            recipe: scenario.app.recipe.clone(),
            quantile: at(2),
            seed: random.random(),
        }
    }

    fn capacity(&self) -> Capacity {
        let Some(seed) = self.cellular else { return Capacity::Constant(self.rate) };
        let cellular = Cellular {
            duration: Duration::from_secs(30),
            rate_min: Rate::from_mbps(self.rate.mbps() / 4.0),
            rate_max: Rate::from_mbps(self.rate.mbps() * 3.0),
            ..Cellular::default()
        };
        Capacity::trace(cellular.generate(seed).trace)
    }

    fn client(&self) -> App {
        let session = Session { length: PATIENCE, seed: 0, quantile: Some(self.quantile) };
        self.recipe.client(&session)
    }

    /// Runs it with this algorithm; without one by a sender that sees the link.
    pub(super) fn run(&self, spec: Option<Spec>) -> Came {
        let mut link =
            LinkConfig::new(self.capacity()).queue(QueueConfig::drop_tail_bytes(self.buffer)).loss(
                if self.loss > 0.0 { LossConfig::Independent(self.loss) } else { LossConfig::None },
            );
        if let Some(policer) = self.policer {
            link = link.policer(policer);
        }
        let flow = FlowConfig {
            control: spec
                .map_or(Control::Omniscient, |spec| Control::Algorithm { spec, steerer: None }),
            resume: None,
            transport: Transport::quic(),
            app: self.client(),
            start: Time::ZERO,
            stop: Time::MAX,
            forward: vec![0],
            reverse: Vec::new(),
            forward_delay: self.rtt.mul_f64(0.5).into(),
            reverse_delay: (self.rtt - self.rtt.mul_f64(0.5)).into(),
            jitter: trimtab_net::JitterConfig::None,
            seed: self.seed,
        };
        let mut world =
            World::new(&WorldConfig { links: vec![(link, self.seed)], flows: vec![flow] });
        let end = Time::ZERO + PATIENCE;
        while !world.is_finished() && world.now() < end {
            world.run_until(world.now() + LOOK);
        }
        self.came(&world)
    }

    fn came(&self, world: &World) -> Came {
        let (flow, now) = (&world.flows()[0], world.now());
        let (sent, received) = (flow.sent(), flow.received());
        let mut came = Came {
            rtt_s: sent.rtt.mean().as_secs_f64(),
            loss: received.dropped as f64 / sent.packets.max(1) as f64,
            ..Came::default()
        };
        let took = match trimtab_apps::Application::outcome(flow.app(), now) {
            Outcome::Requests(requests) => {
                let done = requests.first().and_then(trimtab_apps::RequestRecord::completion_time);
                let took = done.unwrap_or(PATIENCE);
                came.request_time_s = took.as_secs_f64();
                took
            }
            Outcome::Video(video) => {
                let watched = video.played + video.stall_time;
                if !watched.is_zero() {
                    came.rebuffering = video.stall_time.ratio(watched);
                }
                let chunks: Vec<_> =
                    video.chunks.iter().filter(|c| c.completed_at.is_some()).collect();
                let sum: f64 = chunks.iter().map(|c| c.bitrate.mbps()).sum();
                came.bitrate_mbps = sum / chunks.len().max(1) as f64;
                came.request_time_s = video.startup.as_secs_f64();
                // Of the time in which something was asked for.
                let busy =
                    |c: &&trimtab_apps::ChunkRecord| Some(c.completed_at?.since(c.requested_at));
                chunks.iter().filter_map(busy).fold(Duration::ZERO, |sum, d| sum + d)
            }
            Outcome::Call(_) | Outcome::Endless => now.since(Time::ZERO),
        };
        came.throughput_mbps = (received.goodput / took.max(Duration::from_micros(1))).mbps();
        came
    }
}

/// The value of the standard normal distribution that a share `p` is below; to 5·10⁻⁴, which is plenty for a draw
/// (Abramowitz and Stegun, 26.2.23).
fn quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p).max(1e-12);
    let t = (-2.0 * libm::log(tail)).sqrt();
    let up = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let down = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let far = t - up / down;
    if p < 0.5 { -far } else { far }
}

#[cfg(test)]
mod tests;
