//! What the command `trimtab reproduce` does, figure by figure, for Python.

use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use trimtab_lab::reproduce::{self, Outcome, ReproduceError, Setting, catalogue, find};
use trimtab_lab::run::pool::Effort;

use crate::compare::{Stop, interruptible};
use crate::refuse;

impl Stop for ReproduceError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}

/// The folders of these figures by name, or of all that run. A name that does not run is refused.
#[pyfunction]
pub(crate) fn figures(names: Vec<String>) -> PyResult<Vec<(String, String)>> {
    let entries = catalogue().map_err(refuse)?;
    if names.is_empty() {
        let all = entries.iter().filter(|entry| entry.runs());
        return Ok(all.map(|entry| (entry.name.clone(), entry.folder())).collect());
    }
    let folder = |name: String| {
        let entry = find(&entries, &name).map_err(refuse)?;
        entry.check_runs().map_err(refuse)?;
        Ok((name, entry.folder()))
    };
    names.into_iter().map(folder).collect()
}

/// Runs a figure into its folder, and gives its verdict as JSON.
#[pyfunction]
#[pyo3(signature = (name, *, scenarios, out, quick, jobs, progress, call))]
#[expect(clippy::too_many_arguments, reason = "Python names each of them")]
pub(crate) fn reproduced(
    py: Python<'_>,
    name: String,
    scenarios: PathBuf,
    out: PathBuf,
    quick: bool,
    jobs: Option<u16>,
    progress: bool,
    call: String,
) -> PyResult<String> {
    let entries = catalogue().map_err(refuse)?;
    let entry = find(&entries, &name).map_err(refuse)?.clone();
    let effort = Effort { jobs: jobs.map(usize::from), quiet: !progress };
    let setting = Setting { scenarios, out, quick, effort, command: call };
    let outcome = interruptible(py, move || entry.run(&setting))?;
    serde_json::to_string(&outcome).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// Verdicts as the command prints them: each, and how many there are of each kind where there are
/// several.
#[pyfunction]
pub(crate) fn verdicts(outcomes: Vec<String>) -> PyResult<String> {
    let read = |text: &String| serde_json::from_str(text);
    let outcomes: Vec<Outcome> =
        outcomes.iter().map(read).collect::<Result<_, _>>().map_err(refuse)?;
    let mut text: String = outcomes.iter().map(Outcome::render).collect();
    if outcomes.len() > 1 {
        text += &reproduce::tally(&outcomes);
    }
    Ok(text)
}
