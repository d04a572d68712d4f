//! What can go wrong with runs on QUIC.

use std::io;

use trimtab_emu::EmuError;

/// Why runs cannot be made. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuicError {
    /// A scheme needs what only the simulator has.
    #[error(
        "{scheme}: it is a bound, which needs the future of the link or copies of the world; take \
         --datapath sim, or another scheme such as mortise"
    )]
    Bound {
        /// As the user named it.
        scheme: String,
    },
    /// The scenario asks for TCP.
    #[error("--datapath {datapath} runs QUIC; take --transport quic, or --datapath kernel for TCP")]
    Tcp {
        /// What was to run it.
        datapath: &'static str,
    },
    /// The caller is not root.
    #[error(
        "runs of QUIC over sockets need root, for network namespaces: run the command with sudo, \
         or take --datapath quic-virtual"
    )]
    NotRoot,
    /// The link cannot be made.
    #[error(transparent)]
    Emulator(#[from] EmuError),
    /// A system call failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system answered.
        #[source]
        cause: io::Error,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The thread of a run failed.
    #[error("the thread of a run panicked, a defect in trimtab; please report it with the command")]
    Thread,
    /// The TLS library refuses the certificate that the servers show.
    #[error("the servers' certificate cannot be made: {0}; please report it with the command")]
    Certificate(String),
    /// A connection ended by itself.
    #[error(
        "noq gave up the connection of flow {flow} after {after}: {reason}; please report it \
         with the command"
    )]
    Lost {
        /// Its number, from 0.
        flow: usize,
        /// The time of the run.
        after: trimtab_units::Time,
        /// noq's word on it.
        reason: String,
    },
}

impl QuicError {
    /// For `map_err`: what was tried, then what the system answered.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::System { what, cause: cause.into() }
    }
}
