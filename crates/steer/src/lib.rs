//! Steering of congestion control by quality of experience: a [`Report`] in, at most one [`Action`] out.
//!
//! This is the narrow waist of Trimtab. A datapath (the simulator, Linux TCP, a QUIC stack, WebRTC)
//! fills a `Report` once per interval and applies the `Action`; what steers knows nothing of
//! transports, and what transports knows nothing of QoE.
//!
//! What to read first: Mortise (NSDI 2026) §3, then `report.rs`.

pub mod customize;
pub mod distill;
mod driver;
pub mod muses;
mod report;
mod schedule;
pub mod scheme;
pub mod select;
mod steerer;
mod tune;
mod values;

pub use driver::{ActionError, Driver, HostView};
pub use report::{Action, Collector, Insight, Needs, Reason, Report, Responses, Snapshot, Steer};
pub use schedule::Schedule;
pub use steerer::{Both, Steerer};
pub use tune::{ChangePoint, Mortise, MortiseConfig};
pub use values::KnobValues;
