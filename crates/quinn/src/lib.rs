//! Congestion control steered by quality of experience, for QUIC connections on `quinn`.
//!
//! Any algorithm or scheme of Trimtab runs by its text, per connection, and is changed while the
//! connection lives. quinn obeys the congestion window. It ignores pacing rates, so the adapter offers
//! a window that makes the rate.
//!
//! ```
//! use trimtab_quinn::Config;
//! use trimtab_quinn::units::Bytes;
//!
//! // For each connection: a factory for quinn, a handle for the application.
//! let (factory, handle) = Config::new("mortise")?.with_model("download")?.connection();
//! let mut transport = quinn_proto::TransportConfig::default();
//! transport.congestion_controller_factory(factory);
//! // Give it to `quinn::ServerConfig::transport_config`, and that to `Incoming::accept_with`.
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
//! # Ok::<(), trimtab_quinn::ConfigError>(())
//! ```
//!
//! The steering runs inside quinn's callbacks, once an interval; there is no thread and no timer.
//! The clock is quinn's `now`, so a connection in virtual time is deterministic.
//!
//! What to read first: [`Config`], then [`Handle`].
#![deny(missing_docs)]

mod controller;
mod factory;

/// A scheme, the QoE model that it steers by, and a seed: what connections on quinn begin with.
///
/// ```
/// use trimtab_quinn::{Config, Memory};
///
/// let memory = Memory::new();
/// let config = Config::new("cubic")?.with_memory(&memory);
/// // For each connection, with the peer's address, e.g. of `quinn::Incoming::remote_address`:
/// let (factory, handle) = config.connection_to("192.0.2.7".parse().unwrap());
/// assert!(memory.is_empty(), "the first connection has yet to observe its path");
/// # Ok::<(), trimtab_quinn::ConfigError>(())
/// ```
pub type Config = trimtab_stack::Config<Quinn>;

pub use factory::{Quinn, TrimtabFactory};
pub use trimtab_stack::{
    Arm, ConfigError, Factor, FactorError, Factors, Handle, Harm, Insight, KnobError, KnobValues,
    Memory, Metrics, Phase, Qlog, Reason, Report, Response, Resumption, Safety, SetKnobError,
    Share, Stage, Start, units,
};
