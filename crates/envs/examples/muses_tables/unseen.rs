//! All recordings of a part, one flow over each; and what a flow gets next to CUBIC.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;
use trimtab_envs::links::recorded;
use trimtab_envs::muses::{Environment, Oracle, Outcome, Part, Rollout};
use trimtab_net::Capacity;
use trimtab_sim::Control;
use trimtab_units::{Bytes, Duration, Rate};

pub(crate) const KINDS: [&str; 3] = ["wifi", "cellular-lte", "cellular-5g"];
const DELAY: Duration = Duration::from_millis(25);
const BUFFER: Bytes = Bytes::new(300_000);
/// Less use than this counts as this much in a geometric mean.
const USE_MIN: f64 = 0.01;
/// Shorter queues than this, in ms, count as this in a ratio.
const DELAY_MIN_MS: f64 = 1.0;
/// Numbers of CUBIC flows.
const RIVALS: [usize; 3] = [1, 2, 4];
/// Rates in Mbit/s, round-trip times in ms and buffers in round trips' volumes, next to them.
const RIVAL_RATES: (f64, f64) = (12.0, 96.0);
const RIVAL_RTTS: (f64, f64) = (20.0, 100.0);
const RIVAL_BUFFERS: (f64, f64) = (1.0, 4.0);

type Schemes = [(String, Control)];

/// Prints a row for each kind and scheme: one flow from the begin of each recording of the part, a
/// round-trip time of 50 ms and a buffer of 300 kB.
pub(crate) fn print(root: &Path, part: Part, schemes: &Schemes, length: Duration) {
    println!(
        "| recordings | | utilisation, geometric mean | p95 queueing delay | … over cubic's | loss |\n\
         |---|---|---:|---:|---:|---:|"
    );
    for kind in KINDS {
        let links = networks(root, kind, part);
        let outcomes = |control: &Control| -> Vec<Outcome> {
            let run =
                |(seed, network)| Rollout::run_alone(network, control, 1, length, seed as u64);
            links.par_iter().enumerate().map(run).collect()
        };
        let cubic = outcomes(&cubic());
        for (name, control) in schemes {
            let all = outcomes(control);
            let used = log_mean(all.iter().map(|o| o.utilisation.max(USE_MIN)));
            let waits = |o: &Outcome| o.queue_delay_p95.as_millis_f64();
            let pairs = all.iter().zip(&cubic);
            let over = pairs.map(|(o, c)| waits(o).max(DELAY_MIN_MS) / waits(c).max(DELAY_MIN_MS));
            let n = all.len() as f64;
            println!(
                "| {kind} ({}) | {name} | {:.1}% [{:.1}, {:.1}] | {:.0} ms | {:.2} | {:.2}% |",
                all.len(),
                100.0 * used.0,
                100.0 * used.1,
                100.0 * used.2,
                all.iter().map(waits).sum::<f64>() / n,
                log_mean(over).0,
                100.0 * all.iter().map(|o| o.loss).sum::<f64>() / n,
            );
        }
    }
}

/// Prints what each scheme gets of an equal share next to CUBIC flows, on `count` drawn links.
pub(crate) fn print_rivals(part: Part, schemes: &Schemes, count: u64, length: Duration) {
    println!("| | 1 CUBIC flow | 2 | 4 |\n|---|---:|---:|---:|");
    let cubic = cubic();
    // Other links for the test.
    let first = if part == Part::Test { 1 << 32 } else { 0 };
    for (name, control) in schemes {
        let cell = |rivals: usize| {
            let run = |seed: u64| {
                let network = shared(first + seed);
                let times = (length / 3, length);
                Rollout::run_next_to(&network, control, (&cubic, rivals), times, first + seed)
            };
            let shares: Vec<f64> = (0..count).into_par_iter().map(run).collect();
            let n = shares.len() as f64;
            let mean = shares.iter().sum::<f64>() / n;
            let square = shares.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
            let half = 1.96 * (square / (n - 1.0).max(1.0) / n).sqrt();
            format!("{:.0}% ± {:.0}", 100.0 * mean, 100.0 * half)
        };
        println!("| {name} | {} |", RIVALS.map(cell).join(" | "));
    }
}

/// The recordings of a kind and part, 50 ms and 300 kB each.
pub(crate) fn networks(root: &Path, kind: &str, part: Part) -> Vec<Environment> {
    let links = recorded(root, &[kind.to_owned()], part.recordings())
        .unwrap_or_else(|problem| panic!("{problem}"));
    links.into_iter().map(|link| network(link.capacity, DELAY, BUFFER)).collect()
}

fn cubic() -> Control {
    Control::Algorithm { spec: "cubic".parse().expect("it is in the table"), steerer: None }
}

fn network(capacity: Capacity, delay: Duration, buffer: Bytes) -> Environment {
    Environment { name: String::new(), capacity, delay, loss: 0.0, buffer, oracle: Oracle::PAPER }
}

fn shared(seed: u64) -> Environment {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut drawn = |(low, high): (f64, f64)| low * libm::pow(high / low, random.random::<f64>());
    let rate = Rate::from_mbps(drawn(RIVAL_RATES));
    let delay = Duration::from_millis_f64(drawn(RIVAL_RTTS)) / 2;
    let buffer = Bytes::from_f64((rate * (delay * 2)).as_f64() * drawn(RIVAL_BUFFERS));
    network(Capacity::Constant(rate), delay, buffer.max(Bytes::new(30_000)))
}

/// A geometric mean with its 95% interval.
fn log_mean(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let logs: Vec<f64> = values.map(libm::log).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let square = logs.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
    let half = 1.96 * (square / (n - 1.0).max(1.0) / n).sqrt();
    (libm::exp(mean), libm::exp(mean - half), libm::exp(mean + half))
}
