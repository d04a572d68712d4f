//! What the monitor says of a flow is what the world knows of it (Floo Table 2).

use trimtab_apps::{App, Application, Outcome, WebConfig};
use trimtab_cc::migrate::Switch;
use trimtab_cc::{CongestionControl, Spec};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::Steerer;
use trimtab_steer::select::{Metrics, Policy, Selector, SelectorConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

const RTT: Duration = Duration::from_millis(40);
const PERIOD: u64 = 12;

fn world(transport: Transport, loss: LossConfig) -> World {
    let link = LinkConfig::new(Capacity::Constant(Rate::from_mbps(4.0)))
        .queue(QueueConfig::drop_tail_bytes(Bytes::new(40_000)))
        .loss(loss);
    let candidates = ["cubic", "bbr", "copa", "westwood"].map(|c| Spec::new(c).unwrap()).to_vec();
    let selector = Selector::new(SelectorConfig::new(candidates, Policy::External));
    let control = Control::Algorithm {
        spec: selector.algorithm(),
        steerer: Some(Steerer::Select(Box::new(selector))),
    };
    let app = App::web(&WebConfig { clicks: None, ..WebConfig::default() });
    let flow = FlowConfig::new(control, transport, app, RTT);
    World::new(&WorldConfig { links: vec![(link, 1)], flows: vec![flow] })
}

fn selector(world: &World) -> &Selector {
    let Some(Steerer::Select(selector)) = world.flows()[0].steerer() else { panic!("it selects") };
    selector
}

fn get(metrics: &Metrics, name: &str) -> f64 {
    metrics.get(name).unwrap()
}

#[test]
fn metrics_are_those_of_the_world() {
    for transport in [Transport::quic(), Transport::linux_tcp()] {
        let mut world = world(transport, LossConfig::Independent(0.01));
        let mut sent_before = Bytes::ZERO;
        for period in 1..=5 {
            world.run_until(Time::from_secs(period * PERIOD));
            let (flow, selector) = (&world.flows()[0], selector(&world));
            assert_eq!(selector.selections().made, period, "the state of this moment");
            let metrics = selector.metrics();
            let sent = flow.sent().bytes - sent_before;
            sent_before = flow.sent().bytes;
            assert_eq!(get(metrics, "bytes_interval"), sent.as_f64());
            assert_eq!(
                get(metrics, "cwnd"),
                flow.governor().algorithm().unwrap().window().as_f64()
            );
            let fastest = get(metrics, "thpt_max") / 1e6;
            assert!((3.0..4.1).contains(&fastest), "a link of 4 Mbit/s: {fastest}");
            let rtt_min = get(metrics, "rtt_min");
            assert!((0.040..0.046).contains(&rtt_min), "40 ms and a packet of 3 ms: {rtt_min}");
            let srtt = flow.srtt().as_secs_f64();
            assert!((get(metrics, "rtt_rate") - (srtt / rtt_min - 1.0)).abs() < 1e-9);
            let loss = get(metrics, "loss_rate");
            assert!((0.002..0.15).contains(&loss), "1% and what the buffer drops: {loss}");
            assert_eq!(get(metrics, "cca_cubic"), 1.0);
            assert!(selector.state().iter().all(|x| x.is_finite() && x.abs() < 1.5));
        }
        // All responses of the last period, as the client knows them: most arrived within it.
        let Outcome::Requests(requests) = world.flows()[0].app().outcome(world.now()) else {
            panic!()
        };
        let from = Time::from_secs(4 * PERIOD);
        let done = requests.iter().filter(|r| r.completed_at.is_some_and(|at| at > from)).count();
        let (metrics, done) = (selector(&world).metrics(), done as f64);
        let arrived = get(metrics, "responses");
        assert!((arrived - done).abs() <= 0.1 * done, "{arrived} of {done}");
    }
}

/// Where the link cannot carry what is asked for, responses wait ever longer and the monitor sees it.
#[test]
fn a_queue_that_grows_shows() {
    let mut world = world(Transport::quic(), LossConfig::Independent(0.05));
    world.run_until(Time::from_secs(3 * PERIOD));
    let metrics = *selector(&world).metrics();
    let waiting = world.flows()[0].app().factors(world.now()).outstanding;
    let unsent = get(&metrics, "unsent_size");
    assert!(unsent > 0.0 && unsent <= waiting.as_f64(), "{unsent} of {waiting:?}");
    assert!(get(&metrics, "qws") > 0.05, "{}", get(&metrics, "qws"));
    assert!(get(&metrics, "busy") > 0.3, "{}", get(&metrics, "busy"));
}

/// An agent outside switches where the state was seen, on a copy of the world or on itself, with the same outcome.
#[test]
fn a_fork_shows_what_a_switch_will_do() {
    let mut world = world(Transport::quic(), LossConfig::None);
    world.run_until(Time::from_secs(PERIOD));
    let mut fork = world.clone();
    for w in [&mut fork, &mut world] {
        assert!(w.switch(0, Spec::new("bbr").unwrap(), Switch::Full));
        w.run_until(Time::from_secs(2 * PERIOD));
    }
    assert_eq!(selector(&fork).state(), selector(&world).state());
    assert_eq!(get(selector(&world).metrics(), "cca_bbr"), 1.0);
    assert_eq!(world.flows()[0].governor().algorithm().unwrap().name(), "bbr");
}
