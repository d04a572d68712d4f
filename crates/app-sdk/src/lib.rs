//! libtrimtab: applications tell Trimtab's agent what is good for their connections.
//!
//! A connection is named by its kernel's cookie, so an application can speak for its own sockets only, and needs no
//! privilege to do so.
//!
//! ```no_run
//! use std::net::TcpListener;
//! use trimtab_app_sdk::{Hints, Live};
//! use trimtab_units::Bytes;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hints = Hints::connect()?;
//! let (stream, _) = TcpListener::bind("[::]:8080")?.accept()?;
//! let size = Bytes::new(2_500_000);
//! let connection = hints.describe(&stream, Some("download"), &Live::new().with_request(size))?;
//! // … and whenever something changes:
//! hints.update(&connection, &Live::new().with_remaining(size / 2))?;
//! # Ok(())
//! # }
//! ```
//!
//! The same for C is in `include/trimtab.h`. What to read first: [`Hints`], then [`wire`], which is all that the agent
//! sees.

mod client;
pub mod ffi;
mod live;
pub mod wire;

pub use client::{Connection, HintError, Hints, SOCKET};
pub use live::Live;
