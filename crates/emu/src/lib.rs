//! Links in real time around unmodified programs.
//!
//! A [`Topology`] is two network namespaces with a link of [`trimtab_net`] between them. Programs and sockets in
//! the `client` namespace reach those in the `server` namespace through it, and nothing else. The link decides what
//! becomes of each packet, exactly as in the simulator; this crate gives it the real time and carries the packets.
//!
//! ```no_run
//! use std::io::{Read, Write};
//! use std::net::{TcpListener, TcpStream};
//!
//! use trimtab_emu::{Config, ServerSide, Topology};
//! use trimtab_net::{Capacity, LinkConfig, QueueConfig};
//! use trimtab_units::{Bytes, Duration, Rate};
//!
//! let delay = Duration::from_millis(10);
//! let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
//!     .queue(QueueConfig::drop_tail_bytes(Bytes::new(150_000)))
//!     .delay(delay);
//! let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(delay);
//!
//! let mut topology = Topology::new(ServerSide::Private)?;
//! let address = (topology.server_address(), 8000);
//! let listener = topology.server().run(move || TcpListener::bind(address))?;
//! topology.start(&Config { down, up, seed: 1, log: None })?;
//!
//! let server = std::thread::spawn(move || listener.accept()?.0.write_all(&[0; 1_000_000]));
//! let mut client = topology.client().run(move || TcpStream::connect(address))?;
//! client.read_to_end(&mut Vec::new())?;
//! server.join().unwrap()?;
//! println!("{}", topology.stop()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`program::run`] is what `trimtab emu` does: one program behind a link. Read [`Topology`] first, then
//! `forward.rs`, where the packets go by.

mod address;
mod bundle;
mod clock;
mod device;
mod ecn;
mod error;
mod fidelity;
mod forward;
mod log;
mod mahimahi;
mod namespace;
mod netlink;
mod passage;
pub mod privilege;
pub mod program;
mod report;
mod signals;
mod sys;
mod tally;
mod topology;
pub mod watchdog;

pub use bundle::Bundle;
pub use clock::{Clock, act_as_kernel, hurry};
pub use error::EmuError;
pub use fidelity::Fidelity;
pub use namespace::{Namespace, NamespaceId};
pub use passage::{Direction, Fate, Observer, Passage};
pub use report::{Calibration, DirectionReport, Drops, Report, SCHEMA, Scheduling, Spread};
pub use topology::{Config, ServerSide, Topology};
