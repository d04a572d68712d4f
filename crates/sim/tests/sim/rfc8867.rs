//! The wired test cases of RFC 8867 for congestion control of interactive media, in the simulator:
//! what each asks for as a figure with its bounds, for the rate controllers of calls and for
//! Mortise-GCC.
//!
//! `cargo test -p trimtab-sim --test sim rfc8867 -- --nocapture` prints the table. A call of ours takes up
//! to 2.5 Mbit/s.

use trimtab_apps::{App, BulkConfig, CallConfig, Conference, DownloadConfig, Workload};
use trimtab_net::{Capacity, LinkConfig, QueueConfig, generate};
use trimtab_qoe::{Factors, Model};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::{Tuned, Tuner, TunerConfig};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// What carries the calls.
const SCHEMES: [&str; 6] = ["gcc", "mortise:gcc", "nada", "scream", "copa", "bbr"];

/// A case's figure and its bounds.
struct Finding {
    case: &'static str,
    value: f64,
    least: f64,
    most: f64,
}

impl Finding {
    fn new(case: &'static str, value: f64, least: f64, most: f64) -> Self {
        Self { case, value, least, most }
    }

    fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.value)
    }
}

/// A call from `start` to the end of a case, over a path with this one-way propagation.
fn call(scheme: &str, start: u64, end: u64, one_way: u64) -> FlowConfig {
    let (spec, steerer) = match scheme.strip_prefix("mortise:") {
        None => (scheme.parse().unwrap(), None),
        Some(name) => {
            let tuned = Tuned::find(name).unwrap();
            let config =
                TunerConfig { model: Model::conference(), factors: Factors::new(), sigma: 0.5 };
            (tuned.algorithm(), Some(Box::new(Tuner::new(tuned, config)).into()))
        }
    };
    let length = Duration::from_secs(end - start);
    let app = Conference::new(CallConfig { length, seed: start, ..CallConfig::conference() });
    let rtt = Duration::from_millis(2 * one_way);
    let control = Control::Algorithm { spec, steerer };
    let flow = FlowConfig::new(control, Transport::quic(), app.into(), rtt);
    FlowConfig { start: Time::from_secs(start), seed: start + 1, ..flow }
}

/// A TCP flow, of CUBIC as Linux has it.
fn tcp(app: App, start: u64) -> FlowConfig {
    let control = Control::Algorithm { spec: "cubic".parse().unwrap(), steerer: None };
    let rtt = Duration::from_millis(100);
    let flow = FlowConfig::new(control, Transport::linux_tcp(), app, rtt);
    FlowConfig { start: Time::from_secs(start), seed: 100 + start, ..flow }
}

/// Capacities in Mbit/s, each for so many seconds, with a drop-tail queue of 300 ms of their mean
/// (RFC 8867 §4.1).
fn link(steps: &[(f64, u64)]) -> LinkConfig {
    let (mut bits, mut length) = (0.0, 0);
    for &(mbps, seconds) in steps {
        bits += mbps * 1e6 * seconds as f64;
        length += seconds;
    }
    let queue = Bytes::new((bits / length as f64 * 0.3 / 8.0) as u64);
    let steps: Vec<(Duration, Rate)> = steps
        .iter()
        .map(|&(mbps, seconds)| (Duration::from_secs(seconds), Rate::from_mbps(mbps)))
        .collect();
    let trace = generate::steps(&steps).unwrap();
    LinkConfig::new(Capacity::trace(trace))
        .queue(QueueConfig::DropTail { bytes: Some(queue), packets: None })
}

/// Mbit/s of each flow between two times.
fn rates(world: &mut World, from: u64, to: u64) -> Vec<f64> {
    let goodput = |world: &World| -> Vec<f64> {
        world.flows().iter().map(|flow| flow.received().goodput.bits()).collect()
    };
    world.run_until(Time::from_secs(from));
    let before = goodput(world);
    world.run_until(Time::from_secs(to));
    let seconds = (to - from) as f64;
    goodput(world)
        .iter()
        .zip(before)
        .map(|(after, before)| (after - before) * 1e-6 / seconds)
        .collect()
}

fn world(link: LinkConfig, flows: Vec<FlowConfig>) -> World {
    World::new(&WorldConfig { links: vec![(link, 1)], flows })
}

fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

/// §5.1: the path's capacity steps under one call. The least and the greatest share of it in the
/// last half of each step.
fn variable_capacity(scheme: &str) -> [Finding; 2] {
    let steps = [(1.0, 40), (2.5, 20), (0.6, 20), (1.0, 20)];
    let mut world = world(link(&steps), vec![call(scheme, 0, 100, 50)]);
    let (mut at, mut shares) = (0, Vec::new());
    for (mbps, seconds) in steps {
        at += seconds;
        shares.push(rates(&mut world, at - seconds / 2, at)[0] / mbps);
    }
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let waited = world.flows()[0].received().queue_delay.quantile(0.95).as_millis_f64();
    [
        Finding::new("5.1 least share of a step", least, 0.6, 1.0),
        Finding::new("5.1 queueing delay, p95, ms", waited, 0.0, 150.0),
    ]
}

/// §5.2: the same under two calls.
fn variable_capacity_of_two(scheme: &str) -> [Finding; 2] {
    let steps = [(4.0, 25), (2.0, 25), (3.5, 25), (1.0, 25), (2.0, 25)];
    let flows = (0..2).map(|_| call(scheme, 0, 125, 50)).enumerate();
    let flows = flows.map(|(i, flow)| FlowConfig { seed: i as u64 + 1, ..flow }).collect();
    let mut world = world(link(&steps), flows);
    let (mut at, mut fair, mut used) = (0, f64::INFINITY, f64::INFINITY);
    for (mbps, seconds) in steps {
        at += seconds;
        let rates = rates(&mut world, at - seconds / 2, at);
        fair = fair.min(jain(&rates));
        used = used.min(rates.iter().sum::<f64>() / mbps);
    }
    [
        Finding::new("5.2 least Jain index of a step", fair, 0.8, 1.0),
        Finding::new("5.2 least share of a step", used, 0.6, 1.0),
    ]
}

/// §5.3: a call each way, and the capacity of each way steps on its own: feedback of one waits in the
/// queue of the other. The least share of the forward way in the last half of each of its steps, with
/// the headers of its own media and the feedback of the other call left out; and the delay there.
fn congested_way_back(scheme: &str) -> [Finding; 2] {
    let forward = [(2.0, 20), (1.0, 20), (0.5, 20), (2.0, 40)];
    let backward = [(2.0, 35), (0.8, 35), (2.0, 30)];
    let back = FlowConfig { forward: vec![1], reverse: vec![0], ..call(scheme, 0, 100, 50) };
    let there = FlowConfig { reverse: vec![1], seed: 2, ..call(scheme, 0, 100, 50) };
    let links = vec![(link(&forward), 1), (link(&backward), 2)];
    let mut world = World::new(&WorldConfig { links, flows: vec![there, back] });
    let (mut at, mut least) = (0, f64::INFINITY);
    for (mbps, seconds) in forward {
        at += seconds;
        least = least.min(rates(&mut world, at - seconds / 2, at)[0] / mbps);
    }
    let waited = world.flows()[0].received().queue_delay.quantile(0.95).as_millis_f64();
    [
        Finding::new("5.3 least share of a step", least, 0.6, 1.0),
        Finding::new("5.3 queueing delay, p95, ms", waited, 0.0, 300.0),
    ]
}

/// §5.4: three calls, each 20 s after the one before.
fn competing_calls(scheme: &str) -> Finding {
    let flows = (0..3).map(|i| call(scheme, 20 * i, 120, 50)).collect();
    let mut world = world(link(&[(3.5, 120)]), flows);
    Finding::new("5.4 Jain index of three calls", jain(&rates(&mut world, 80, 120)), 0.8, 1.0)
}

/// §5.5: five calls with one-way delays of 10 to 150 ms, each 10 s after the one before.
fn round_trip_fairness(scheme: &str) -> Finding {
    let delays = [10, 25, 50, 100, 150];
    let flows = (0..).zip(delays).map(|(i, delay)| call(scheme, 10 * i, 300, delay)).collect();
    let mut world = world(link(&[(4.0, 300)]), flows);
    Finding::new("5.5 Jain index of five round trips", jain(&rates(&mut world, 200, 300)), 0.7, 1.0)
}

/// §5.6: a call next to a long TCP flow. Shares of the fair half.
fn next_to_long_tcp(scheme: &str) -> [Finding; 2] {
    let flows = vec![tcp(App::bulk(&BulkConfig::default()), 0), call(scheme, 5, 120, 50)];
    let mut world = world(link(&[(2.0, 120)]), flows);
    let rates = rates(&mut world, 40, 120);
    [
        Finding::new("5.6 the call, of a half", rates[1], 0.3, 1.7),
        Finding::new("5.6 the TCP flow, of a half", rates[0], 0.3, 1.7),
    ]
}

/// §5.7: two calls next to short TCP flows: ten that come and go, of 100 to 1000 kB.
fn next_to_short_tcp(scheme: &str) -> Finding {
    let mut flows: Vec<FlowConfig> = (0..2).map(|i| call(scheme, 5 + i, 300, 50)).collect();
    for i in 0..10_u64 {
        let mut text = String::new();
        for k in 0..9 {
            text += &format!("{} {}\n", 30_000, 100_000 + (i * 7 + k * 3) % 10 * 90_000);
        }
        let app = App::download(DownloadConfig::new(Workload::parse(&text).unwrap()));
        flows.push(tcp(app, 3 * i));
    }
    let mut world = world(link(&[(2.0, 300)]), flows);
    let rates = rates(&mut world, 60, 300);
    Finding::new("5.7 two calls, of 2 Mbit/s", rates[0] + rates[1], 0.6, 2.0)
}

/// §5.8: three calls, of which one pauses from 40 s to 60 s. What the others take of the link in the
/// second half of the pause, and Jain's index of the three from 20 s after it on.
fn a_pause(scheme: &str) -> [Finding; 2] {
    let pause = Some((Duration::from_secs(40), Duration::from_secs(60)));
    let mut flows: Vec<FlowConfig> =
        (0..3).map(|i| FlowConfig { seed: i + 1, ..call(scheme, 0, 120, 50) }).collect();
    let length = Duration::from_secs(120);
    let pausing = CallConfig { length, pause, seed: 1, ..CallConfig::conference() };
    flows[1].app = Conference::new(pausing).into();
    let mut world = world(link(&[(3.5, 120)]), flows);
    let others = rates(&mut world, 50, 60);
    let all = rates(&mut world, 80, 120);
    [
        Finding::new("5.8 the others in the pause", (others[0] + others[2]) / 3.5, 0.6, 1.0),
        Finding::new("5.8 Jain index after it", jain(&all), 0.8, 1.0),
    ]
}

fn all(scheme: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(variable_capacity(scheme));
    findings.extend(variable_capacity_of_two(scheme));
    findings.extend(congested_way_back(scheme));
    findings.push(competing_calls(scheme));
    findings.push(round_trip_fairness(scheme));
    findings.extend(next_to_long_tcp(scheme));
    findings.push(next_to_short_tcp(scheme));
    findings.extend(a_pause(scheme));
    findings
}

/// Steering fails no case that GCC itself keeps, nor that with a long TCP flow.
#[test]
fn mortise_gcc_keeps_what_gcc_keeps() {
    let tables: Vec<Vec<Finding>> = SCHEMES.iter().map(|scheme| all(scheme)).collect();
    println!("{:36} {}", "RFC 8867", SCHEMES.map(|scheme| format!("{scheme:>12}")).concat());
    for (i, first) in tables[0].iter().enumerate() {
        let cells = tables.iter().map(|table| {
            let (mark, value) = (if table[i].holds() { ' ' } else { '!' }, table[i].value);
            format!("{value:>11.2}{mark}")
        });
        println!("{:36} {}", first.case, cells.collect::<String>());
    }
    println!("!: not within the bounds of the case");
    // What the rate controllers of calls find alone on a path and next to their own kind.
    for (scheme, table) in SCHEMES.iter().zip(&tables).take(4) {
        for finding in &table[..4] {
            assert!(finding.holds(), "{scheme}, {}: {}", finding.case, finding.value);
        }
    }
    for (gcc, steered) in tables[0].iter().zip(&tables[1]) {
        let needed = gcc.holds() || steered.case.starts_with("5.6");
        assert!(!needed || steered.holds(), "{}: {}", steered.case, steered.value);
    }
}
