//! Statistics of runs: percentiles, paired changes with bootstrap intervals, fairness.
//!
//! A published crate was looked for first. `statrs` has percentiles (of its own definition, R's
//! type 8) and distributions but neither bootstrap intervals nor fairness, and brings linear algebra
//! for them; no maintained crate has a seeded BCa interval. What is needed here is a few short
//! functions, so they are ours. Everything is deterministic: transcendental functions come from
//! `libm`, randomness from a fixed seed.
//!
//! What to read first: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 14.

mod ellipse;
mod fairness;
pub mod harm;
pub mod overload;
mod percentile;
pub mod summary;
mod users;
mod welford;

pub use ellipse::{Ellipse, Moments};
pub use fairness::{friendliness_ratio, jain};
pub use percentile::{Sorted, percentile};
pub use trimtab_fleet::bootstrap::{Estimate, RESAMPLES, Sums, UNITS_MIN, bca};
pub use users::{NOTHING, UsersRecord};
pub use welford::Welford;

#[cfg(test)]
mod tests;
