//! Why a datapath did not do what it was asked.

use trimtab_cc::KnobError;

/// Why a datapath did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// No such knob.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// Anything else: one message that says what failed, why, and what to do.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
}
