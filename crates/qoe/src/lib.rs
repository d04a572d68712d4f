//! Quality of experience: what an operating point of the network is worth to an application, and
//! which trade between throughput, delay and loss the application prefers there.
//!
//! A [`Model`] scores an [`OperatingPoint`] given the application's live [`Factors`], and gives the
//! [`Hints`] λ and β that steer a congestion control (Mortise §3.2). Read [`Hints`] for what they
//! mean.
//!
//! Finished sessions are scored from what the user saw, not from the network: [`download_qoe`],
//! [`streaming_qoe`], [`web_qoe`], [`conference_qoe`].
//!
//! Throughput is in Mbit/s, delay in seconds and loss a fraction, wherever a number is bare.
//! Without the feature `formula` it needs no std, only an allocator.
#![cfg_attr(not(feature = "formula"), no_std)]
#![deny(missing_docs)]

extern crate alloc;

#[cfg(feature = "formula")]
mod aggregate;
mod conference;
mod download;
mod factors;
#[cfg(feature = "formula")]
mod formula;
mod model;
mod point;
mod samples;
mod sketch;
mod smooth;
mod streaming;
mod web;

#[cfg(feature = "formula")]
pub use aggregate::{AggregateFormula, Statistic, StatisticKind};
pub use conference::{Conference, conference_qoe};
pub use download::{Download, download_qoe, retransmission_penalty};
pub use factors::{FACTOR_NAME_LEN_MAX, Factor, FactorError, Factors, USER_FACTORS_MAX};
#[cfg(feature = "formula")]
pub use formula::{FORMULA_DEPTH_MAX, FORMULA_LEN_MAX, Formula, FormulaError};
pub use model::{BuiltIn, Model};
pub use point::{Gradient, Hints, OperatingPoint};
pub use samples::Samples;
pub use sketch::Sketch;
pub use streaming::{Streaming, StreamingQoe, streaming_qoe};
pub use web::{Web, web_qoe};
