//! The comparison from beginning to end.

use crate::cells::cells;
use crate::pool::{Effort, Interrupted, run_all};
use crate::prepare::{PrepareError, prepare};
use crate::result::{Comparison, Provenance, SCHEMA};
use crate::run::{Recording, run};
use crate::scenario::{Scenario, ScenarioError};
use crate::summary::summarise;

/// Why there is no comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Something that it names is wrong.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The user asked to stop.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Runs a scenario. `command` goes into the record; `recording` says what is kept besides numbers.
///
/// # Errors
/// The scenario or something that it names is wrong: nothing has run then. Or the user asked to stop.
pub fn compare(
    scenario: &Scenario,
    effort: Effort,
    recording: Recording,
    command: &str,
) -> Result<Comparison, CompareError> {
    let prepared = prepare(&scenario.plan()?)?;
    let runs = run_all(&prepared.plan.jobs, effort, |job| run(&prepared, job, recording))?;
    Ok(Comparison {
        schema: SCHEMA.to_owned(),
        provenance: Provenance {
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: scenario.to_toml(),
            traces: prepared.origins(),
        },
        summary: summarise(&runs),
        cells: cells(&runs),
        runs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(extra: &str) -> Scenario {
        Scenario::parse(&format!(
            "cc = [\"newreno\", \"omniscient\"]\ntraces = [\"step:4Mbit/s,12Mbit/s@5s\"]\nduration = \"20s\"\n{extra}"
        ))
        .unwrap()
    }

    #[test]
    fn the_same_scenario_gives_the_same_bytes_on_any_number_of_cores() {
        let s = scenario(
            "seeds = 2\nflows = [1, 2]\nloss = \"0.5%\"\n[[app]]\nkind = \"download\"\n[[app]]\nkind = \"vod\"\n",
        );
        let with = |jobs| {
            let effort = Effort { jobs: Some(jobs), quiet: true };
            let c = compare(&s, effort, Recording { units: true, series: true }, "x").unwrap();
            assert!(c.runs.iter().all(|r| r.requests > 0 && r.qoe.mean.is_finite()));
            assert!(c.runs.iter().all(|r| r.utilization > 0.0 && r.utilization <= 1.0));
            serde_json::to_string(&c).unwrap()
        };
        let one = with(1);
        assert_eq!(one, with(3));
        let back: Comparison = serde_json::from_str(&one).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), one, "the JSON reads back");
    }

    #[test]
    fn seeing_the_trace_is_better_than_not() {
        // Random losses mislead who cannot see that the link is free.
        let s = scenario("loss = \"1%\"\nseeds = 3\n[[app]]\nkind = \"download\"\n");
        let c = compare(&s, Effort { jobs: None, quiet: true }, Recording::default(), "x").unwrap();
        let of = |cc: &str| c.summary.iter().find(|r| r.cc == cc).unwrap();
        assert!(of("omniscient").qoe_mean > of("newreno").qoe_mean);
        assert!(of("newreno").of_omniscient.unwrap().value < 1.0);
    }

    #[test]
    fn a_wrong_formula_shows_its_place_before_anything_runs() {
        let s = scenario("[[app]]\nkind = \"download\"\nqoe = \"T / (D + \"\n");
        let e = compare(&s, Effort::default(), Recording::default(), "x").unwrap_err().to_string();
        assert!(e.contains("column") && e.contains('^'), "{e}");
    }
}
