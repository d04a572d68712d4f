//! What an acknowledgement costs, by the kernel's statistics of its programs, over the same link.
//!
//! Other threads evict the programs and their data from the processor's caches, and on a busy
//! machine that is most of the cost. So a figure is the least over the rounds, which is what the
//! programs themselves take; the median is given, too.

use std::collections::BTreeMap;
use std::time::Duration;

use trimtab_cc::muses::Trees;
use trimtab_kernel::Algorithm;

use crate::hosts::Hosts;
use crate::programs::{Plain, Runs, Statistics, runs};
use crate::table::{Figure, Target, median};
use crate::{BenchError, Loaded, load, system};

/// An algorithm's programs: how their names begin, which of them runs once for each
/// acknowledgement, and how many times as long as plain CUBIC's they may take, where there is a bar.
struct Kind {
    name: String,
    prefix: &'static str,
    per_ack: &'static str,
    most: Option<f64>,
}

/// What each program ran in between.
fn difference(before: &Runs, after: &Runs) -> Runs {
    let since = |(name, &(count, time)): (&String, &(u64, u64))| {
        let (count_before, time_before) = before.get(name).copied().unwrap_or_default();
        // Another datapath that was unloaded meanwhile takes its runs with it.
        let runs = (count.saturating_sub(count_before), time.saturating_sub(time_before));
        (name.clone(), runs)
    };
    after.iter().map(since).collect()
}

/// Each flow of a round, of which the first seconds do not count.
const TIME: Duration = Duration::from_secs(5);

/// What one flow's programs took per acknowledgement, by the name of the program.
fn one(hosts: &Hosts, kind: &Kind, port: u16) -> Result<BTreeMap<String, f64>, BenchError> {
    let over = load::run(hosts, &kind.name, port, TIME, |_| Ok(runs()))?;
    let ran = difference(&over.before, &over.after);
    let acks = ran.get(kind.per_ack).map_or(0, |&(count, _)| count).max(1);
    let of_kind = ran.into_iter().filter(|(name, _)| name.starts_with(kind.prefix));
    Ok(of_kind.map(|(name, (_, time))| (name, time as f64 / acks as f64)).collect())
}

/// The model that ships, for Muses' connections; without the fallback, so that the trees run to the end.
fn plant(loaded: &Loaded) -> Result<(), BenchError> {
    static MODEL: &[u8] = include_bytes!("../../../../models/muses.trees");
    let trees = Trees::parse(MODEL).map_err(system("read the trees that ship"))?;
    let datapath = loaded.datapath()?;
    let number = datapath.add_trees(&trees)?;
    for (knob, value) in [("model", number), ("tree", trees.first() as f64), ("safe", 0.0)] {
        datapath.set_default_of(Algorithm::Muses, knob, value)?;
    }
    Ok(())
}

pub(crate) fn measure(
    hosts: &Hosts,
    loaded: &Loaded,
    rounds: usize,
) -> Result<Vec<Figure>, BenchError> {
    let ours = |algorithm, prefix, per_ack, most| Kind {
        name: loaded.name_of(algorithm),
        prefix,
        per_ack,
        most,
    };
    let plain =
        Kind { name: Plain::NAME.to_owned(), prefix: "plain_", per_ack: "plain_acked", most: None };
    let kinds = [
        plain,
        ours(Algorithm::Copa, "tt_copa_", "tt_copa_ack", Some(1.3)),
        ours(Algorithm::Cubic, "tt_cubic_", "tt_cubic_acked", Some(1.3)),
        ours(Algorithm::Bbr, "tt_bbr_", "tt_bbr_ack", Some(1.2)),
        ours(Algorithm::Bbr3, "tt_bbr3_", "tt_bbr3_ack", Some(1.4)),
        ours(Algorithm::Vivace, "tt_vivace_", "tt_vivace_ack", None),
        ours(Algorithm::Muses, "tt_muses_", "tt_muses_ack", Some(1.8)),
    ];
    plant(loaded)?;
    let _statistics = Statistics::on()?;
    let mut parts = [const { BTreeMap::<String, Vec<f64>>::new() }; 7];
    let mut sums = [const { Vec::new() }; 7];
    let mut ports = 7110..;
    for round in 0..rounds.max(1) {
        eprintln!("round {} of {rounds} with statistics of the programs", round + 1);
        for (i, kind) in kinds.iter().enumerate() {
            let took = one(hosts, kind, ports.next().unwrap_or(7109))?;
            let sum: f64 = took.values().sum();
            if sum <= 0.0 {
                return Err(BenchError::Idle(kind.name.clone()));
            }
            sums[i].push(sum);
            for (name, time) in took {
                parts[i].entry(name).or_default().push(time);
            }
        }
    }
    let mut figures = Vec::new();
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    for (i, kind) in kinds.iter().enumerate() {
        let short = kind.name.trim_end_matches("_z");
        for (name, times) in &parts[i] {
            // The rest runs a few times in a thousand acknowledgements.
            if least(times) >= 1.0 {
                figures.push(Figure::new(format!("{short}: … {name}"), least(times), "ns/ACK"));
            }
        }
        let all = format!("{short}: all its programs");
        figures.push(Figure::new(&all, least(&sums[i]), "ns/ACK"));
        let disturbed = Figure::new(format!("{all}, median"), median(sums[i].clone()), "ns/ACK");
        figures.push(disturbed);
        if kind.name != Plain::NAME {
            let ratio = least(&sums[i]) / least(&sums[0]);
            let ratio = Figure::new(format!("{short}: vs. plain CUBIC in eBPF"), ratio, "x");
            figures.push(match kind.most {
                Some(most) => ratio.target(Target::AtMost(most)),
                None => ratio,
            });
            let ratio = median(sums[i].clone()) / median(sums[0].clone());
            figures.push(Figure::new(format!("{short}: …, medians"), ratio, "x"));
        }
    }
    Ok(figures)
}
