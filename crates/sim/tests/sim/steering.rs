//! Mortise on whole paths: what an application's price of delay does, a step of the capacity, an
//! outage, a flow of CUBIC, and more flows than the buffer has room for.

use trimtab_apps::{App, BulkConfig};
use trimtab_net::{Capacity, LinkConfig, QueueConfig, generate};
use trimtab_qoe::Model;
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::{Mortise, MortiseConfig, Steerer};
use trimtab_units::{Duration, Rate, Time};

const S: Duration = Duration::from_secs(1);

fn steered(formula: &str) -> Control {
    let config = MortiseConfig::new(Model::parse(formula, &[]).unwrap());
    let steerer = Some(Steerer::Mortise(Box::new(Mortise::new(config))));
    Control::Algorithm { spec: Mortise::algorithm(), steerer }
}

fn alone(name: &str) -> Control {
    Control::Algorithm { spec: name.parse().unwrap(), steerer: None }
}

/// Bulk flows over one link, which start a fraction of a second apart.
fn world(capacity: Capacity, buffer: u32, rtt: Duration, controls: Vec<Control>) -> World {
    let link = LinkConfig::new(capacity).queue(QueueConfig::drop_tail_packets(buffer));
    let flow = |(i, control): (usize, Control)| FlowConfig {
        start: Time::ZERO + Duration::from_millis(137) * i as u64,
        seed: 1 + i as u64,
        ..FlowConfig::new(control, Transport::quic(), App::bulk(&BulkConfig::default()), rtt)
    };
    let flows = controls.into_iter().enumerate().map(flow).collect();
    World::new(&WorldConfig { links: vec![(link, 1)], flows })
}

fn delta(world: &World, flow: usize) -> f64 {
    let Some(Steerer::Mortise(m)) = world.flows()[flow].steerer() else { panic!("steered") };
    m.applied_delta()
}

/// Goodput of each flow in Mbit/s, over so many seconds from now.
fn goodput_over(world: &mut World, seconds: u64) -> Vec<f64> {
    let got = |w: &World| -> Vec<f64> {
        w.flows().iter().map(|f| f.received().goodput.bits() / 1e6).collect()
    };
    let before = got(world);
    let until = world.now() + S * seconds;
    world.run_until(until);
    got(world).iter().zip(before).map(|(a, b)| (a - b) / seconds as f64).collect()
}

/// A capacity of these seconds and Mbit/s in turn.
fn steps(steps: &[(u64, f64)]) -> Capacity {
    let steps: Vec<_> = steps.iter().map(|(s, r)| (S * *s, Rate::from_mbps(*r))).collect();
    Capacity::trace(generate::steps(&steps).unwrap())
}

/// What packets of 1500 bytes carry of a link, at most.
const PAYLOAD: f64 = 0.96;

/// Eq. 4 on a whole path: on a link that varies the slowest packets wait several times as long as
/// the mean, so a price of the tail is the higher price of the queue, and the tail gets shorter.
#[test]
fn the_price_of_the_tail_shortens_the_tail() {
    let varying = || steps(&[(2, 24.0), (1, 8.0), (3, 16.0), (1, 6.0)]);
    let run = |formula: &str| {
        let rtt = Duration::from_millis(20);
        let mut world = world(varying(), 1_000, rtt, vec![steered(formula)]);
        let goodput = goodput_over(&mut world, 70)[0];
        (world.flows()[0].sent().rtt.quantile(0.95).as_millis_f64(), goodput)
    };
    let mut ratios: Vec<f64> = [6, 12, 18, 25, 35, 50, 70, 100, 150]
        .map(|k| {
            let (mean, tail) = (run(&format!("T - {k}*D")), run(&format!("T - {k}*p95(D)")));
            println!("{k} (p95 in ms, Mbit/s): {mean:?} {tail:?}");
            assert!(tail.1 > 0.97 * mean.1, "Mbit/s at {k}: {mean:?} {tail:?}");
            tail.0 / mean.0
        })
        .into();
    // The median, since a capacity that falls may look like rivals to one run of many.
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[4] < 0.93, "p95 over that of the mean's price: {ratios:?}");
}

/// Eq. 5 on a whole path. Both prices are below what moves the origin, so without Eq. 5 (`sigma:
/// 0.0`) both flows do the same to the last packet.
#[test]
fn the_price_of_delay_shortens_the_queue() {
    let run = |formula: &str| {
        let constant = Capacity::Constant(Rate::from_mbps(48.0));
        let mut world = world(constant, 1_000, Duration::from_millis(20), vec![steered(formula)]);
        goodput_over(&mut world, 10);
        let (mut log_mean, mut goodput) = (0.0, 0.0);
        for _ in 0..30 {
            goodput += goodput_over(&mut world, 1)[0] / 30.0;
            log_mean += delta(&world, 0).ln() / 30.0;
        }
        let queue = world.flows()[0].received().queue_delay.mean();
        (log_mean.exp(), goodput, queue.as_millis_f64())
    };
    let (cheap, costly) = (run("T"), run("T - 200*D"));
    println!("{cheap:?} {costly:?}");
    assert!(costly.0 > 1.4 * cheap.0, "δ: {cheap:?} {costly:?}");
    assert!(costly.2 < 0.8 * cheap.2, "ms in the queue: {cheap:?} {costly:?}");
    for (_, goodput, _) in [cheap, costly] {
        assert!(goodput > 0.98 * 48.0 * PAYLOAD, "{goodput} Mbit/s");
    }
}

/// Four times the capacity is taken within two seconds, and a quarter of it leaves no queue behind.
/// A packet of queue then costs a quarter, or four times, as much: with a price of delay δ follows.
#[test]
fn a_step_of_the_capacity_is_followed() {
    let run = |formula: &str, before: f64, after: f64| {
        let capacity = steps(&[(15, before), (60, after)]);
        let mut world = world(capacity, 250, Duration::from_millis(40), vec![steered(formula)]);
        goodput_over(&mut world, 15);
        let old = delta(&world, 0);
        let first = goodput_over(&mut world, 1)[0] / (after * PAYLOAD);
        let then = goodput_over(&mut world, 9)[0] / (after * PAYLOAD);
        let queue = world.queue(0).as_f64() / 1500.0;
        println!("{formula}, {before} to {after}: {first} {then}, {old} to {}", delta(&world, 0));
        (first, then, delta(&world, 0) / old, queue)
    };
    for formula in ["T", "T - 100*D"] {
        let (first, then, ratio, _) = run(formula, 12.0, 48.0);
        assert!(first > 0.6 && then > 0.97, "{formula}: {first} {then}");
        assert!(formula == "T" || ratio < 0.6, "{formula}: δ times {ratio}");
        let (first, then, ratio, queue) = run(formula, 48.0, 12.0);
        assert!(first > 0.85 && then > 0.97, "{formula}: {first} {then}");
        assert!(formula == "T" || ratio > 1.4, "{formula}: δ times {ratio}");
        assert!(queue < 100.0, "{formula}: {queue} packets");
    }
}

/// After an outage of one or three seconds the flow is back within a second, and δ where it was:
/// what stood in the queue meanwhile is no reason for another.
#[test]
fn an_outage_is_left_behind() {
    for formula in ["T", "T - 100*D"] {
        for outage in [1, 3] {
            let capacity = steps(&[(15, 24.0), (outage, 0.0), (60, 24.0)]);
            let mut world = world(capacity, 100, Duration::from_millis(40), vec![steered(formula)]);
            goodput_over(&mut world, 15);
            let old = delta(&world, 0);
            goodput_over(&mut world, outage);
            let first = goodput_over(&mut world, 1)[0] / (24.0 * PAYLOAD);
            let then = goodput_over(&mut world, 9)[0] / (24.0 * PAYLOAD);
            let new = delta(&world, 0);
            println!("{formula}, {outage} s: {first} {then}, {old} to {new}");
            assert!(first > 0.8 && then > 0.97, "{formula}, {outage} s: {first} {then}");
            assert!((0.5..2.0).contains(&(new / old)), "{formula}, {outage} s: {old} to {new}");
        }
    }
}

/// Next to a flow of CUBIC at a round-trip time of 100 ms, with a buffer of one bandwidth-delay
/// product. A floor, not a goal: in Fig. 15 Mortise File gets slightly more than CUBIC, and this gets
/// half of it.
#[test]
fn cubic_at_100_ms_leaves_some() {
    let constant = Capacity::Constant(Rate::from_mbps(24.0));
    let flows = vec![steered("T"), alone("cubic:linux")];
    let mut world = world(constant, 200, Duration::from_millis(100), flows);
    goodput_over(&mut world, 20);
    let shares = goodput_over(&mut world, 40);
    println!("{shares:?}");
    assert!(shares[0] > 0.25 * shares[1], "{shares:?}");
    assert!(shares[0] + shares[1] > 0.95 * 24.0 * PAYLOAD, "{shares:?}");
}

/// Sixteen flows on a buffer of 20 packets, an eighth of what the path holds, at four round-trip times
/// near 40 ms: which of the flows take losses for a full queue's is chance. A floor, not a goal: they
/// still lose a tenth of their packets, or a sixteenth where delay has a price. But it is half of
/// what a fixed δ loses, and the link stays full. Where delay is free, those that take the losses for
/// a full queue's have less than those that do not: it is shared as with a fixed δ, not better.
#[test]
fn sixteen_flows_on_a_short_buffer_lose_less_than_a_fixed_delta() {
    // Jain's index and the share of packets lost.
    let once = |rtt: u64, control: &dyn Fn() -> Control| {
        let constant = Capacity::Constant(Rate::from_mbps(48.0));
        let flows = (0..16).map(|_| control()).collect();
        let mut world = world(constant, 20, Duration::from_millis(rtt), flows);
        goodput_over(&mut world, 20);
        let counts = |w: &World| {
            let flows = w.flows().iter();
            flows.fold((0, 0), |(s, d), f| (s + f.sent().packets, d + f.received().dropped))
        };
        let before = counts(&world);
        let shares = goodput_over(&mut world, 20);
        let after = counts(&world);
        let lost = (after.1 - before.1) as f64 / (after.0 - before.0) as f64;
        let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        assert!(sum > 0.97 * 48.0 * PAYLOAD, "{sum} Mbit/s");
        (sum * sum / (16.0 * squares), lost)
    };
    let run = |even: f64, control: &dyn Fn() -> Control| {
        let runs = [36, 39, 41, 44].map(|rtt| once(rtt, control));
        let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / 4.0;
        println!("Jain's index and losses: {runs:?}");
        assert!(mean(|run| run.0) > even, "Jain's index and losses: {runs:?}");
        mean(|run| run.1)
    };
    let fixed = run(0.6, &|| alone("copa:mvfst"));
    let free = run(0.6, &|| steered("T"));
    let priced = run(0.9, &|| steered("T - 100*D"));
    println!("lost: {fixed} with a fixed delta, {free}, {priced}");
    assert!(free < 0.5 * fixed, "{free}, with a fixed delta {fixed}");
    assert!(priced < 0.75 * free, "{priced}, free {free}");
}
