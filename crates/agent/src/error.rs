//! What can go wrong, each with one message that says what to do.

use std::path::PathBuf;

use crate::config::ConfigError;

/// Why the agent does not run, or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The kernel's side.
    #[error(transparent)]
    Datapath(#[from] trimtab_kernel::Error),
    /// There is an agent already.
    #[error(
        "another agent runs already{}: it holds {}; two would take each other's measurements. Stop it first \
         (systemctl stop trimtab-agent), or give this one folders of its own",
        .pid.map_or_else(String::new, |pid| format!(" (process {pid})")), .path.display()
    )]
    Running {
        /// Its process, where it said so.
        pid: Option<u32>,
        /// What it has locked.
        path: PathBuf,
    },
    /// A file, socket or signal.
    #[error("cannot {what}: {reason}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        reason: String,
    },
    /// Nobody listens on the control socket.
    #[error("no agent answers at {}: {reason}. Start it with `trimtab agent --config FILE`, as root", .path.display())]
    NoAgent {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Only some may ask.
    #[error(
        "not allowed to ask the agent at {}: ask as root (sudo), or let a group ask: [sockets] \
         group = \"NAME\" in the agent's configuration, and restart it", .path.display()
    )]
    NotAllowed {
        /// The socket.
        path: PathBuf,
    },
    /// The agent refused.
    #[error("{0}")]
    Refused(String),
}

/// What a reader of JSON says, which quotes names as they are.
pub(crate) fn in_one_line(error: &serde_json::Error) -> String {
    error.to_string().replace('\n', "\\n")
}

impl Error {
    pub(crate) fn system(what: impl Into<String>, reason: impl std::fmt::Display) -> Self {
        Self::System { what: what.into(), reason: reason.to_string() }
    }
}
