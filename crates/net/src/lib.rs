//! Network links that turn arrival times into departure times.
//!
//! A [`Link`] is a queue, a capacity that serves it, and what else happens on the way: random loss, a
//! policer, propagation delay, jitter, reordering. It never reads a clock: its owner says what time
//! it is. So the same code runs in a simulator, where time jumps, and in an emulator, where it passes.
//!
//! The capacity is constant or a recorded [`Trace`] with the semantics of Mahimahi's `mm-link`
//! ([`Link`] states them; [`mahimahi_log`] checks them against a log of the original).
//!
//! ```
//! use trimtab_net::{Capacity, Event, Link, LinkConfig, Packet, QueueConfig};
//! use trimtab_units::{Bytes, Duration, Rate, Time};
//!
//! let config = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
//!     .queue(QueueConfig::drop_tail_bytes(Bytes::new(150_000)))
//!     .delay(Duration::from_millis(10));
//! let mut link = Link::new(&config, 1);
//!
//! for number in 0..3 {
//!     link.send(Time::ZERO, Packet { size: Bytes::new(1500), payload: number }).unwrap();
//! }
//! let mut arrivals = Vec::new();
//! while let Some(now) = link.next_event() {
//!     while let Some(event) = link.poll(now) {
//!         if let Event::Delivered(delivery) = event {
//!             arrivals.push((delivery.packet.payload, delivery.at.as_millis()));
//!         }
//!     }
//! }
//! assert_eq!(arrivals, [(0, 11), (1, 12), (2, 13)]);
//! ```
//!
//! Read [`Link`] first, then [`LinkConfig`] and [`Trace`].

mod capacity;
mod codel;
mod config;
mod delay;
pub mod generate;
mod link;
mod loss;
pub mod mahimahi_log;
mod mark;
mod part;
mod pelt;
mod policer;
mod queue;
pub mod rate_log;
mod seed;
mod segments;
mod service;
mod sleeper;
mod spread;
mod stats;
mod trace;
mod trace_file;
mod trace_stats;
pub mod wsp;

pub use capacity::Capacity;
pub use config::{LinkConfig, QueueConfig};
pub use delay::{DelayConfig, DelayLine, JitterConfig, ReorderConfig};
pub use link::{Delivery, DropCause, Dropped, Event, Link, Packet};
pub use loss::LossConfig;
pub use mark::MarkConfig;
pub use part::{Part, UnknownPart, recording_name};
pub use policer::PolicerConfig;
pub use segments::{Segment, Segmentation, TooManyBins};
pub use stats::{Count, LinkStats};
pub use trace::{Trace, TraceError};
pub use trace_file::{TraceFileError, TraceFileProblem};
pub use trace_stats::TraceStats;
