//! Steering of congestion control by quality of experience: a [`Report`] in, at most one [`Action`] out.
//!
//! This is the narrow waist of Trimtab. A datapath (the simulator, Linux TCP, a QUIC stack, WebRTC)
//! fills a `Report` once per interval and applies the `Action`; what steers knows nothing of
//! transports, and what transports knows nothing of QoE.
//!
//! Without features it needs no std, only an allocator: reports, actions, [`Driver`] and [`Mortise`].
//! So do the features `select` (the choice of an algorithm) and `rivals` (those with a file). What
//! needs std is a feature: `lstm` (Muses' network), `customize` (PCC customization), `safety`
//! (holdback and guard) and `scheme`
//! (steerings by name, which needs all of these).
//!
//! What to read first: Mortise (NSDI 2026) §3, then `report.rs`.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

#[cfg(feature = "select")]
mod both;
#[cfg(feature = "customize")]
pub mod customize;
#[cfg(any(feature = "customize", feature = "select"))]
mod destinations;
pub mod distill;
mod driver;
#[cfg(feature = "lstm")]
mod lstm;
#[cfg(feature = "lstm")]
pub mod muses;
mod reason;
mod report;
#[cfg(feature = "rivals")]
pub mod rival;
#[cfg(feature = "safety")]
pub mod safety;
mod schedule;
#[cfg(feature = "scheme")]
pub mod scheme;
#[cfg(feature = "select")]
pub mod select;
#[cfg(feature = "select")]
mod steerer;
#[cfg(test)]
mod testing;
mod tune;
mod utility;
mod values;

#[cfg(feature = "select")]
pub use both::Both;
#[cfg(any(feature = "customize", feature = "select"))]
pub use destinations::{DESTINATIONS_MAX, Destinations, SUITED_LIFETIME};
pub use driver::{ActionError, Agent, Driver, HostView};
pub use reason::{Distrust, Insight, Needs, Reason, Selections, Unusable};
pub use report::{Action, Collector, Report, Responses, Snapshot, Steer};
pub use schedule::Schedule;
#[cfg(feature = "select")]
pub use steerer::Steerer;
pub use tune::{
    ChangePoint, Mortise, MortiseConfig, PaperConfig, PaperMortise, Tuned, Tuner, TunerConfig,
};
pub use utility::Utility;
pub use values::KnobValues;
