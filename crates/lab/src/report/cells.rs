//! How steering does at each point of the grid. A mean over the grid can hide a cell where a plain
//! algorithm would have been the better choice; here every cell has its own best algorithm.

use std::collections::BTreeMap;

use trimtab_units::Bytes;

use crate::result::{CellGap, CellRecord, CellSummary, RunRecord, Scale, SteeredInCell};
use crate::stats::overload::is_overloaded;
use crate::stats::summary::{in_order, scale};
use trimtab_steer::scheme::{is_bound, is_steered};

/// The bound that shows what the best constant δ gives: what steering δ alone can be measured by.
const ORACLE: &str = "oracle:copa";

/// Where experience has a ratio: a cell counts as lost when steering is more than so many percent
/// below the best algorithm.
pub const LOST_PERCENT: f64 = 3.0;

/// Where only differences of experience have a meaning: the same, in the unit of the QoE model per
/// chunk or request. For video that is about what a 5% higher bitrate gives, ln 1.05
/// (Mortise eq. 8).
pub const LOST_DIFFERENCE: f64 = 0.05;

/// What a scheme's runs in a cell came to, by seed. Cells that look alike come as one, so a seed may
/// have several runs: they are numbered.
pub(super) type Seeds = BTreeMap<(u64, usize), Outcome>;

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// What it is judged by.
    score: f64,
    /// Mean experience over its requests.
    qoe_mean: f64,
}

/// Those of a scheme.
pub(super) fn seeds<'a>(
    cc: &str,
    runs: impl IntoIterator<Item = &'a RunRecord>,
    scale: Scale,
) -> Seeds {
    let mut seeds = Seeds::new();
    for run in runs.into_iter().filter(|run| run.cc == cc) {
        let copy = seeds.range((run.seed, 0)..=(run.seed, usize::MAX)).count();
        let outcome = Outcome { score: run.score(scale), qoe_mean: run.qoe.mean };
        seeds.insert((run.seed, copy), outcome);
    }
    seeds
}

/// The scores of both in every pair of runs.
pub(super) fn paired(own: &Seeds, other: &Seeds) -> Vec<(f64, f64)> {
    own.iter().filter_map(|(seed, a)| Some((a.score, other.get(seed)?.score))).collect()
}

/// One row per application and cell. Runs come in the order of the scenario, so those of a cell
/// stand together.
pub fn cells(runs: &[RunRecord]) -> Vec<CellSummary> {
    let of_app = runs.chunk_by(|a, b| a.app == b.app);
    of_app
        .flat_map(|runs| {
            let scale = scale(runs.iter());
            runs.chunk_by(|a, b| a.trace == b.trace && a.cell == b.cell)
                .filter_map(move |runs| cell(runs, scale))
        })
        .collect()
}

/// The row of a cell; `None` when no rule-based algorithm ran there.
fn cell(runs: &[RunRecord], scale: Scale) -> Option<CellSummary> {
    let first = runs.first()?;
    let schemes: Vec<(&str, Seeds)> = in_order(runs.iter().map(|r| r.cc.as_str()))
        .into_iter()
        .map(|cc| (cc, seeds(cc, runs, scale)))
        .collect();
    let rule_based = schemes.iter().filter(|(cc, _)| !is_bound(cc) && !is_steered(cc));
    // The first of equals, as the scenario names them.
    let (best, best_seeds) =
        rule_based.reduce(|a, b| if score(&b.1, scale) > score(&a.1, scale) { b } else { a })?;
    let oracle = schemes.iter().find(|(cc, _)| *cc == ORACLE);
    let steered = schemes.iter().filter(|(cc, _)| is_steered(cc));
    Some(CellSummary {
        app: first.app.clone(),
        trace: first.trace.clone(),
        cell: first.cell.clone(),
        scale,
        overloaded: is_overloaded(runs),
        best: (*best).to_owned(),
        best_score: score(best_seeds, scale),
        best_qoe_mean: qoe_mean(best_seeds),
        steered: steered
            .map(|(cc, own)| SteeredInCell {
                cc: (*cc).to_owned(),
                score: score(own, scale),
                qoe_mean: qoe_mean(own),
                versus_best: gap(own, best_seeds, scale),
                versus_oracle: oracle.and_then(|(_, seeds)| gap(own, seeds, scale)),
            })
            .collect(),
    })
}

fn qoe_mean(seeds: &Seeds) -> f64 {
    mean(seeds.values().map(|run| run.qoe_mean))
}

/// The score over seeds: the geometric mean where experience has a ratio.
fn score(seeds: &Seeds, scale: Scale) -> f64 {
    match scale {
        Scale::Ratio => libm::exp(mean(seeds.values().map(|run| libm::log(run.score)))),
        Scale::Difference => mean(seeds.values().map(|run| run.score)),
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// The paired change; `None` without a seed in common.
fn gap(own: &Seeds, other: &Seeds, scale: Scale) -> Option<CellGap> {
    let pairs = paired(own, other);
    let over = |f: fn(f64, f64) -> f64| mean(pairs.iter().map(|&(a, b)| f(a, b)));
    (!pairs.is_empty()).then(|| CellGap {
        pairs: pairs.len() as u64,
        change_percent: (scale == Scale::Ratio)
            .then(|| 100.0 * (libm::exp(over(|a, b| libm::log(a / b))) - 1.0)),
        difference: over(|a, b| a - b),
    })
}

impl CellGap {
    /// The change that the scale compares by: percent, or the difference.
    fn shown(&self) -> f64 {
        self.change_percent.unwrap_or(self.difference)
    }
}

/// A sentence per application and steered scheme; none for an application with a single cell,
/// where the table says it all.
pub fn findings(cells: &[CellSummary]) -> Vec<String> {
    cells
        .chunk_by(|a, b| a.app == b.app)
        .filter(|of_app| of_app.len() > 1)
        .flat_map(|of_app| {
            let steered = of_app.iter().flat_map(|c| c.steered.iter().map(|s| s.cc.as_str()));
            in_order(steered).into_iter().filter_map(|cc| finding(of_app, cc))
        })
        .collect()
}

/// The sentence about a steered scheme in the cells of an application.
fn finding(cells: &[CellSummary], cc: &str) -> Option<String> {
    let own = || {
        cells
            .iter()
            .filter_map(|c| c.steered.iter().find(|s| s.cc == cc).map(|steered| (c, steered)))
    };
    let gaps: Vec<(&CellSummary, f64)> =
        own().filter_map(|(c, s)| Some((c, s.versus_best?.shown()))).collect();
    let (worst, by) =
        gaps.iter().copied().reduce(|worst, g| if g.1 < worst.1 { g } else { worst })?;
    let lost = match worst.scale {
        Scale::Ratio => LOST_PERCENT,
        Scale::Difference => LOST_DIFFERENCE,
    };
    let count = gaps.iter().filter(|(_, gap)| *gap < -lost).count();
    let ahead = by > 0.0;
    let (margin, by) = match worst.scale {
        Scale::Ratio => (format!("{lost}%"), format!("{by:+.1}%")),
        Scale::Difference => (format!("{lost}"), format!("{by:+.3}")),
    };
    // Where steering is ahead everywhere, the cell with the smallest lead is no loss.
    let extreme = if ahead { "smallest lead" } else { "worst" };
    let mut sentence = format!(
        "{}, {cc}: below the best algorithm of the cell by more than {margin} in {count} of {} cells; \
         {extreme}: {by} against {} in {}",
        worst.app,
        gaps.len(),
        worst.best,
        place(worst),
    );
    // Runs weigh alike, and ratios have a geometric mean, as in the summary.
    let of_oracle = own().filter_map(|(_, s)| s.versus_oracle);
    let (sum, pairs) = of_oracle.fold((0.0, 0), |(sum, pairs), gap| {
        let value = match worst.scale {
            Scale::Ratio => libm::log1p(gap.shown() / 100.0),
            Scale::Difference => gap.shown(),
        };
        (sum + value * gap.pairs as f64, pairs + gap.pairs)
    });
    if pairs > 0 {
        let mean = sum / pairs as f64;
        sentence += &match worst.scale {
            Scale::Ratio => {
                format!("; mean relative to {ORACLE}: {:.1}%", 100.0 * libm::exp(mean))
            }
            Scale::Difference => format!("; mean difference to {ORACLE}: {mean:+.3}"),
        };
    }
    Some(sentence)
}

/// A cell in words.
fn place(c: &CellSummary) -> String {
    place_of(&c.trace, &c.cell)
}

/// A point of the grid, in words.
pub(crate) fn place_of(trace: &str, cell: &CellRecord) -> String {
    let (flows, buffer) = (cell.flows, Bytes::new(cell.buffer_bytes));
    // Rounded so that 0.07 is 7%, not 7.000000000000001%.
    let loss = (cell.loss * 1e6).round() / 1e4;
    let plural = if flows == 1 { "" } else { "s" };
    let jitter = match cell.jitter_ms {
        0.0 => String::new(),
        jitter => format!(", {jitter}ms jitter"),
    };
    let rivals = match cell.rivals.as_str() {
        "" => String::new(),
        rivals => format!(", next to {rivals}"),
    };
    let rtt = cell.rtt_text();
    format!("{trace} ({rtt}, {buffer}, {loss}% loss{jitter}, {flows} flow{plural}{rivals})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    /// Runs of one cell, in the order of the scenario.
    fn at(trace: &str, seed: u64, quality: &[(&str, f64)]) -> Vec<RunRecord> {
        quality.iter().map(|(cc, q)| run(cc, trace, seed, *q)).collect()
    }

    fn video(mut runs: Vec<RunRecord>) -> Vec<RunRecord> {
        for r in &mut runs {
            r.app = "vod".to_owned();
            r.bitrate_kbps_mean = Some(1000.0);
        }
        runs
    }

    #[test]
    fn each_cell_has_its_own_best_algorithm() {
        let runs = [
            at("slow", 0, &[("cubic", 1.0), ("bbr", 0.8), ("mortise", 0.9), ("omniscient", 3.0)]),
            at(
                "fast",
                0,
                &[("cubic", 10.0), ("bbr", 20.0), ("mortise", 25.0), ("omniscient", 30.0)],
            ),
        ]
        .concat();
        let cells = cells(&runs);
        let best: Vec<_> =
            cells.iter().map(|c| (c.trace.as_str(), c.best.as_str(), c.best_qoe_mean)).collect();
        assert_eq!(best, [("slow", "cubic", 1.0), ("fast", "bbr", 20.0)]);
        let change = |i: usize| cells[i].steered[0].versus_best.unwrap().change_percent.unwrap();
        assert!((change(0) + 10.0).abs() < 1e-9 && (change(1) - 25.0).abs() < 1e-9);
        assert_eq!(cells[0].steered.len(), 1, "only the steered one is measured");
        assert_eq!(cells[0].steered[0].versus_oracle, None);
    }

    #[test]
    fn changes_are_paired_over_seeds() {
        // The second seed starts at a faster part of the trace; the third is missing for cubic.
        let runs = [
            at("t", 0, &[("cubic", 1.0), ("mortise", 0.9)]),
            at("t", 1, &[("cubic", 10.0), ("mortise", 10.5)]),
            at("t", 2, &[("mortise", 99.0)]),
        ]
        .concat();
        let cells = cells(&runs);
        assert_eq!(cells.len(), 1);
        let gap = cells[0].steered[0].versus_best.unwrap();
        assert_eq!(gap.pairs, 2);
        // √(0.9 · 1.05).
        assert!((gap.change_percent.unwrap() + 2.788890).abs() < 1e-6, "{gap:?}");
        assert!((gap.difference - 0.2).abs() < 1e-9, "{gap:?}");
    }

    #[test]
    fn cells_differ_in_more_than_the_trace() {
        let mut runs = at("t", 0, &[("cubic", 1.0), ("mortise", 1.0)]);
        let mut lossy = runs.clone();
        lossy.iter_mut().for_each(|r| r.cell.loss = 0.02);
        runs.extend(lossy);
        assert_eq!(cells(&runs).len(), 2);
        let unsteered = at("t", 0, &[("mortise", 1.0), ("omniscient", 2.0)]);
        assert!(cells(&unsteered).is_empty(), "nothing to compare with");
    }

    #[test]
    fn a_sentence_counts_lost_cells_and_names_the_worst() {
        let mut runs = [
            at("a", 0, &[("cubic", 1.0), ("bbr", 0.5), ("mortise", 0.98), ("oracle:copa", 1.0)]),
            at("b", 0, &[("cubic", 1.0), ("bbr", 0.5), ("mortise", 0.96), ("oracle:copa", 1.0)]),
            at("c", 0, &[("cubic", 1.0), ("bbr", 2.0), ("mortise", 1.8), ("oracle:copa", 2.0)]),
        ]
        .concat();
        for r in runs.iter_mut().filter(|r| r.trace == "c") {
            r.cell.loss = 0.07;
            r.cell.flows = 4;
        }
        assert_eq!(
            findings(&cells(&runs)),
            [
                "download, mortise: below the best algorithm of the cell by more than 3% in 2 of 3 cells; \
              worst: -10.0% against bbr in c (20ms, 150KB, 7% loss, 4 flows); \
              mean relative to oracle:copa: 94.6%"
            ]
        );
    }

    #[test]
    fn a_lead_everywhere_is_not_called_worst() {
        let runs = [
            at("a", 0, &[("cubic", 1.0), ("mortise", 1.2)]),
            at("b", 0, &[("cubic", 1.0), ("mortise", 1.1)]),
        ]
        .concat();
        let found = findings(&cells(&runs));
        assert!(
            found[0].contains("in 0 of 2 cells; smallest lead: +10.0% against cubic in b"),
            "{found:?}"
        );
    }

    #[test]
    fn video_is_compared_by_difference() {
        let runs = video(
            [
                at("a", 0, &[("cubic", -1.0), ("mortise", -1.04), ("mortise-disc", -1.2)]),
                at("b", 0, &[("cubic", 1.0), ("mortise", 1.5), ("mortise-disc", 1.25)]),
            ]
            .concat(),
        );
        let cells = cells(&runs);
        assert_eq!(cells[1].steered[0].versus_best.unwrap().change_percent, None);
        let lines = findings(&cells);
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0],
            "vod, mortise: below the best algorithm of the cell by more than 0.05 in 0 of 2 cells; \
             worst: -0.040 against cubic in a (20ms, 150KB, 0% loss, 1 flow)"
        );
        assert!(lines[1].contains("in 1 of 2 cells; worst: -0.200"), "{lines:?}");
    }

    #[test]
    fn one_cell_needs_no_sentence() {
        let mut runs = at("a", 0, &[("cubic", 1.0), ("mortise", 0.5)]);
        assert!(findings(&cells(&runs)).is_empty());
        runs.extend(video(runs.clone()));
        assert_eq!(cells(&runs).len(), 2);
        assert!(findings(&cells(&runs)).is_empty(), "one cell of each application");
    }

    /// Two buffers of as many bytes, counted in bytes and in packets, have records that look alike.
    #[test]
    fn runs_of_cells_that_look_alike_all_count() {
        let runs = [
            at("t", 0, &[("cubic", 1.0), ("mortise", 2.0)]),
            at("t", 0, &[("cubic", 4.0), ("mortise", 2.0)]),
        ]
        .concat();
        let [cell] = &cells(&runs)[..] else { panic!("one cell") };
        assert_eq!((cell.best_qoe_mean, cell.steered[0].qoe_mean), (2.5, 2.0));
        let gap = cell.steered[0].versus_best.unwrap();
        assert_eq!((gap.pairs, gap.change_percent), (2, Some(0.0)), "+100% and -50% cancel out");
    }
}
