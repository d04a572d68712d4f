//! Muses' environment constructor (Zhong et al., INFOCOM 2022, §III-D): networks of the ranges of Tables II and
//! III, flows that stop at each decision, and the oracle that knows what would have been best.
//!
//! A policy learns by driving a flow while the oracle labels each state. The flow is that of the simulator, its
//! algorithm [`trimtab_cc::muses::Muses`]: what is trained here runs elsewhere unchanged, in the same states.
//!
//! What to read first: `environment.rs` for what is drawn, then `rollout.rs`.

mod environment;
mod rollout;
mod shown;

pub use environment::{Environment, Environments, EnvironmentsConfig, Oracle, Part, Setting};
pub use rollout::{Outcome, Rollout};
pub use shown::{DOUBLING, Shown, shown};
