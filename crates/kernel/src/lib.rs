//! Linux TCP as a datapath: congestion control in eBPF, steered through shared memory.
//!
//! [`Datapath::load`] adds the algorithms `trimtab_copa`, `trimtab_cubic`, `trimtab_bbr`,
//! `trimtab_bbr3`, `trimtab_pcc` and `trimtab_tree` to the kernel's own, such as `cubic` and `bbr`. A program picks one by the socket
//! option `TCP_CONGESTION`, an administrator by `net.ipv4.tcp_congestion_control`. Each connection
//! that runs one has a slot in memory that kernel and user space share; a [`Flow`] reads
//! measurements from it and turns knobs in it without a system call. What is loaded stays in the
//! kernel when this process ends, with the knobs as they are, and the next [`Datapath::load`] finds
//! it there, or puts other programs in its place.
//!
//! ```no_run
//! use trimtab_kernel::{Datapath, Options, Reporter};
//! use trimtab_units::{Duration, Time};
//!
//! # fn main() -> Result<(), trimtab_kernel::Error> {
//! let datapath = Datapath::load(&Options::default())?;
//! for flow in datapath.flows() {
//!     let Some(mut reporter) = Reporter::new(&flow, trimtab_kernel::now()) else { continue };
//!     std::thread::sleep(std::time::Duration::from_millis(100));
//!     if let Some(report) = reporter.report(&flow, trimtab_kernel::now(), Default::default()) {
//!         println!("{}: {} in flight", flow.identity().remote, report.inflight);
//!         flow.set("delta", if report.srtt > Duration::from_millis(50) { 0.5 } else { 0.1 })?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What to read first: `bpf/layout.h`, the contract with the kernel's side, and `bpf/main.bpf.c`,
//! which says who decides what and how often. The algorithms themselves are in `bpf/core/`, the C
//! twins of `trimtab_cc::Copa` and `trimtab_cc::Cubic`.

mod algorithm;
mod arms;
mod assign;
mod choices;
mod datapath;
mod doctor;
mod error;
mod events;
mod flow;
mod hand_over;
mod install;
mod kernel;
mod knobs;
mod layout;
mod ledger;
mod link;
mod mapping;
mod models;
mod pins;
mod programs;
mod renew;
mod reporter;
mod taken;
mod towards;
mod walk;

pub use algorithm::Algorithm;
pub use arms::Arms;
pub use assign::{Assigner, Gave, Given, Order, Outcome, Socket, Walked};
pub use choices::{Asking, Choice, Choices, Gives};
pub use datapath::{Datapath, Options, Origin, Stats, open_connections, unload_pins};
pub use doctor::{Doctor, Finding, Health};
pub use error::Error;
pub use events::Events;
pub use flow::{Extremes, Flow, Sample};
pub use hand_over::{Handover, Keeper};
pub use ledger::Held;
pub use link::KernelLink;
pub use models::TreesRefused;
pub use pins::{Former, Version};
pub use programs::{ProgramTime, program_time};
pub use renew::network_namespaces;
pub use reporter::Reporter;
pub use trimtab_datapath::{
    Alarm, By, Event, EventKind, FlowId, Identity, Switching, Totals, Towards,
};

use trimtab_units::Time;

/// The time on `CLOCK_MONOTONIC`, by which the kernel's side counts, too.
pub fn now() -> Time {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The clock starts with the machine, so neither part is negative.
    Time::from_nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod handmade;
