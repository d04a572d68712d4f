//! Runs of a comparison on noq, a real QUIC stack, in virtual time or over real sockets.
//!
//! A run has a server and a client of noq for each flow: real packets, a real handshake, real
//! encryption, noq's own loss detection and pacing. Congestion control is [`trimtab_noq`]'s, so any
//! algorithm or scheme runs as in a QUIC server. The client's application is the same state machine
//! as in the simulator.
//!
//! * [`Virtual`] has the link of the simulator. No socket is opened and no clock is read: the same
//!   job gives the same record, always.
//! * [`OnNoq`] and [`OnQuinn`] are congestion controllers under the checks of `trimtab conform`, in
//!   virtual time.
//! * [`Real`] has UDP sockets in two network namespaces and the link emulator between them, in real
//!   time.
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
//! With the feature `s2n` there are the same in virtual time on s2n-quic, `S2nVirtual` and `OnS2n`. It
//! compiles s2n-quic's TLS, which is C.
//!
//! Where the environment variable `QLOGDIR` names a folder, both write a log of each flow's server
//! there, in the format qlog.
//!
//! What both share is in `flow.rs` (the two ends of a flow) and `run.rs` (what a run measures). They
//! meet their surroundings at two traits: `Carrier` takes a flow's datagrams, `World` is the clock
//! and the network of all flows.
//!
//! In real time one thread drives both ends of all flows over noq's sans-IO core. The `noq` crate on
//! tokio would need the servers and the clients a second time, as tasks, and its timers have a
//! millisecond. A run at 46 Mbit/s takes 0.7 of a core on a busy virtual machine, the link's thread
//! included. Most of that goes to waking up.
//!
//! What to read first: `virtual_world.rs` or `real_world.rs` for what happens when, `flow.rs` for the
//! two ends of a flow, `run.rs` for what a run measures.
#![forbid(unsafe_code)]

mod admission;
mod carrier;
mod client;
mod clock;
mod conform;
mod error;
mod flow;
mod identity;
mod logs;
mod observer;
mod quinn;
mod real;
mod real_world;
mod run;
#[cfg(feature = "s2n")]
mod s2n;
mod server;
mod side;
mod socket;
mod virtual_time;
mod virtual_world;
mod watch;
mod world;

pub use conform::OnNoq;
pub use error::QuicError;
pub use quinn::OnQuinn;
pub use real::Real;
#[cfg(feature = "s2n")]
pub use s2n::{OnS2n, S2nVirtual};
pub use virtual_time::Virtual;
