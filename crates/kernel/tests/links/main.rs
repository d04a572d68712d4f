//! The datapath over emulated links: what the published prototype of Mortise does wrong, and links that fail.

mod bbr;
mod bbr3;
#[path = "../common/mod.rs"]
mod common;
mod ecn;
mod faults;
mod muses;
mod prototype;
mod support;
mod switching;
mod towards;
