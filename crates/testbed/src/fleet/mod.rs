//! A fleet on the kernel's TCP, in real time: one engine, edges that each run an agent, and clients
//! behind links that differ.
//!
//! Everything is what production runs: `trimtab engine run` with SQLite, `trimtab agent` with the
//! algorithms in eBPF, real sockets. The engine is in a network namespace of its own; each edge is
//! in another one, which a link to the engine joins to it (`site.rs`, `edge.rs`); its clients are
//! in a third behind the edge's emulated link (`traffic.rs`).
//!
//! What to read first: [`KernelFleet`] for what is set up, then `course.rs` for what happens: the
//! fleet learns, and then what it learnt and what it began with take turns, link, losses and
//! downloads being the same in both.

mod course;
mod edge;
mod plot;
mod result;
mod scenario;
mod site;
mod table;
mod traffic;

pub use course::{Course, run};
pub use plot::plot;
pub use result::{Arm, ArmResult, Block, Difference, EdgeResult, Estimate, FleetRun, Moment};
pub use scenario::{Clients, EdgePlan, KernelFleet};
pub use table::render;
