//! The claims of a comparison, judged by its runs.

use trimtab_steer::scheme::{is_bound, is_steered};

use super::claim::Claim;
use super::verdict::Finding;
use crate::result::RunRecord;
use crate::stats::Sums;
use crate::stats::summary::{Runs, TRACES_MIN, in_order, interval, keyed};

/// Stands for the best scheme that is not steered, and no bound.
pub(super) const BEST_FIXED: &str = "best fixed";

/// Why a result says nothing of the paper's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError {
    /// Nothing has it.
    #[error("nothing that ran has the {subject}; see the figure's entry in scenarios/papers")]
    Missing {
        /// What was looked for.
        subject: String,
    },
    /// Percent of nothing, or of a negative number.
    #[error(
        "{subject}: the mean that it is compared with is not above 0, so no change has a percentage"
    )]
    NotPositive {
        /// What was looked for.
        subject: String,
    },
}

/// Judges a claim. Changes are paired, as in [`crate::stats::summary`], with whole traces resampled where there
/// are enough. Runs at different places are paired by trace and seed, with the mean where several fit.
pub(super) fn judge(claim: &Claim, all: &[RunRecord]) -> Result<Finding, JudgeError> {
    let app = claim.rows.as_deref().or(all.first().map(|run| run.app.as_str()));
    let value = |run: &RunRecord| claim.quantity.of(run);
    let counts = |run: &&RunRecord| Some(run.app.as_str()) == app && value(run).is_some();
    let runs: Vec<&RunRecord> = all.iter().filter(counts).collect();
    let own = keyed(runs.iter().copied().filter(|run| run.cc == claim.scheme && claim.at.has(run)));
    let missing = || JudgeError::Missing { subject: claim.subject() };
    if own.is_empty() {
        return Err(missing());
    }
    let place = claim.versus_at.as_ref().unwrap_or(&claim.at);
    let there = |cc: &str| keyed(runs.iter().copied().filter(|r| r.cc == cc && place.has(r)));
    let rival = match claim.versus.as_deref() {
        Some(BEST_FIXED) => {
            let schemes = in_order(runs.iter().map(|run| run.cc.as_str()));
            let fixed = schemes.into_iter().filter(|cc| !is_bound(cc) && !is_steered(cc));
            let merit = |cc: &str| {
                let mean = mean(&there(cc), value)?;
                Some(if claim.quantity.is_cost() { -mean } else { mean })
            };
            let others = fixed.filter(|cc| *cc != claim.scheme);
            let best = others.filter_map(|cc| Some((cc, merit(cc)?)));
            Some(best.max_by(|a, b| a.1.total_cmp(&b.1)).ok_or_else(missing)?.0.to_owned())
        }
        other => other.map(str::to_owned),
    };
    let sums: Vec<_> = if claim.is_change() {
        let others = there(rival.as_deref().unwrap_or(&claim.scheme));
        let other = |key, run: &RunRecord| match claim.versus_at {
            None => value(others.get(key)?),
            Some(_) => {
                let same = |r: &&RunRecord| (&r.trace, r.seed) == (&run.trace, run.seed);
                let values: Vec<f64> =
                    others.values().copied().filter(same).filter_map(value).collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            }
        };
        let pair =
            |(key, run): (_, &&RunRecord)| Some((key, Sums::of(value(run)?, other(key, run)?)));
        own.iter().filter_map(pair).collect()
    } else {
        own.iter().filter_map(|(key, run)| Some((key, Sums::of(value(run)?, 0.0)))).collect()
    };
    let subject = match (&rival, claim.versus.as_deref()) {
        (Some(best), Some(BEST_FIXED)) => format!("{}, {best}", claim.subject()),
        _ => claim.subject(),
    };
    if sums.is_empty() {
        return Err(missing());
    }
    if claim.is_change() && sums.iter().map(|(_, sums)| sums.b).sum::<f64>() <= 0.0 {
        return Err(JudgeError::NotPositive { subject });
    }
    let traces = in_order(sums.iter().map(|(key, _)| key.trace())).len();
    let count = sums.len();
    let statistic = |sums: &Sums| {
        if claim.is_change() { claim.quantity.gain_percent(sums) } else { sums.mean() }
    };
    let ours = interval(traces >= TRACES_MIN, sums.into_iter(), statistic);
    Ok(Finding::new(subject, claim.is_change(), &claim.band, ours, count))
}

fn mean(runs: &Runs<'_>, value: impl Fn(&RunRecord) -> Option<f64>) -> Option<f64> {
    let sum: f64 = runs.values().filter_map(|run| value(run)).sum();
    (!runs.is_empty()).then(|| sum / runs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;
    use crate::testing::run;

    fn claim(text: &str) -> Claim {
        toml::from_str(&format!("quantity = \"qoe\"\nband = {{ at_least = 5 }}\n{text}")).unwrap()
    }

    #[test]
    fn the_best_fixed_scheme_is_that_of_the_runs() {
        let runs = [("mortise", 11.0), ("cubic", 10.0), ("bbr", 8.0), ("omniscient", 50.0)];
        let runs = runs.map(|(cc, qoe)| run(cc, "t", 0, qoe)).to_vec();
        let finding =
            judge(&claim("scheme = \"mortise\"\nversus = \"best fixed\""), &runs).unwrap();
        assert_eq!(finding.subject, "QoE of mortise vs. best fixed, cubic");
        assert!((finding.ours.value - 10.0).abs() < 1e-9, "{finding:?}");
        assert_eq!((finding.verdict, finding.runs), (Verdict::Agrees, 1));
    }

    #[test]
    fn places_are_compared_by_trace_and_seed() {
        let at = |flows, seed, qoe| {
            let mut run = run("a", "t", seed, qoe);
            run.cell.flows = flows;
            run
        };
        let runs = vec![at(1, 0, 12.0), at(1, 1, 24.0), at(8, 0, 10.0), at(8, 1, 20.0)];
        let text = "scheme = \"a\"\nat = { flows = 1 }\nversus_at = { flows = 8 }";
        let finding = judge(&claim(text), &runs).unwrap();
        assert_eq!(finding.subject, "QoE of a at 1 flows vs. at 8 flows");
        assert!((finding.ours.value - 20.0).abs() < 1e-9, "{finding:?}");
        assert_eq!(finding.runs, 2);
        let nowhere = text.replace("flows = 8", "flows = 9");
        let e = judge(&claim(&nowhere), &runs).unwrap_err().to_string();
        assert!(e.contains("nothing that ran has the QoE of a at 1 flows vs. at 9 flows"), "{e}");
    }

    #[test]
    fn a_change_of_nothing_is_refused() {
        let runs = vec![run("a", "t", 0, 1.0), run("b", "t", 0, 0.0)];
        let e = judge(&claim("scheme = \"a\"\nversus = \"b\""), &runs).unwrap_err();
        assert!(e.to_string().contains("is not above 0"), "{e}");
    }
}
