//! Why a file describes no fleet, simulated or on the kernel.

use std::path::{Path, PathBuf};

use trimtab_fleet::ServiceError;

/// Why a text is no fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetScenarioError {
    /// The file cannot be read.
    #[error("cannot read the scenario {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause, from the system.
        cause: std::io::Error,
    },
    /// It is not TOML, or has unknown keys; the message has line and column.
    #[error("{}", .0.to_string().trim_end())]
    Parse(Box<toml::de::Error>),
    /// A service is not one.
    #[error("{key}: {cause}")]
    Service {
        /// Which one: `service`, with its number where there are several.
        key: String,
        /// What is wrong with it.
        cause: Box<ServiceError>,
    },
    /// A value is outside its range.
    #[error("{key}: {must}")]
    Value {
        /// Which one.
        key: String,
        /// What it must be.
        must: String,
    },
}

impl From<toml::de::Error> for FleetScenarioError {
    fn from(error: toml::de::Error) -> Self {
        Self::Parse(Box::new(error))
    }
}

/// Makes the error of a value outside its range.
pub fn value(key: impl Into<String>, must: impl Into<String>) -> FleetScenarioError {
    FleetScenarioError::Value { key: key.into(), must: must.into() }
}

/// Reads the text of a scenario file.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<String, FleetScenarioError> {
    std::fs::read_to_string(path)
        .map_err(|cause| FleetScenarioError::Read { path: path.to_owned(), cause })
}
