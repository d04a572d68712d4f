//! What choosing among the trees of a model is worth: each tree alone over the same networks, and
//! what the best choice among them would have come to.

use std::sync::Arc;

use rayon::prelude::*;
use trimtab_envs::muses::Rollout;
use trimtab_sim::Control;
use trimtab_steer::muses::{Lstm, Policy};
use trimtab_units::Duration;

use crate::networks::Networks;
use crate::rows::Run;
use crate::schemes;

const HEAD: &str = "\
| networks | | utilisation | p95 queueing delay | loss | in flight | utilisation, less one tree's | delay, less one tree's |
|---|---|---:|---:|---:|---:|---:|---:|";

/// Prints a table of these networks: one tree for all, the trees as they are chosen, the LSTM,
/// every tree alone, and what the best choice among them would have come to.
pub(crate) fn print(models: &str, kinds: &[Networks], count: u64, length: Duration) {
    let trees = schemes::trees(models, "muses.trees");
    let lstm = Lstm::parse(&schemes::read(models, "muses.safetensors")).expect("a sound model");
    let mut all = vec![
        ("treeg".to_owned(), Policy::Trees(schemes::trees(models, "treeg.trees"))),
        ("muses".to_owned(), Policy::Trees(trees)),
        ("muses:lstm".to_owned(), Policy::Lstm(Arc::new(lstm))),
    ];
    let first = all.len();
    let alone = |n| Some((format!("tree {n}"), Policy::Trees(trees.only(n)?)));
    all.extend((0..trees.count()).filter_map(alone));
    println!("{HEAD}");
    for (kind, draw) in kinds {
        let jobs: Vec<(usize, u64)> =
            (0..all.len()).flat_map(|who| (0..count).map(move |seed| (who, seed))).collect();
        let runs: Vec<Run> = jobs
            .into_par_iter()
            .map(|(who, seed)| {
                let network = draw(seed);
                let safe = "copa:mvfst".parse().ok();
                let control = Control::Muses { policy: all[who].1.clone(), safe };
                let (outcome, apart) = Rollout::run_watched(&network, &control, length, seed);
                (network.delay.as_millis_f64(), outcome, apart)
            })
            .collect();
        let runs: Vec<&[Run]> = runs.chunks(count.max(1) as usize).collect();
        let (base, each) = (runs[0], &runs[first..]);
        let say = |name: &str, runs: &[Run]| println!("| {kind} | {name} | {} |", row(runs, base));
        for ((name, _), runs) in all.iter().zip(&runs) {
            say(name, runs);
        }
        say("the best for each flow", &best_of_each(each, |run, _| power(run), base));
        let ahead = |run: &Run, one: &Run| if no_worse(run, one) { used(run) } else { -1.0 };
        say("the best that is nowhere behind one", &best_of_each(each, ahead, base));
        say("the best of the other half", &best_of_the_other_half(each));
    }
}

/// For each flow the run of the tree with the highest score, compared with that of the one tree.
fn best_of_each(trees: &[&[Run]], score: impl Fn(&Run, &Run) -> f64, base: &[Run]) -> Vec<Run> {
    let best = |flow: usize| {
        let runs = trees.iter().map(|runs| runs[flow]);
        runs.max_by(|a, b| score(a, &base[flow]).total_cmp(&score(b, &base[flow])))
    };
    (0..base.len()).filter_map(best).collect()
}

/// On each half of the networks the runs of the tree with the most power on the other half: what a
/// choice is worth that knows the kind of the networks, and nothing of luck.
fn best_of_the_other_half(trees: &[&[Run]]) -> Vec<Run> {
    let flows = trees[0].len();
    let (low, high) = (0..flows / 2, flows / 2..flows);
    let runs_of = |on: std::ops::Range<usize>, by: std::ops::Range<usize>| {
        let score = |runs: &[Run]| runs[by.clone()].iter().map(power).sum::<f64>();
        let best = trees.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
        best.map_or(Vec::new(), |runs| runs[on].to_vec())
    };
    [runs_of(low.clone(), high.clone()), runs_of(high, low)].concat()
}

/// What arrived over what was waited for it, as a logarithm (Kleinrock's power).
fn power((delay, outcome, _): &Run) -> f64 {
    let owd = delay + outcome.queue_delay_p95.as_millis_f64();
    (outcome.utilisation.max(1e-3) / owd).ln()
}

fn used((_, outcome, _): &Run) -> f64 {
    outcome.utilisation
}

/// Whether a run has neither more delay nor more loss than another.
fn no_worse((_, run, _): &Run, (_, other, _): &Run) -> bool {
    run.queue_delay_p95 <= other.queue_delay_p95 && run.loss <= other.loss
}

/// Means, and by how much they differ from those of the one tree on the same networks, with half the 95 % interval.
fn row(runs: &[Run], base: &[Run]) -> String {
    let n = runs.len() as f64;
    let mean = |f: &dyn Fn(&Run) -> f64| runs.iter().map(f).sum::<f64>() / n;
    let less = |f: &dyn Fn(&Run) -> f64| {
        let values: Vec<f64> = runs.iter().zip(base).map(|(a, b)| f(a) - f(b)).collect();
        let mean = values.iter().sum::<f64>() / n;
        let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>();
        (mean, 1.96 * (square / (n - 1.0).max(1.0) / n).sqrt())
    };
    let percent = |run: &Run| 100.0 * used(run);
    let queue = |run: &Run| run.1.queue_delay_p95.as_millis_f64();
    let (more, spread) = less(&percent);
    let (longer, scatter) = less(&queue);
    format!(
        "{:.1}% | {:.1} ms | {:.2}% | {:.0} | {more:+.1} ± {spread:.1} | {longer:+.1} ± {scatter:.1} ms",
        mean(&percent),
        mean(&queue),
        mean(&|run| 100.0 * run.1.loss),
        mean(&|(_, _, apart)| apart * apart).sqrt(),
    )
}
