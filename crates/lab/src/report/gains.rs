//! On which paths the scheme that leads gains, and on which it does not: the first sentence of a report.
//!
//! A mean over paths can hide that one of them loses. Each path is judged by itself, over its seeds: it
//! gains or loses where the 95% interval of the paired change leaves zero out and the change exceeds
//! what counts in a cell ([`LOST_PERCENT`], [`LOST_DIFFERENCE`]).

use crate::report::cells::{LOST_DIFFERENCE, LOST_PERCENT, paired, place_of, seeds};
use crate::report::headline::{Duel, duel, users};
use crate::result::{Change, RunRecord, Scale, SummaryRow};
use crate::stats::summary::{geometric_mean, in_order};
use crate::stats::{Sums, bca};

/// With fewer seeds a path has no verdict: the interval of a bootstrap is too narrow then.
const SEEDS_MIN: usize = 5;
/// More paths than this are counted, and only the extreme is named.
const NAMED_MAX: usize = 3;

/// The change of one path.
struct Gain {
    path: String,
    change: Change,
    /// The least change that counts.
    least: f64,
}

/// A sentence per application that has several paths, each with seeds enough for a verdict.
pub(super) fn gains(summary: &[SummaryRow], runs: &[RunRecord]) -> Vec<String> {
    let apps = in_order(summary.iter().map(|r| r.app.as_str()));
    apps.into_iter()
        .filter_map(|app| {
            let duel = duel(summary, app)?;
            let runs: Vec<&RunRecord> = runs.iter().filter(|r| r.app == app).collect();
            Some(sentence(app, &duel, &paths(&runs, &duel)?))
        })
        .collect()
}

/// The change of each path; `None` for a single path, or where one has too few seeds.
fn paths(runs: &[&RunRecord], duel: &Duel<'_>) -> Option<Vec<Gain>> {
    // Runs come in the order of the scenario, so those of a path stand together.
    let all: Vec<&[&RunRecord]> =
        runs.chunk_by(|a, b| a.trace == b.trace && a.cell == b.cell).collect();
    let names = in_order(runs.iter().map(|r| r.trace.as_str()));
    let gain = |of_path: &[&RunRecord]| {
        let first = of_path.first()?;
        let of = |cc: &str| seeds(cc, of_path.iter().copied(), duel.ahead.scale);
        let pairs = paired(&of(&duel.ahead.cc), &of(&duel.behind.cc));
        let percent = duel.ahead.scale == Scale::Ratio;
        let change = |&(a, b): &(f64, f64)| if percent { libm::log(a / b) } else { a - b };
        let units: Vec<Sums> = pairs.iter().map(|pair| Sums::of(change(pair), 0.0)).collect();
        let mean: fn(&Sums) -> f64 = match percent {
            true => |sums| 100.0 * (geometric_mean(sums) - 1.0),
            false => Sums::mean,
        };
        let estimate = bca(&units, mean).filter(|_| units.len() >= SEEDS_MIN)?;
        Some(Gain {
            // The trace says it all where no other path has it.
            path: match names.len() == all.len() {
                true => first.trace.clone(),
                false => place_of(&first.trace, &first.cell),
            },
            change: Change { value: estimate.value, ci95: estimate.ci95, percent },
            least: if percent { LOST_PERCENT } else { LOST_DIFFERENCE },
        })
    };
    (all.len() > 1).then(|| all.iter().map(|of_path| gain(of_path)).collect())?
}

impl Gain {
    /// 1 for a gain, -1 for a loss, 0 for neither.
    fn sign(&self) -> i8 {
        let Some([low, high]) = self.change.ci95 else { return 0 };
        let value = self.change.value;
        i8::from(low > 0.0 && value > self.least) - i8::from(high < 0.0 && value < -self.least)
    }

    fn text(&self) -> String {
        format!("{} {}", self.path, self.change.text(self.change.value))
    }
}

fn sentence(app: &str, duel: &Duel<'_>, gains: &[Gain]) -> String {
    let of = |sign| gains.iter().filter(|g| g.sign() == sign).collect::<Vec<_>>();
    let (better, worse, same) = (of(1), of(-1), of(0));
    let (ahead, behind, all) = (&duel.ahead.cc, &duel.behind.cc, gains.len());
    format!(
        "{ahead} vs. {behind}, the best with fixed settings, for {}: better on {}; worse on {}; no clear \
         difference on {}",
        users(app),
        list(&better, all, true),
        list(&worse, all, true),
        list(&same, all, false)
    )
}

/// Few paths by name, many by number and with the extreme one.
fn list(gains: &[&Gain], all: usize, with_change: bool) -> String {
    let count = format!("{} of {all} paths", gains.len());
    let extreme = gains
        .iter()
        .max_by(|a, b| a.change.value.abs().total_cmp(&b.change.value.abs()))
        .filter(|_| with_change);
    match (gains.len(), extreme) {
        (0, _) => "none".to_owned(),
        (n, _) if n <= NAMED_MAX => {
            let name = |g: &&Gain| if with_change { g.text() } else { g.path.clone() };
            gains.iter().map(name).collect::<Vec<_>>().join(", ")
        }
        (_, Some(extreme)) => format!("{count}, most on {}", extreme.text()),
        (_, None) => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::summary::summarise;
    use crate::testing::run;

    /// Runs of CUBIC at 1 and of Mortise at these gains, path by path, that differ a little by seed.
    fn runs(paths: &[(&str, f64)], seeds: u64) -> Vec<RunRecord> {
        paths
            .iter()
            .flat_map(|&(path, gain)| {
                (0..seeds).flat_map(move |seed| {
                    let noise = 0.02 * (seed as f64 - 2.0) / 2.0;
                    [run("cubic", path, seed, 1.0), run("mortise", path, seed, 1.0 + gain + noise)]
                })
            })
            .collect()
    }

    fn sentences(paths: &[(&str, f64)], seeds: u64) -> Vec<String> {
        let runs = runs(paths, seeds);
        gains(&summarise(&runs), &runs)
    }

    #[test]
    fn each_path_has_its_verdict() {
        let paths = [
            ("walk", 0.4),
            ("drive", 0.2),
            ("home", 0.001),
            ("train", 0.1),
            ("boat", 0.3),
            ("office", -0.5),
        ];
        assert_eq!(
            sentences(&paths, 5),
            ["mortise vs. cubic, the best with fixed settings, for users of a download service: \
              better on 4 of 6 paths, most on walk +40.0%; worse on office -50.0%; no clear difference \
              on home"]
        );
    }

    #[test]
    fn a_change_too_small_to_matter_is_none() {
        // 2.5% ± 1.4% leaves zero out, and stays below 3%.
        let [sentence] = &sentences(&[("a", 0.025), ("b", 0.5)], 5)[..] else { panic!() };
        assert!(sentence.contains("better on b +50.0%; worse on none; no clear difference on a"));
    }

    #[test]
    fn without_seeds_or_paths_enough_there_is_no_sentence() {
        assert!(sentences(&[("a", 0.1), ("b", 0.5)], 4).is_empty());
        assert!(sentences(&[("a", 0.1)], 5).is_empty());
    }

    /// Two buffers of as many bytes, counted in bytes and in packets, have records that look alike.
    #[test]
    fn paths_that_look_alike_are_paired_run_by_run() {
        let path = |name: &str, cubic: f64, mortise: f64| -> Vec<RunRecord> {
            let at = |seed| {
                [("cubic", cubic), ("mortise", mortise)].map(|(cc, q)| run(cc, name, seed, q))
            };
            (0..3).flat_map(at).collect()
        };
        let runs = [
            path("a", 1.0, 1.5),
            path("a", 10.0, 15.1),
            path("b", 1.0, 1.2),
            path("b", 10.0, 12.1),
        ]
        .concat();
        let [sentence] = &gains(&summarise(&runs), &runs)[..] else { panic!("a sentence") };
        assert!(sentence.contains("better on a +50.5%, b +20.5%"), "{sentence}");
    }
}
