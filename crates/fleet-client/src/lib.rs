//! What talks to the engine of a fleet (paper 002 §2, §3): the requests and answers of its HTTP API, a client
//! that asks it, and an edge. The engine itself, with its store and its server, is `trimtab-engine`.
//!
//! * [`Client`] asks an engine that runs: for operators and tests.
//! * [`edge::Edge`] follows the configurations of its aggregates and reports what connections saw, also across outages.
//!
//! With the feature `schema` the API's types describe themselves as JSON Schema, for the engine's OpenAPI.
#![deny(missing_docs)]

mod api;
mod client;
pub mod edge;
mod error;
mod identity;
mod secret;
#[cfg(test)]
mod stand_in;

pub use api::*;
pub use client::{Client, Listing, Transport, WhatIfAsked};
pub use error::Error;
pub use secret::Secret;
/// Arms, designs and what they show.
pub use trimtab_fleet::experiment;
