//! A configuration as edges get it.

use serde::{Deserialize, Serialize};
use trimtab_cc::{KnobError, Spec};

/// An algorithm and the values of its knobs, with a number that grows whenever they change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Grows with every change within an aggregate.
    pub version: u64,
    /// The algorithm's name, as in `trimtab cc list`.
    pub algorithm: String,
    /// Knobs and their values, in the order of the service's description; all others have their defaults.
    pub knobs: Vec<(String, f64)>,
}

/// Why a configuration cannot be carried out here.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigurationError {
    /// There is no such algorithm.
    #[error(
        "there is no algorithm {0:?} here: edge and engine must be of versions that go together"
    )]
    Algorithm(String),
    /// A knob cannot be set so.
    #[error("{0}")]
    Knob(KnobError),
}

impl Configuration {
    /// The algorithm with these knobs, every value checked against the algorithm's own ranges.
    ///
    /// # Errors
    /// This build has no such algorithm or knob, or the value is out of its range.
    pub fn spec(&self) -> Result<Spec, ConfigurationError> {
        let mut spec = Spec::new(&self.algorithm)
            .ok_or_else(|| ConfigurationError::Algorithm(self.algorithm.clone()))?;
        for (knob, value) in &self.knobs {
            spec.set(knob, *value).map_err(ConfigurationError::Knob)?;
        }
        Ok(spec)
    }
}
