//! libtrimtab: applications tell Trimtab's agent what is good for their connections.
//!
//! A connection is made known by a descriptor of its socket, so an application can speak for sockets only that it
//! holds, and needs no privilege to do so.
//!
//! ```no_run
//! use std::net::TcpListener;
//! use trimtab_app_sdk::{Factors, Hints};
//! use trimtab_units::Bytes;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hints = Hints::connect()?;
//! let (stream, _) = TcpListener::bind("[::]:8080")?.accept()?;
//! let size = Bytes::new(2_500_000);
//! let live = Factors::new().with_request(size);
//! let connection = hints.describe(&stream, Some("download"), &live)?;
//! // … and whenever something changes:
//! hints.update(&connection, &Factors::new().with_remaining(size / 2))?;
//! # Ok(())
//! # }
//! ```
//!
//! The same for C is in `include/trimtab.h`. What to read first: [`Hints`], then [`wire`], which is all that the agent
//! sees.

mod client;
pub mod ffi;
pub mod wire;

pub use client::{Connection, HintError, Hints, SOCKET};
/// Live factors, in the words that formulas, the agent and the adapters for QUIC stacks have for them.
pub use trimtab_qoe::{Factor, FactorError, Factors};
