//! What the policies of Muses and every algorithm come to: utilisation, delay, loss, how far
//! networks are apart, and what is in flight (Figs. 3 and 4); on the networks of Table III, or on
//! such as nobody has learnt on.
//!
//! `cargo run --release -p trimtab-envs --example muses_tables -- NETWORKS SECONDS [TRACES [MODELS [KINDS [NAMES [PART]]]]]`;
//! TRACES is a folder of recordings for the cellular networks, MODELS the folder of the models;
//! KINDS is `table3`, or `outside` for networks that leave Table II, on which the models were
//! learnt, or `hindsight` for what each tree alone and the best choice among them come to on those
//! of Tables II and III, or `unseen` for all recordings of the part of Wi-Fi, LTE and 5G, or `rivals`
//! for the share next to CUBIC flows, or `probes` for what the back-off of probes
//! costs, or `oracles` for what who follows an oracle comes to;
//! NAMES are the schemes to run, or `all`; PART is `test`, or `validation`
//! while there is to choose.

mod hindsight;
mod networks;
mod oracles;
mod probes;
mod rows;
mod schemes;
mod unseen;

use std::path::PathBuf;

use rayon::prelude::*;
use trimtab_envs::muses::{Part, Rollout};
use trimtab_units::Duration;

use rows::{HEAD, RATIO_HEAD, Run, ratio, row};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        arguments.get(at).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let (count, length) = (number(0, 20), Duration::from_secs(number(1, 30)));
    let traces: Option<PathBuf> = arguments.get(2).map(Into::into);
    let models = arguments.get(3).map_or("models", String::as_str);
    let kind = arguments.get(4).map_or("table3", String::as_str);
    let kinds = ["table3", "outside", "hindsight", "unseen", "rivals", "probes", "oracles"];
    assert!(kinds.contains(&kind), "{kind}: write one of {}", kinds.join(", "));
    let (is_outside, is_hindsight) = (kind == "outside", kind == "hindsight");
    let part = match arguments.get(6).map(String::as_str) {
        None | Some("test") => Part::Test,
        Some("validation") => Part::Validation,
        Some(other) => panic!("{other}: write test or validation"),
    };
    let is_short = is_outside || ["unseen", "rivals", "probes"].contains(&kind);
    let mut schemes = schemes::schemes(models, is_short);
    if let Some(names) = arguments.get(5).filter(|names| *names != "all") {
        schemes.retain(|(name, _)| names.split(',').any(|wanted| wanted == name));
    }
    match (kind, &traces) {
        ("unseen", Some(root)) => return unseen::print(root, part, &schemes, length),
        ("unseen", None) => panic!("unseen: name the folder of the recordings"),
        ("probes", Some(root)) => return probes::print(root, part, &schemes, count, length),
        ("oracles", Some(root)) => return oracles::print(root, part, count, length),
        ("probes" | "oracles", None) => panic!("{kind}: name the folder of the recordings"),
        ("rivals", _) => return unseen::print_rivals(part, &schemes, count, length),
        _ => {}
    }
    let kinds = if is_outside {
        networks::outside_of_table_2(part, length, traces.as_ref())
    } else if is_hindsight {
        networks::of_tables_2_and_3(part, length, traces.as_ref())
    } else {
        networks::of_table_3(part, length, traces.as_ref())
    };
    if is_hindsight {
        return hindsight::print(models, &kinds, count, length);
    }
    println!("{HEAD}");
    let mut ratios = Vec::new();
    for (kind, draw) in &kinds {
        let mut of_kind: Vec<(&String, Vec<Run>)> = Vec::new();
        for (name, control) in &schemes {
            let runs: Vec<Run> = (0..count)
                .into_par_iter()
                .map(|seed| {
                    let network = draw(seed);
                    let (outcome, apart) = Rollout::run_watched(&network, control, length, seed);
                    (network.delay.as_millis_f64(), outcome, apart)
                })
                .collect();
            println!("| {kind} | {name} | {} |", row(&runs));
            of_kind.push((name, runs));
        }
        if let Some((_, cubic)) = of_kind.iter().find(|(name, _)| *name == "cubic") {
            let others = of_kind.iter().filter(|(name, _)| *name != "cubic");
            ratios.extend(
                others.map(|(name, runs)| format!("| {kind} | {name} | {} |", ratio(runs, cubic))),
            );
        }
    }
    if !ratios.is_empty() {
        println!("\n{RATIO_HEAD}\n{}", ratios.join("\n"));
    }
}
