//! Muses Fig. 8 (§IV-E): a call next to cross traffic that steps, over 3 Mbit/s with 30 ms one way.
//!
//! `cargo test -p trimtab-sim --test sim muses_call -- --nocapture` prints what the call gets in each step
//! of 10 s. `scenarios/muses/fig8-webrtc.toml` compares more schemes.

use trimtab_apps::{CallConfig, Conference};
use trimtab_cc::muses::Trees;
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::muses::Policy;
use trimtab_units::{Bytes, Duration, Rate, Time};

const RTT: Duration = Duration::from_millis(60);
const STEP: u64 = 10;
/// Steps of cross traffic, of 500 kbit/s each. It rises by one each time, and then falls.
const STEPS: u64 = 5;

fn call(control: Control, start: u64, seconds: u64, seed: u64) -> FlowConfig {
    let length = Duration::from_secs(seconds);
    let app = Conference::new(CallConfig { length, seed, ..CallConfig::conference() });
    let flow = FlowConfig::new(control, Transport::quic(), app.into(), RTT);
    FlowConfig { start: Time::from_secs(start), seed: seed + 1, ..flow }
}

fn algorithm(cc: &str) -> Control {
    Control::Algorithm { spec: cc.parse().unwrap(), steerer: None }
}

/// Mbit/s of the call in each step: none, the five up, and the five down; the mean of five seeds.
fn steps(control: &Control) -> Vec<f64> {
    const SEEDS: u64 = 5;
    let mut means = vec![0.0; 2 * STEPS as usize + 1];
    for seed in 0..SEEDS {
        let mut flows = vec![call(control.clone(), 0, 110, seed)];
        for step in 1..=STEPS {
            // At a constant rate, as its least is its greatest.
            let constant = algorithm("gcc:rate_min=0.5,rate_max=0.5,rate_start=0.5");
            let seconds = 110 - 2 * STEP * step;
            flows.push(call(constant, STEP * step, seconds, 100 + 10 * seed + step));
        }
        let queue = QueueConfig::DropTail { bytes: Some(Bytes::new(150_000)), packets: None };
        let link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(3.0))).queue(queue);
        let mut world = World::new(&WorldConfig { links: vec![(link, 1)], flows });
        let mut before = 0.0;
        for (i, mean) in means.iter_mut().enumerate() {
            world.run_until(Time::from_secs(STEP * (i as u64 + 1)));
            let mbit = world.flows()[0].received().goodput.bits() * 1e-6;
            *mean += (mbit - before) / (STEP * SEEDS) as f64;
            before = mbit;
        }
    }
    means
}

/// §IV-E: "when cross traffic suddenly drops, Muses quickly occupies the free bandwidth". GCC, which
/// has yielded, needs the better part of a step to come back.
#[test]
fn muses_takes_what_cross_traffic_leaves_sooner_than_gcc() {
    let trees = Trees::parse(include_bytes!("../../../../models/muses.trees")).unwrap();
    let muses = steps(&Control::Muses { policy: Policy::Trees(trees), safe: None });
    let gcc = steps(&algorithm("gcc"));
    let row = |name: &str, values: &[f64]| {
        let cells: String = values.iter().map(|value| format!("{value:6.2}")).collect();
        println!("{name:20}{cells}");
    };
    let cross: Vec<f64> = (0..=2 * STEPS).map(|i| 0.5 * (i.min(2 * STEPS - i)) as f64).collect();
    row("cross traffic, Mbit/s", &cross);
    row("gcc", &gcc);
    row("muses", &muses);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (whole, falling) = (mean(&muses) / mean(&gcc), mean(&muses[6..8]) / mean(&gcc[6..8]));
    println!("muses / gcc: {whole:.2}, and {falling:.2} in the first two steps down");
    assert!(falling > 1.2, "{falling}");
    assert!(whole > 0.95, "{whole}");
}
