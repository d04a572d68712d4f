//! Antelope's way to choose (Zhou et al., ICNP 2021; the published code is
//! antelopeproject/antelope): one model per algorithm foretells what it would be worth, the highest
//! wins.
//!
//! What to read first: [`Measured`] is what it goes by and learns from, [`Boosted`] foretells,
//! [`Hysteresis`] keeps it from flapping, [`Memory`] says what the next connection to a destination
//! starts with. `docs/reference/selection.md` lists where this differs from the published code, and
//! why.

mod boosted;
mod hysteresis;
mod interval;
mod memory;

pub use boosted::{Boosted, DEPTH_MAX, FORMAT, TREES_MAX, VERSION};
pub use hysteresis::Hysteresis;
pub use interval::{ACKS_MIN, FEATURES, FEATURES_LEN, Inputs, Interval, Measured, feature_index};
pub use memory::Memory;

#[cfg(test)]
mod tests;
