//! An edge of a fleet (paper 002 §3): it learns which configuration each aggregate of its traffic
//! is to run, adds up what its connections saw, and tells the engine once per interval and
//! aggregate, in sketches that can be merged.
//!
//! Servers and engine share no fate (§2): without an engine an edge goes on with the last
//! configurations that it was given, also after a restart, and keeps its reports for when the
//! engine is back, as far as there is room.
//!
//! [`Edge`] is for a host of connections: the agent on Linux TCP, a QUIC stack, a test. It never
//! waits for the network: two threads talk to the engine. [`Part`] keeps one connection's account
//! with it. [`Book`] is what it knows, without clock,
//! thread or socket.
//!
//! ```no_run
//! use trimtab_fleet_client::Secret;
//! use trimtab_fleet_client::edge::{Edge, Observation, Options};
//! use trimtab_units::{Duration, Rate};
//!
//! let edge = Edge::start(&Options {
//!     engine: "https://engine.example:7480".to_owned(),
//!     token: Secret::File("/etc/trimtab/edge.token".into()),
//!     authority: None,
//!     folder: "/var/lib/trimtab/edge".into(),
//! })?;
//! let key = "tv/203.0.113.0/24".parse()?;
//! if let Some(force) = edge.in_force(&key) {
//!     // Run the connection with `force.configuration`, and afterwards say what it saw:
//!     let seen = Observation {
//!         throughput: Some(Rate::from_mbps(8.0)),
//!         rtt: Some(Duration::from_millis(40)),
//!         loss: Some(0.001),
//!         ..Observation::default()
//!     };
//!     edge.record(&key, force.configuration.version, edge.interval(&force), &seen);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod book;
mod outbox;
mod part;
mod run;
mod state;
mod turns;

pub use book::{Book, Ended, InForce, Observation};
pub use part::{Measured, Part};
pub use run::{Edge, Options, StartError, Status};
pub use state::StateError;
pub use trimtab_fleet::{
    CONTROL, Configuration, Control, Interval, Key, Prefix, Report, ServiceName, Sketch, Together,
    TogetherError,
};
pub use turns::Turns;
