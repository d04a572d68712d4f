//! Congestion control steered by quality of experience, for QUIC connections on
//! `noq`.
//!
//! Any algorithm or scheme of Trimtab runs by its text, per connection, and is changed while the
//! connection lives. noq obeys the congestion window and the pacing rate.
//!
//! ```
//! use trimtab_noq::{Config, Factors};
//! use trimtab_noq::units::Bytes;
//!
//! // For each connection: a factory for noq, a handle for the application.
//! let (factory, handle) = Config::new("mortise")?.with_model("download")?.connection();
//! let mut transport = noq_proto::TransportConfig::default();
//! transport.congestion_controller_factory(factory);
//! // Give it to `noq::ServerConfig::transport_config`, and that to `Incoming::accept_with`.
//!
//! // Whenever a response begins:
//! handle.set_factors(Factors::new().with_request(Bytes::new(600_000)));
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

mod config;
mod controller;
mod factory;
mod handle;
mod memory;
mod metrics;
mod packets;
mod path;
mod plan;
mod steering;

pub use config::{Config, ConfigError};
pub use factory::TrimtabFactory;
pub use handle::{Handle, SetKnobError};
pub use memory::Memory;
pub use metrics::Metrics;
pub use plan::Start;
/// How a connection resumes, and how far it has (RFC 9959).
pub use trimtab_cc::resume::{Resumption, Stage};
/// Where in its life an algorithm is, and why a knob cannot be set.
pub use trimtab_cc::{KnobError, Phase};
/// The application's live factors.
pub use trimtab_qoe::{Factor, FactorError, Factors};
/// What a path measured in an interval, and what its steering did.
pub use trimtab_steer::{Insight, KnobValues, Reason, Report};
/// Bytes, durations, rates and times, as they appear in reports and metrics.
pub use trimtab_units as units;
