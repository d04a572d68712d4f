//! Results of earlier runs, which commands of hours take up where they were stopped.

use std::path::{Path, PathBuf};

use crate::result::Comparison;
use crate::scenario::{Scenario, ScenarioError};

/// Why a file is not the result that is looked for.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The file cannot be read.
    #[error("{}: cannot read it: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
    /// The file has something else.
    #[error("{}: is no result: {cause}; delete it, or name another --out", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        cause: serde_json::Error,
    },
    /// It is a result of something else.
    #[error(
        "{}: is of another scenario or version; delete it, or name another --out",
        .0.display()
    )]
    Other(PathBuf),
    /// The scenario itself is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// The result that an earlier run of the same scenario by the same version left in a file.
///
/// # Errors
/// The file cannot be read, is no result, or is one of another scenario or version.
pub fn kept(file: &Path, scenario: &Scenario) -> Result<Comparison, KeptError> {
    let path = || file.to_owned();
    let text = std::fs::read(file).map_err(|cause| KeptError::Read { path: path(), cause })?;
    let kept: Comparison =
        serde_json::from_slice(&text).map_err(|cause| KeptError::Parse { path: path(), cause })?;
    let plan = scenario.plan()?;
    let is_same = kept.provenance.scenario == plan.scenario.to_toml()
        && kept.provenance.version == env!("CARGO_PKG_VERSION");
    if is_same { Ok(kept) } else { Err(KeptError::Other(path())) }
}
