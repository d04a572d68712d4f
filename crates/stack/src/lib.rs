//! What an adapter of Trimtab for a QUIC stack consists of, but for the stack's own trait.
//!
//! A stack asks a factory for a congestion controller of each path, and calls the controller for
//! what it sends and for what becomes of it. An adapter is a crate that translates these calls. All
//! else is here: schemes by their text ([`Config`]), the handle that changes a connection while it
//! lives ([`Handle`]), steering, reports ([`Report`]), [`Metrics`], holdback ([`Arm`]) and guard
//! ([`Safety`]), the [`Memory`] from which connections resume, and logs ([`Qlog`]). `trimtab-noq`,
//! `trimtab-quinn` and `trimtab-s2n-quic` are such adapters, and `trimtab-rtc` is one for WebRTC.
//!
//! An adapter has four parts:
//!
//! 1. a type that implements [`Stack`]: how the stack paces, and which factory it wants;
//! 2. the factory, around [`Paths`], with the stack's trait for factories;
//! 3. the controller, around [`SharedPath`], with the stack's trait for controllers: each callback
//!    locks the [`Path`] and calls one or two of its methods;
//! 4. aliases and re-exports, so that who uses the adapter names one crate.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//! use trimtab_stack::units::{Bytes, Duration};
//! use trimtab_stack::{Pacing, Paths, SharedPath, Stack, Traits};
//!
//! // The stack's traits.
//! trait Factory {
//!     fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller>;
//! }
//! trait Controller {
//!     fn on_sent(&mut self, now: Instant, bytes: u64);
//!     fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, rtt: Duration);
//!     fn on_loss(&mut self, now: Instant, newest_sent: Instant, bytes: u64);
//!     fn window(&self) -> u64;
//! }
//!
//! /// 1. The stack.
//! #[derive(Clone, Debug)]
//! enum Example {}
//! impl Stack for Example {
//!     type Factory = ExampleFactory;
//!     const TRAITS: &'static Traits =
//!         &Traits { pacing: Pacing::ByWindow, own: "example::CubicConfig" };
//! }
//!
//! /// 2. The factory.
//! struct ExampleFactory(Paths);
//! impl From<Paths> for ExampleFactory {
//!     fn from(paths: Paths) -> Self {
//!         Self(paths)
//!     }
//! }
//! impl Factory for ExampleFactory {
//!     fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
//!         Box::new(PathController(self.0.build(now, mtu)))
//!     }
//! }
//!
//! /// 3. The controller.
//! struct PathController(SharedPath);
//! impl Controller for PathController {
//!     fn on_sent(&mut self, now: Instant, bytes: u64) {
//!         self.0.lock().on_bytes_sent(now, Bytes::new(bytes));
//!     }
//!     fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, rtt: Duration) {
//!         let mut path = self.0.lock();
//!         path.on_bytes_acked(now, sent, Bytes::new(bytes), rtt);
//!         path.on_end_acks(now, false);
//!     }
//!     fn on_loss(&mut self, now: Instant, newest_sent: Instant, bytes: u64) {
//!         let mut path = self.0.lock();
//!         path.on_bytes_lost(now, newest_sent, Bytes::new(bytes));
//!         path.on_losses(now, false);
//!     }
//!     fn window(&self) -> u64 {
//!         self.0.offer().window.get()
//!     }
//! }
//!
//! /// 4. What users name.
//! type Config = trimtab_stack::Config<Example>;
//!
//! let (factory, handle) = Config::new("mortise")?.connection();
//! let now = Instant::now();
//! let controller = factory.build(now, 1200);
//! assert_eq!(controller.window(), 12_000);
//! handle.set_scheme("bbr3")?;
//! assert_eq!(handle.metrics().unwrap().scheme, "bbr3");
//! # Ok::<(), trimtab_stack::ConfigError>(())
//! ```
#![deny(missing_docs)]

mod config;
mod guarded;
mod handle;
mod hints;
mod memory;
mod metrics;
mod offer;
mod packets;
mod path;
mod paths;
mod plan;
mod qlog;
mod stack;
mod steering;
#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError};
pub use handle::{Handle, SetKnobError};
pub use hints::Response;
pub use memory::Memory;
pub use metrics::Metrics;
pub use offer::Offer;
pub use path::{Path, Reported, ReportedFate};
pub use paths::{Paths, SharedPath};
pub use plan::Start;
pub use qlog::Qlog;
pub use stack::{Pacing, Stack, Traits};
/// How a connection resumes, and how far it has (RFC 9959).
pub use trimtab_cc::resume::{Resumption, Stage};
/// What a sender of media spends on packets that were asked for again.
pub use trimtab_cc::transport::Repairs;
/// Where in its life an algorithm is, why a knob cannot be set, and what a sender of media is to probe.
pub use trimtab_cc::{KnobError, Phase, Probe};
/// The application's live factors.
pub use trimtab_qoe::{Factor, FactorError, Factors};
/// Which connections are left alone for comparison, and what ends a steering that does harm.
pub use trimtab_steer::safety::{Arm, Harm, Safety, Share};
/// What a path measured in an interval, and what its steering did.
pub use trimtab_steer::{Insight, KnobValues, Reason, Report};
/// Bytes, durations, rates and times, as they appear in reports and metrics.
pub use trimtab_units as units;
