//! Deterministic simulation of transports over shared links.
//!
//! A [`World`] holds flows and links under a virtual clock. It is `Clone`: fork it, turn a knob in
//! one copy, run both, and what differs is what the knob did. The same seeds give the same bytes.
//!
//! What to read first: `world.rs` for what happens when, `sender.rs` for the transport (RFC 9002,
//! RFC 8985), `transport.rs` for how QUIC and Linux TCP differ, `media/mod.rs` for what carries calls.

mod agenda;
mod control;
mod flow;
mod foresight;
mod governor;
mod histogram;
mod media;
mod omniscient;
mod outside;
mod pacer;
mod packets;
mod receiver;
mod recovery;
mod responses;
mod rtt;
mod sender;
mod streams;
mod transport;
mod world;

pub use control::Control;
pub use flow::{Flow, FlowConfig, ReceiveTotals};
pub use governor::Governor;
pub use histogram::Histogram;
pub use omniscient::Omniscient;
pub use outside::{Dial, Outside, Sight};
pub use sender::SendTotals;
pub use transport::{LossDetection, Pacing, Transport};
pub use world::{World, WorldConfig};
