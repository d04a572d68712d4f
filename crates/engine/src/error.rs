//! What can go wrong, each with one message that says what to do.

use crate::config::ConfigError;
use crate::store::StoreError;

/// Why the engine does not run, or a token is not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store does not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file, socket or thread.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        reason: String,
    },
    /// The engine refused what was asked for.
    #[error("the engine refuses: {0}")]
    Refused(String),
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::System { what: what.into(), reason: reason.to_string() }
    }
}

/// An error and what caused it, in one line: libraries for networks say what happened in the causes only.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
