//! A simulated video conference: what it comes to, and how fast the simulator is with it.
//!
//! ```text
//! cargo run --release -p trimtab-sim --example call -- gcc
//! ```

use std::time::Instant;

use trimtab_apps::{Application, CallConfig, Conference, Outcome};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

const LENGTH: Duration = Duration::from_secs(600);

fn main() {
    let cc = std::env::args().nth(1).unwrap_or_else(|| "gcc".to_owned());
    let spec = cc.parse().unwrap_or_else(|error| panic!("{cc}: {error}"));
    let call = Conference::new(CallConfig { length: LENGTH, ..CallConfig::conference() });
    let flow = FlowConfig::new(
        Control::Algorithm { spec, steerer: None },
        Transport::quic(),
        call.into(),
        Duration::from_millis(40),
    );
    let link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(3.0)))
        .queue(QueueConfig::DropTail { bytes: Some(Bytes::new(150_000)), packets: None });
    let mut world = World::new(&WorldConfig { links: vec![(link, 1)], flows: vec![flow] });
    let began = Instant::now();
    world.run_until(Time::ZERO + LENGTH);
    let took = began.elapsed().as_secs_f64();
    let Outcome::Call(record) = world.flows()[0].app().outcome(world.now()) else { return };
    println!(
        "{cc} at 3 Mbit/s: {:.2} Mbit/s, VMAF {:.1}, frame delay {:.0} ms, {:.2}% dropped, QoE {:.1}",
        record.bitrate().mbps(),
        record.vmaf(),
        record.mean_delay().map_or(f64::NAN, Duration::as_millis_f64),
        100.0 * record.drop_ratio(),
        record.qoe(),
    );
    println!("{:.0} times real time", LENGTH.as_secs_f64() / took);
}
