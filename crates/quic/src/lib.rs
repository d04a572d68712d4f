//! Runs of a comparison on noq, a real QUIC stack, in virtual time.
//!
//! A run is the bottleneck of the simulator with a server and a client of noq for each flow: real
//! packets, a real handshake, real encryption, noq's own loss detection and pacing. Congestion
//! control is [`trimtab_noq`]'s, so any algorithm or scheme runs as in a QUIC server. The client's
//! application is the same state machine as in the simulator. No socket is opened and no clock is
//! read: the same job gives the same record, always.
//!
//! ```
//! use trimtab_lab::compare::compare;
//! use trimtab_lab::run::{Recording, pool::Effort};
//! use trimtab_lab::scenario::Scenario;
//! use trimtab_quic::Virtual;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::parse(
//!     "cc = [\"cubic\", \"mortise\"]\ntraces = [\"constant:8Mbit/s\"]\nduration = \"3s\"\n\
//!      [[app]]\nkind = \"download\"\n",
//! )?;
//! let datapath = Virtual::new(&scenario)?;
//! let (effort, recording) = (Effort { jobs: Some(1), quiet: true }, Recording::default());
//! let comparison = compare(&scenario, effort, recording, "", &datapath)?;
//! assert!(comparison.runs.iter().all(|run| run.requests > 0));
//! # Ok(())
//! # }
//! ```
//!
//! What to read first: `world.rs` for what happens when, `flow.rs` for the two ends of a flow,
//! `run.rs` for what a run measures.
#![forbid(unsafe_code)]

mod admission;
mod client;
mod clock;
mod datapath;
mod error;
mod flow;
mod identity;
mod observer;
mod run;
mod server;
mod side;
mod world;

pub use datapath::Virtual;
pub use error::QuicError;
