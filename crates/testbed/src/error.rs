//! What can go wrong with runs on the kernel.

use std::io;

use trimtab_emu::EmuError;

/// Why runs cannot be made here. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealError {
    /// The caller is not root.
    #[error(
        "runs on the kernel's TCP need root, for network namespaces and eBPF: run the command with sudo, or take \
         --datapath sim"
    )]
    NotRoot,
    /// The caller is not root.
    #[error(
        "a fleet on the kernel's TCP needs root, for network namespaces and eBPF: run the command with sudo"
    )]
    FleetNotRoot,
    /// The caller is not root.
    #[error(
        "checks of the kernel's TCP need root, for network namespaces and eBPF: run the command with sudo, or \
         check sim:ALGORITHM"
    )]
    ConformNotRoot,
    /// A process of a fleet did not start, or ended.
    #[error("{process}: {problem}")]
    Process {
        /// The command.
        process: String,
        /// What went wrong, and what it said last.
        problem: String,
    },
    /// The engine of a fleet refused.
    #[error("the engine: {0}")]
    Engine(#[from] trimtab_fleet_client::Error),
    /// No report of an edge led to a decision.
    #[error(
        "the edge {edge:?} has learnt nothing in {waited}: no client of it has done enough in an \
         interval; make intervals longer, or files smaller"
    )]
    NothingLearnt {
        /// The edge.
        edge: String,
        /// How long it had.
        waited: trimtab_units::Duration,
    },
    /// A scheme that the kernel does not have.
    #[error("{scheme}: {problem}; {available}")]
    Scheme {
        /// As the user named it.
        scheme: String,
        /// Why it cannot run there.
        problem: String,
        /// What there is.
        available: &'static str,
    },
    /// The scenario asks for what only the simulator does.
    #[error("{0}")]
    Scenario(String),
    /// The link cannot be made.
    #[error(transparent)]
    Emulator(#[from] EmuError),
    /// The congestion control in eBPF cannot be loaded or steered.
    #[error(transparent)]
    Tcp(#[from] trimtab_kernel::Error),
    /// The congestion control in eBPF had no slot left for a connection.
    #[error(
        "a connection has found no slot in the eBPF datapath: there are {slots}, take fewer flows"
    )]
    NoSlot {
        /// How many there are.
        slots: u32,
    },
    /// All names for algorithms in eBPF are taken.
    #[error(
        "{tried} names for the algorithms in eBPF are taken: end other comparisons and agents of tests"
    )]
    NoName {
        /// How many were tried.
        tried: u32,
    },
    /// A connection ended by itself.
    #[error("the kernel ended the connection after {:.2} s", after.as_secs_f64())]
    Ended {
        /// How long it lasted.
        after: trimtab_units::Duration,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A thread of a run failed.
    #[error(
        "a thread of the run panicked: this is a defect in trimtab, please report it with the command"
    )]
    Thread,
    /// A system call failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

impl RealError {
    /// For `map_err`: what was tried, then what the system said.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self::System { what, cause: cause.into() }
    }
}
