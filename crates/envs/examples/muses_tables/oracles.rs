//! What comes of a window that follows an oracle: the most that who learns from it can have.

use std::path::Path;

use rayon::prelude::*;
use trimtab_cc::muses::{FACTOR_POINT, Factor};
use trimtab_envs::muses::{Environment, Oracle, Outcome, Part, Rollout};
use trimtab_units::{Duration, Rate};

use crate::{networks, unseen};

/// Those of the paper, of `muses` and of `muses:wide`.
fn oracles() -> [(&'static str, Oracle); 3] {
    let even_at = Some(Rate::from_mbps(24.0));
    let centred = Oracle { alpha_percent: 125, ahead: true, even_at, ..Oracle::PAPER };
    let looks = Oracle { room_percent: Some(25), span: Duration::from_millis(200), ..centred };
    [("Eq. 1", Oracle::PAPER), ("centred", centred), ("looks ahead", looks)]
}

/// Prints a row for each kind of networks: `count` of Table III, and the recordings of the part.
pub(crate) fn print(root: &Path, part: Part, count: u64, length: Duration) {
    let mut kinds: Vec<(String, Vec<Environment>)> =
        networks::of_table_3(part, length, Some(&root.to_owned()))
            .into_iter()
            .filter(|(kind, _)| kind != "lte")
            .map(|(kind, draw)| (kind, (0..count).map(draw).collect()))
            .collect();
    for kind in unseen::KINDS {
        kinds.push((kind.to_owned(), unseen::networks(root, kind, part)));
    }
    println!("| networks | {} |\n|---|---|---|---|", oracles().map(|(name, _)| name).join(" | "));
    for (kind, networks) in &kinds {
        let cell = |(_, oracle): (&str, Oracle)| {
            let run = |(seed, network): (usize, &Environment)| {
                follow(&Environment { oracle, ..network.clone() }, length, seed as u64)
            };
            let all: Vec<Outcome> = networks.par_iter().enumerate().map(run).collect();
            let mean = |of: &dyn Fn(&Outcome) -> f64| {
                all.iter().map(of).sum::<f64>() / all.len().max(1) as f64
            };
            format!(
                "{:.1}%, {:.0} ms, {:.2}%",
                100.0 * mean(&|o| o.utilisation),
                mean(&|o| o.queue_delay_p95.as_millis_f64()),
                100.0 * mean(&|o| o.loss),
            )
        };
        println!("| {kind} ({}) | {} |", networks.len(), oracles().map(cell).join(" | "));
    }
}

/// A flow whose window is the oracle's, as far as a decision can change it.
fn follow(network: &Environment, length: Duration, seed: u64) -> Outcome {
    let mut rollout = Rollout::lasting(network, 1, length, seed);
    while !rollout.is_done() {
        let parts = (rollout.optimal() << FACTOR_POINT) / rollout.window().max(1);
        let (least, most) = (Factor::MIN.parts(), Factor::MAX.parts());
        let parts = parts.clamp(least.into(), most.into()) as u16;
        rollout.act(Factor::new(parts).unwrap_or(Factor::ONE));
    }
    rollout.outcome()
}
