//! The networks for which a table is made, and what it is worth on them.

use std::sync::Arc;

use rand::{RngExt as _, SeedableRng};
use rand_pcg::Pcg64;
use trimtab_apps::{App, BulkConfig};
use trimtab_cc::Controller;
use trimtab_cc::remy::{AXES, Table};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_sim::{Control, Flow, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::rival::{Model, Rival};
use trimtab_units::{Duration, Rate, Time};

/// The design range of the paper's RemyCCs (§5.1): 10 to 20 Mbit/s, round trips of 100 to 200 ms, 1 to
/// 16 senders, which are "on" for 5 s on average, as exponential times are.
const MBPS: [f64; 2] = [10.0, 20.0];
const RTT_MS: [f64; 2] = [100.0, 200.0];
const SENDERS: [u32; 6] = [1, 2, 4, 6, 8, 16];
const ON_S: f64 = 5.0;
/// Each sender begins within this time, and a run ends then.
const BEGIN_S: f64 = 5.0;
const RUN: Duration = Duration::from_secs(12);
/// The weight of delay: log2(throughput) - δ · log2(delay) (§3.3), with one of the paper's (Figs 4 to 7).
const DELTA: f64 = 0.1;
/// The memory is looked at so often, for the use of rules.
const LOOK: Duration = Duration::from_millis(20);

/// One network with its senders.
#[derive(Clone, Debug)]
struct Network {
    link: LinkConfig,
    rtt: Duration,
    /// When each sender begins and ends.
    senders: Vec<(Time, Time)>,
}

/// What a table is worth, and which memories were seen.
pub(crate) struct Worth {
    pub(crate) utility: f64,
    pub(crate) memories: Vec<[f64; AXES]>,
}

/// The networks, the same each time.
#[derive(Clone, Debug)]
pub(crate) struct Networks(Vec<Network>);

impl Networks {
    pub(crate) fn new() -> Self {
        let mut random = Pcg64::seed_from_u64(1);
        let mut draw = |senders: u32| {
            let rate = Rate::from_mbps(random.random_range(MBPS[0]..MBPS[1]));
            let rtt = Duration::from_secs_f64(random.random_range(RTT_MS[0]..RTT_MS[1]) / 1000.0);
            let link = LinkConfig::new(Capacity::Constant(rate))
                .queue(QueueConfig::drop_tail_packets(1000));
            let mut sender = |number: u32| {
                let begin = if number == 0 { 0.0 } else { random.random_range(0.0..BEGIN_S) };
                let on = -ON_S * libm::log(1.0 - random.random_range(0.0..1.0));
                let end = (begin + on.max(1.0)).min(RUN.as_secs_f64());
                (
                    Time::ZERO + Duration::from_secs_f64(begin),
                    Time::ZERO + Duration::from_secs_f64(end),
                )
            };
            Network { link, rtt, senders: (0..senders).map(&mut sender).collect() }
        };
        Self(SENDERS.iter().map(|senders| draw(*senders)).collect())
    }

    /// The mean of the senders' utilities, over all networks.
    pub(crate) fn worth(&self, table: &Table, looks: bool) -> Worth {
        let table = Arc::new(table.clone());
        let (mut utilities, mut memories) = (Vec::new(), Vec::new());
        for network in &self.0 {
            utilities.push(network.utility(&table, looks, &mut memories));
        }
        Worth { utility: utilities.iter().sum::<f64>() / utilities.len() as f64, memories }
    }
}

impl Network {
    fn utility(&self, table: &Arc<Table>, looks: bool, memories: &mut Vec<[f64; AXES]>) -> f64 {
        let rival = Rival::new(Model::Remy(table.clone()), Vec::new());
        let flow = |(number, (start, stop)): (usize, &(Time, Time))| FlowConfig {
            start: *start,
            stop: *stop,
            seed: number as u64 + 1,
            ..FlowConfig::new(
                Control::Rival(rival.clone()),
                Transport::quic(),
                App::bulk(&BulkConfig {
                    length: Some(stop.since(*start)),
                    ..BulkConfig::default()
                }),
                self.rtt,
            )
        };
        let flows = self.senders.iter().enumerate().map(flow).collect();
        let mut world = World::new(&WorldConfig { links: vec![(self.link.clone(), 1)], flows });
        let mut ends: Vec<Time> = self.senders.iter().map(|(_, stop)| *stop).collect();
        ends.sort();
        ends.dedup();
        let mut utilities = 0.0;
        for end in ends {
            while world.now() < end {
                world.run_until(if looks { end.min(world.now() + LOOK) } else { end });
                if looks {
                    self.look(&world, memories);
                }
            }
            // What arrives after a sender's end is none of its own: it counts as it stands then.
            let ending = world.flows().iter().zip(&self.senders).filter(|(_, s)| s.1 == end);
            utilities += ending.map(|(flow, times)| self.worth(flow, *times)).sum::<f64>();
        }
        utilities / self.senders.len() as f64
    }

    /// Keeps the memories of the senders that are on.
    fn look(&self, world: &World, memories: &mut Vec<[f64; AXES]>) {
        let on =
            |(_, (start, stop)): &(&Flow, &(Time, Time))| (*start..*stop).contains(&world.now());
        for (flow, _) in world.flows().iter().zip(&self.senders).filter(on) {
            if let Some(Controller::Remy(remy)) = flow.governor().algorithm() {
                memories.push(*remy.memory().axes());
            }
        }
    }

    /// The utility of a sender that ends now.
    fn worth(&self, flow: &Flow, (start, stop): (Time, Time)) -> f64 {
        // A sender that gets nothing through is as bad as one with a kbit/s.
        let mbps = flow.received().goodput.as_f64() * 8e-6 / stop.since(start).as_secs_f64();
        let delay = self.rtt.as_millis_f64() + flow.received().queue_delay.mean().as_millis_f64();
        libm::log2(mbps.max(1e-3)) - DELTA * libm::log2(delay)
    }
}
