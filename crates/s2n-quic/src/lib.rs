//! Congestion control steered by quality of experience, for QUIC connections on `s2n-quic`.
//!
//! Any algorithm or scheme of Trimtab runs by its text, per connection, and is changed while the
//! connection lives. s2n-quic obeys the congestion window and the times of departure.
//!
//! ```no_run
//! # #[cfg(feature = "sockets")]
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use trimtab_s2n_quic::units::Bytes;
//! use trimtab_s2n_quic::{Config, Connected};
//!
//! let (controllers, events) = trimtab_s2n_quic::endpoint(Config::new("mortise")?);
//! let mut server = s2n_quic::Server::builder()
//!     .with_tls((Path::new("cert.pem"), Path::new("key.pem")))?
//!     .with_io("0.0.0.0:4433")?
//!     .with_congestion_controller(controllers)?
//!     .with_event(events)?
//!     .start()?;
//! while let Some(connection) = server.accept().await {
//!     let handle = connection.query_event_context(Connected::handle)?.ok_or("unsteered")?;
//!     // Whenever a response begins:
//!     let response = handle.begin_response(Bytes::new(600_000));
//!     // When its last byte was acknowledged:
//!     response.end();
//!     // At any time:
//!     handle.set_scheme("bbr3")?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The steering runs inside s2n-quic's callbacks, once an interval; there is no thread and no
//! timer. The clock is s2n-quic's.
//!
//! The crate needs `s2n-quic-core` alone, where the trait for congestion controllers is. So it
//! builds without the TLS library that `s2n-quic` comes with. The feature `sockets` adds
//! `s2n-quic`, for the example and the tests.
//!
//! What to read first: [`endpoint`], then [`Handle`].
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod controller;
mod endpoint;
mod pacer;
mod steered;

/// A scheme, the QoE model that it steers by, and a seed: what connections on s2n-quic begin with.
///
/// ```
/// use trimtab_s2n_quic::{Config, Memory, Share};
///
/// let memory = Memory::new();
/// let config = Config::new("mortise")?.with_memory(&memory).with_holdback(Share::new(0.1));
/// // Connections resume by their peer's address, which s2n-quic names to the controllers.
/// let (controllers, events) = trimtab_s2n_quic::endpoint(config);
/// # drop((controllers, events));
/// # Ok::<(), trimtab_s2n_quic::ConfigError>(())
/// ```
pub type Config = trimtab_stack::Config<S2nQuic>;

pub use controller::PathController;
pub use endpoint::{Connected, Controllers, Events, endpoint, endpoint_with};
pub use steered::{S2nQuic, Steered};
pub use trimtab_stack::{
    Arm, ConfigError, Factor, FactorError, Factors, Handle, Harm, Insight, KnobError, KnobValues,
    Memory, Metrics, Phase, Qlog, Reason, Report, Response, Resumption, Safety, SetKnobError,
    Share, Stage, Start, units,
};
