//! A comparison on several machines: each does a share of the runs, and one of them joins what came back.
//!
//! What a share has is what the same runs leave in [`compare`](crate::compare::compare). [`join`] sums it up
//! by the same code, so that the result has the same bytes however the runs were dealt out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::compare::{CompareError, comparison, run};
use crate::result::{Comparison, RunRecord, TraceOrigin};
use crate::run::Recording;
use crate::run::pool::Effort;
use crate::run::prepare::Prepared;
use crate::run::simulator::Simulator;
use crate::scenario::Job;

/// The version that runs here.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Some runs of a comparison, done by the simulator of one machine. Machines send each other its JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The version of Trimtab that did them.
    version: String,
    /// The traces that they ran on.
    traces: Vec<TraceOrigin>,
    /// The place of the first of them in the plan.
    first: usize,
    /// The runs, in the order of the plan.
    runs: Vec<RunRecord>,
}

/// Why shares make no comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// A machine has another version.
    #[error(
        "runs {first} and on are by Trimtab {theirs}, and this is {VERSION}: install the same version \
         everywhere"
    )]
    Version {
        /// The place of the first run in the plan.
        first: usize,
        /// The other version.
        theirs: String,
    },
    /// A machine had other traces.
    #[error(
        "run {at} is of another trace than {trace} here, or of other content: give every machine the \
         same files"
    )]
    Trace {
        /// The place of the run in the plan.
        at: usize,
        /// The trace of that run here.
        trace: String,
    },
    /// A run is not there, or is there twice.
    #[error(
        "the shares have runs up to {done} of {all} and do not go on there: this is an error of Trimtab"
    )]
    Gap {
        /// Runs that follow each other from the first one.
        done: usize,
        /// Runs of the plan.
        all: usize,
    },
}

/// Does a share of the runs of a comparison, on the simulator. Runs past the end of the plan are left out.
///
/// # Errors
/// As [`compare`](crate::compare::compare) once the runs have begun.
pub fn share(
    prepared: &Prepared,
    jobs: Range<usize>,
    effort: Effort,
) -> Result<Share, CompareError> {
    let all = &prepared.plan.jobs;
    let end = jobs.end.min(all.len());
    let first = jobs.start.min(end);
    let jobs = &all[first..end];
    let mut traces = prepared.origins();
    let mut at = 0..;
    traces.retain(|_| at.next().is_some_and(|trace| jobs.iter().any(|job| job.trace == trace)));
    let runs = run(prepared, jobs, effort, Recording::default(), &Simulator)?;
    Ok(Share { version: VERSION.to_owned(), traces, first, runs })
}

/// The comparison of which these are all shares, in the order of the plan. `command` goes into the record.
///
/// # Errors
/// A share is by another version, of other traces, or not there.
pub fn join(
    prepared: &Prepared,
    shares: Vec<Share>,
    command: &str,
) -> Result<Comparison, JoinError> {
    let (jobs, origins) = (&prepared.plan.jobs, prepared.origins());
    let mut runs: Vec<RunRecord> = Vec::with_capacity(jobs.len());
    for share in shares {
        let (first, done) = (share.first, runs.len());
        if share.version != VERSION {
            return Err(JoinError::Version { first, theirs: share.version });
        }
        if first != done || share.runs.len() > jobs.len() - done {
            return Err(JoinError::Gap { done, all: jobs.len() });
        }
        for (at, (job, run)) in (first..).zip(jobs[first..].iter().zip(&share.runs)) {
            let own = &origins[job.trace];
            if !share.traces.contains(own) || !is_of(prepared, job, run) {
                return Err(JoinError::Trace { at, trace: own.trace.clone() });
            }
        }
        runs.extend(share.runs);
    }
    match runs.len() {
        done if done < jobs.len() => Err(JoinError::Gap { done, all: jobs.len() }),
        _ => Ok(comparison(prepared, runs, command, &Simulator)),
    }
}

/// Whether a record is of this job: where globs match other files, plans differ.
fn is_of(prepared: &Prepared, job: &Job, run: &RunRecord) -> bool {
    let scheme = &prepared.plan.scenario.cc[job.scheme];
    (run.cc.as_str(), &run.trace, run.seed)
        == (scheme.label(), &prepared.plan.traces[job.trace].name, job.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, ready};
    use crate::scenario::Scenario;

    const EFFORT: Effort = Effort { jobs: Some(1), quiet: true };

    fn scenario(traces: &str) -> Scenario {
        Scenario::parse(&format!(
            "cc = [\"cubic\", \"copa\", \"omniscient\"]\ntraces = [{traces}]\nduration = \"8s\"\nseeds = 2\n\
             loss = \"0.5%\"\n[[app]]\nkind = \"download\"\n[[app]]\nkind = \"vod\"\n"
        ))
        .unwrap()
    }

    fn prepared(traces: &str) -> Prepared {
        ready(&scenario(traces), &Simulator).unwrap()
    }

    const TWO: &str = "\"constant:8Mbit/s\", \"cellular:seed=1\"";

    /// Each share goes by the scenario as text and comes back as text, as between machines.
    fn sent(prepared: &Prepared, every: usize) -> Vec<Share> {
        let text = prepared.plan.scenario.to_toml();
        let there = ready(&Scenario::parse(&text).unwrap(), &Simulator).unwrap();
        (0..prepared.plan.jobs.len())
            .step_by(every)
            .map(|first| share(&there, first..first + every, EFFORT).unwrap())
            .map(|share| serde_json::from_str(&serde_json::to_string(&share).unwrap()).unwrap())
            .collect()
    }

    #[test]
    fn joined_shares_are_the_comparison_to_the_byte() {
        let here = prepared(TWO);
        let whole = compare(&scenario(TWO), EFFORT, Recording::default(), "x", &Simulator).unwrap();
        assert_eq!(whole.runs.len(), 24);
        for every in [1, 7, 24] {
            let joined = join(&here, sent(&here, every), "x").unwrap();
            assert_eq!(
                serde_json::to_string(&joined).unwrap(),
                serde_json::to_string(&whole).unwrap(),
                "{every} runs in a share"
            );
        }
    }

    #[test]
    fn shares_that_do_not_fit_are_refused() {
        let here = prepared(TWO);
        let shares = sent(&here, 12);
        let mut old = shares.clone();
        old[1].version = "0.0.1".to_owned();
        let e = join(&here, old, "x").unwrap_err().to_string();
        assert!(e.starts_with("runs 12 and on are by Trimtab 0.0.1, and this is "), "{e}");
        let missing = vec![shares[1].clone()];
        assert_eq!(join(&here, missing, "x"), Err(JoinError::Gap { done: 0, all: 24 }));
        let missing = vec![shares[0].clone()];
        assert_eq!(join(&here, missing, "x"), Err(JoinError::Gap { done: 12, all: 24 }));
        let twice = vec![shares[0].clone(), shares[1].clone(), shares[1].clone()];
        assert_eq!(join(&here, twice, "x"), Err(JoinError::Gap { done: 24, all: 24 }));
        let mut edited = shares;
        edited[1].traces[0].sha256 = "0".to_owned();
        assert!(matches!(join(&here, edited, "x"), Err(JoinError::Trace { .. })));
        let elsewhere = prepared("\"constant:9Mbit/s\", \"cellular:seed=1\"");
        let trace = "constant:8Mbit/s".to_owned();
        let e = join(&here, sent(&elsewhere, 24), "x");
        assert_eq!(e, Err(JoinError::Trace { at: 0, trace }));
    }
}
