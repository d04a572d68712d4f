//! A look after a switch, on a whole path. What it goes by has its tests in `select/look_tests.rs`.

use trimtab_apps::{App, BulkConfig};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::select::{Policy, Selector, SelectorConfig};
use trimtab_steer::{Selections, Steer, Steerer, Utility};
use trimtab_units::{Duration, Rate, Time};

const RTT: Duration = Duration::from_millis(40);

/// A flow that runs CUBIC for a period of 12 s, and then tries another algorithm.
fn tries(other: &str) -> Control {
    let candidates = ["cubic", other].map(|name| name.parse().unwrap()).to_vec();
    let config = SelectorConfig::new(candidates, Policy::Rule(Utility::Throughput));
    let look = Some(Duration::from_secs(2));
    let selector = Selector::new(SelectorConfig { look, ..config });
    let spec = selector.algorithm();
    Control::Algorithm { spec, steerer: Some(Steerer::Select(Box::new(selector))) }
}

/// A bulk flow over 24 Mbit/s with a buffer of one bandwidth-delay product.
fn world(control: Control) -> World {
    let link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(24.0)))
        .queue(QueueConfig::drop_tail_packets(80));
    let app = App::bulk(&BulkConfig::default());
    let flow = FlowConfig::new(control, Transport::quic(), app, RTT);
    World::new(&WorldConfig { links: vec![(link, 1)], flows: vec![flow] })
}

fn done(world: &World) -> Selections {
    let steerer = world.flows()[0].steerer().expect("it is steered");
    steerer.insight().selections.expect("it selects")
}

fn runs(world: &World) -> &'static str {
    world.flows()[0].governor().switcher().expect("it switches").spec().algorithm().name
}

/// Alone the same algorithm gets as much as CUBIC, with a smaller queue.
#[test]
fn alone_it_stays() {
    for other in ["vegas", "copa", "bbr"] {
        let mut world = world(tries(other));
        world.run_until(Time::from_millis(23_500));
        assert_eq!((done(&world).reverts, runs(&world)), (0, other));
    }
}
