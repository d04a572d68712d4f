//! What it costs to choose the algorithm while a connection runs: to measure, to decide, to switch.

use std::hint::black_box;

use trimtab_apps::{App, BulkConfig};
use trimtab_cc::migrate::{Switch, Switcher};
use trimtab_cc::{Ack, RateSample, Spec};
use trimtab_sim::{Control, FlowConfig, Transport, World};
use trimtab_steer::select::{FEATURES_LEN, Model, Policy, Selector, SelectorConfig, State};
use trimtab_steer::{Collector, Steerer};
use trimtab_units::{Bytes, Duration, Time};

use crate::cases::per_packet;
use crate::{processor, worlds};

const TIMES: u64 = 20_000;
const MSS: Bytes = Bytes::new(1500);

fn candidates() -> Vec<Spec> {
    let named = |name| Spec::new(name).expect("the zoo has it");
    ["cubic", "bbr", "copa", "westwood"].map(named).to_vec()
}

/// One acknowledgement in the sums that reports and the monitor's state are made of, ns.
pub(crate) fn collect() -> f64 {
    let mut collector = Collector::new(Time::ZERO);
    let (spent, ()) = processor::timed(|| {
        for n in 1..=TIMES {
            let now = Time::from_micros(500 * n);
            let rtt = Duration::from_micros(40_000 + n % 1000);
            let rate = Some(RateSample {
                delivered: MSS * 10,
                interval: rtt,
                prior_delivered: MSS * n,
                app_limited: n % 3 == 0,
                tx_in_flight: MSS * 11,
                lost: Bytes::ZERO,
            });
            collector.on_ack(black_box(&Ack {
                now,
                acked: MSS,
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: rtt,
                inflight: MSS * 10,
                prior_inflight: MSS * 11,
                delivered: MSS * n,
                newest_sent_at: now - rtt,
                rate,
                cwnd_limited: true,
                in_recovery: false,
            }));
        }
    });
    black_box(&collector);
    per_packet(spent, TIMES)
}

/// One decision of so many actors of 200 units over all features, us.
pub(crate) fn decide(members: usize) -> f64 {
    let model = Model::random(candidates(), members, 1);
    let states: Vec<State> = (0..64u16)
        .map(|k| core::array::from_fn(|i| f32::from(k * 7 + i as u16) / (64 * FEATURES_LEN) as f32))
        .collect();
    let (spent, chosen) = processor::timed(|| {
        let times = states.iter().cycle().take(TIMES as usize);
        times.map(|s| model.decide(black_box(s), Some(0)).unwrap_or_default()).sum::<usize>()
    });
    black_box(chosen);
    per_packet(spent, TIMES) / 1e3
}

/// One full switch of a flow in flight, us: the mean of all pairs.
pub(crate) fn switch() -> f64 {
    let mut pairs = 0.0;
    let mut sum = 0.0;
    for from in 0..candidates().len() {
        let config = SelectorConfig::new(candidates(), Policy::External);
        let selector = Selector::new(SelectorConfig { first: from, ..config });
        let spec = selector.algorithm();
        let steerer = Some(Steerer::Select(Box::new(selector)));
        let control = Control::Algorithm { spec, steerer };
        let flow = worlds::flow(Transport::quic(), App::bulk(&BulkConfig::default()), 0);
        let mut config = worlds::bulk(1, worlds::MBPS);
        config.flows = vec![FlowConfig { control, ..flow }];
        let mut world = World::new(&config);
        for to in (0..candidates().len()).filter(|to| *to != from) {
            let (running, to) = (converged(&mut world, candidates()[to]), candidates()[to]);
            let now = world.now();
            let mut copies = vec![running; 1000];
            let (spent, ()) = processor::timed(|| {
                copies.iter_mut().for_each(|c| c.request(to, Switch::Full, black_box(now)));
            });
            assert!(copies.iter().all(|c| c.switches() == 1), "it had converged");
            sum += per_packet(spent, 1000) / 1e3;
            pairs += 1.0;
        }
    }
    sum / pairs
}

/// Runs on until the flow's algorithm would hand over at once; a copy of it.
fn converged(world: &mut World, to: Spec) -> Switcher {
    loop {
        world.run_until(world.now() + Duration::from_millis(50));
        let switcher = world.flows()[0].governor().switcher();
        let switcher = switcher.expect("a selector makes its flow switch");
        let mut copy = switcher.clone();
        copy.request(to, Switch::Full, world.now());
        if copy.switches() == 1 {
            return switcher.clone();
        }
    }
}
