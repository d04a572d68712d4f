//! What an instance does that cannot go on: noted once, and asked for after a run.

use std::sync::OnceLock;

use crate::error::{PluginError, Problem};

/// The first fault of any instance of a plug-in.
#[derive(Debug)]
pub struct Fault {
    label: String,
    first: OnceLock<String>,
}

impl Fault {
    /// None yet, of the plug-in of this name.
    pub(crate) fn new(label: &str) -> Self {
        Self { label: label.to_owned(), first: OnceLock::new() }
    }

    /// Notes what went wrong, and what to do. Only the first counts.
    pub(crate) fn note(&self, what: String) {
        // A later one is most often a consequence.
        let _ = self.first.set(what);
    }

    /// What went wrong first.
    pub(crate) fn first(&self) -> Option<String> {
        self.first.get().cloned()
    }

    /// An error of this plug-in.
    pub(crate) fn error(&self, problem: Problem) -> PluginError {
        PluginError { label: self.label.clone(), problem }
    }
}
