//! One connection of a simulated fleet: what is drawn for it.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use trimtab_apps::{App, Recipe, Session};
use trimtab_net::generate::Cellular;
use trimtab_net::{Capacity, LinkConfig, LossConfig, PolicerConfig, QueueConfig};
use trimtab_units::{Bytes, Duration, Rate};

use super::scenario::FleetScenario;

/// A connection that is not done by then counts as done then.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
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
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    buffer: Bytes,
    loss: f64,
    policer: Option<PolicerConfig>,
    cellular: Option<u64>,
    recipe: Recipe,
    /// Where in the distribution of sizes it lies, 0 to 1.
    quantile: f64,
    /// When it begins, as a share of the time within which those of a bottleneck begin.
    pub(super) begins: f64,
    pub(super) seed: u64,
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
            begins: at(5),
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

    /// The client's application.
    pub(super) fn client(&self) -> App {
        let session = Session { length: PATIENCE, seed: 0, quantile: Some(self.quantile) };
        self.recipe.client(&session)
    }

    /// Its link, which others may share.
    pub(super) fn link(&self) -> LinkConfig {
        let loss =
            if self.loss > 0.0 { LossConfig::Independent(self.loss) } else { LossConfig::None };
        let queue = QueueConfig::drop_tail_bytes(self.buffer);
        let link = LinkConfig::new(self.capacity()).queue(queue).loss(loss);
        match self.policer {
            Some(policer) => link.policer(policer),
            None => link,
        }
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
