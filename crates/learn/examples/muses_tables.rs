//! The networks of Muses' Table III: utilisation, delay, loss, how far networks are apart, and what is in flight, of the
//! learnt policies and of every algorithm (Figs. 3 and 4).
//!
//! `cargo run --release -p trimtab-learn --example muses_tables -- NETWORKS SECONDS [TRACES [MODELS]]`; TRACES is a folder of
//! recordings for the cellular networks, MODELS the folder of the models.

use std::sync::Arc;

use rayon::prelude::*;
use trimtab_cc::ALGORITHMS;
use trimtab_cc::muses::Trees;
use trimtab_learn::muses::{
    Environments, EnvironmentsConfig, Oracle, Outcome, Part, Rollout, Setting,
};
use trimtab_sim::Control;
use trimtab_steer::muses::{Lstm, Policy};
use trimtab_units::Duration;

const SETTINGS: [Setting; 4] =
    [Setting::SteadyWifi, Setting::FluctuatingWifi, Setting::Lte, Setting::SharedWifi];

/// One network: its one-way delay in ms, what came of it, and the distance of what was in flight.
type Run = (f64, Outcome, f64);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        arguments.get(at).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let (networks, length) = (number(0, 20), Duration::from_secs(number(1, 30)));
    let traces = arguments.get(2).map(Into::into);
    let models = arguments.get(3).map_or("models", String::as_str);
    let contenders = contenders(models);
    println!(
        "| networks | | utilisation | p95 queueing delay | p95 one-way delay | loss | area | in flight |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|");
    for setting in SETTINGS {
        let all = Environments::new(&EnvironmentsConfig {
            setting,
            part: Part::Test,
            length: length + Duration::from_secs(2),
            recorded: traces.clone().map(|root| (root, vec!["cellular-lte".to_owned()])),
            generated: 32,
            delay_max: None,
            oracle: Oracle::PAPER,
        })
        .unwrap_or_else(|problem| panic!("{problem}"));
        for (name, control) in &contenders {
            let runs: Vec<Run> = (0..networks)
                .into_par_iter()
                .map(|seed| {
                    let network = all.draw(seed);
                    let (outcome, apart) = Rollout::run_watched(&network, control, length, seed);
                    (network.delay.as_millis_f64(), outcome, apart)
                })
                .collect();
            println!("| {} | {name} | {} |", setting.name(), row(&runs));
        }
    }
}

fn contenders(models: &str) -> Vec<(String, Control)> {
    let read = |file: &str| {
        let path = format!("{models}/{file}");
        std::fs::read(&path).unwrap_or_else(|problem| panic!("{path}: {problem}"))
    };
    let trees = |file: &str| Policy::Trees(Trees::parse(read(file).leak()).expect("a sound model"));
    let lstm = Lstm::parse(&read("muses.safetensors")).expect("a sound model");
    let safe = "copa:mvfst".parse().ok();
    let mut all: Vec<(String, Control)> = [
        ("muses", trees("muses.trees")),
        ("treeg", trees("treeg.trees")),
        ("muses:lstm", Policy::Lstm(Arc::new(lstm))),
    ]
    .map(|(name, policy)| (name.to_owned(), Control::Muses { policy, safe }))
    .into();
    let rules = ALGORITHMS.iter().map(|algorithm| algorithm.name).chain(["copa:mvfst"]);
    all.extend(rules.map(|name| {
        let spec = name.parse().expect("it is in the table");
        (name.to_owned(), Control::Algorithm { spec, steerer: None })
    }));
    all.push(("omniscient".to_owned(), Control::Omniscient));
    all
}

/// Means, with half the 95 % interval of the first two; and the area of the ellipse of one standard deviation of
/// utilisation in percent and one-way delay in ms.
fn row(runs: &[Run]) -> String {
    let n = runs.len() as f64;
    let of = |f: &dyn Fn(&Run) -> f64| {
        let values: Vec<f64> = runs.iter().map(f).collect();
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        (mean, square / (n - 1.0).max(1.0), values)
    };
    let used = of(&|(_, o, _)| 100.0 * o.utilisation);
    let queue = of(&|(_, o, _)| o.queue_delay_p95.as_millis_f64());
    let delay = of(&|(owd, o, _)| owd + o.queue_delay_p95.as_millis_f64());
    let loss = of(&|(_, o, _)| 100.0 * o.loss).0;
    let apart = of(&|(_, _, apart)| apart * apart).0.sqrt();
    let pairs = used.2.iter().zip(&delay.2);
    let both = pairs.map(|(u, d)| (u - used.0) * (d - delay.0)).sum::<f64>() / (n - 1.0).max(1.0);
    let area = core::f64::consts::PI * (used.1 * delay.1 - both * both).max(0.0).sqrt();
    let half = |variance: f64| 1.96 * (variance / n).sqrt();
    format!(
        "{:.1}% ± {:.1} | {:.0} ± {:.0} ms | {:.0} ms | {loss:.2}% | {area:.0} | {apart:.0}",
        used.0,
        half(used.1),
        queue.0,
        half(queue.1),
        delay.0
    )
}
