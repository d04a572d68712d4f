//! The adapter under quinn's own loss detection, pacing and encryption.

mod loopback;
mod simulator;
mod support;
mod transfer;
