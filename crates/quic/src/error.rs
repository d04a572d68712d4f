//! What can go wrong with runs on QUIC.

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
    #[error(
        "--datapath quic-virtual runs QUIC; take --transport quic, or --datapath kernel for TCP"
    )]
    Tcp,
    /// The TLS library refuses the certificate that the servers show.
    #[error("the servers' certificate cannot be made: {0}; please report it with the command")]
    Certificate(String),
    /// A connection ended by itself.
    #[error(
        "noq gave up the connection of flow {flow} after {after:?}: {reason}; please report it \
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
