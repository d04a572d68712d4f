//! Runs of a comparison on the kernel's TCP, in real time.
//!
//! A run is a [`trimtab_emu::Topology`] with the link of the simulator in its middle, a client and
//! a server with real sockets for each flow, the application's state machine behind the client, and
//! congestion control in the kernel: its own (`cubic`, `bbr`, …), or [`trimtab_kernel`]'s Copa, BBR
//! or Muses in eBPF with knobs that are fixed, or that Mortise and Muses' selection turn from here.
//! It gives the same [`Measurement`](trimtab_lab::run::record::Measurement) as a run in the
//! simulator.
//!
//! ```no_run
//! use trimtab_lab::compare::compare;
//! use trimtab_lab::run::{Recording, pool::Effort};
//! use trimtab_lab::scenario::Scenario;
//! use trimtab_testbed::Rig;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::parse(
//!     "cc = [\"cubic\", \"mortise\"]\ntraces = [\"wifi:seed=1\"]\ntransport = \"tcp\"\nduration = \"10s\"\n[[app]]\nkind = \"vod\"\n",
//! )?;
//! let rig = Rig::new(&scenario)?;
//! let (effort, recording) = (Effort { jobs: Some(1), quiet: false }, Recording::default());
//! let comparison = compare(&scenario, effort, recording, "", &rig)?;
//! # drop(comparison);
//! # Ok(())
//! # }
//! ```
//!
//! [`OnKernel`] puts a congestion control of the kernel into the scenes of `trimtab conform`.
//! [`fleet`] is a fleet on the kernel: an engine and edges as in production.
//!
//! What to read first: `course.rs` for what happens in a run, `watch.rs` for how packets are
//! measured, `steering.rs` for the loop that Mortise runs in.

mod admission;
mod client;
mod clock;
mod conform;
mod connection;
mod course;
mod error;
pub mod fleet;
mod rig;
mod segment;
mod server;
mod steering;
mod sys;
mod watch;

pub use admission::Governor;
pub use conform::OnKernel;
pub use error::RealError;
pub use rig::Rig;
pub use trimtab_emu::Fidelity;
