//! Congestion control steered by quality of experience, for QUIC connections on
//! `noq`.
//!
//! Any algorithm or scheme of Trimtab runs by its text, per connection, and is changed while the
//! connection lives. noq obeys the congestion window and the pacing rate.
//!
//! ```
//! use trimtab_noq::Config;
//! use trimtab_noq::units::Bytes;
//!
//! // For each connection: a factory for noq, a handle for the application.
//! let (factory, handle) = Config::new("mortise")?.with_model("download")?.connection();
//! let mut transport = noq_proto::TransportConfig::default();
//! transport.congestion_controller_factory(factory);
//! // Give it to `noq::ServerConfig::transport_config`, and that to `Incoming::accept_with`.
//!
//! // Whenever a response begins:
//! let response = handle.begin_response(Bytes::new(600_000));
//! // When its last byte was acknowledged:
//! response.end();
//! // At any time:
//! handle.set_scheme("bbr3")?;
//! for report in handle.take_reports() {
//!     println!("{} {:?}", report.algorithm, report.delivery_rate);
//! }
//! # Ok::<(), trimtab_noq::ConfigError>(())
//! ```
//!
//! The steering runs inside noq's callbacks, once an interval; there is no thread and no timer. The
//! clock is noq's `now`, so a connection in virtual time is deterministic.
//!
//! What to read first: [`Config`], then [`Handle`].
#![deny(missing_docs)]

mod controller;
mod factory;

/// A scheme, the QoE model that it steers by, and a seed: what connections on noq begin with.
///
/// ```
/// use trimtab_noq::{Config, Memory};
///
/// let memory = Memory::new();
/// let config = Config::new("cubic")?.with_memory(&memory);
/// // For each connection, with the peer's address, e.g. of `noq::Incoming::remote_address`:
/// let (factory, handle) = config.connection_to("192.0.2.7".parse().unwrap());
/// assert!(memory.is_empty(), "the first connection has yet to observe its path");
/// # Ok::<(), trimtab_noq::ConfigError>(())
/// ```
pub type Config = trimtab_stack::Config<Noq>;

pub use factory::{Noq, TrimtabFactory};
pub use trimtab_stack::{
    Arm, ConfigError, Factor, FactorError, Factors, Handle, Harm, Insight, KnobError, KnobValues,
    Memory, Metrics, Phase, Qlog, Reason, Report, Response, Resumption, Safety, SetKnobError,
    Share, Stage, Start, units,
};
