//! Episodes to learn policies from.
//!
//! An [`Episode`] is one connection over one path, in which an algorithm is chosen every selection
//! period; it forks, so what each choice would have cost can be tried. A [`Course`] draws episodes:
//! links ([`links`]), the rest of the path by a space-filling design ([`condition`],
//! [`trimtab_net::wsp`]), an application, and rivals on the same path. [`muses`] has flows that stop
//! every 10 ms instead, [`agents`] flows whose rate or window an agent sets. A [`Twin`] has the
//! worlds that a connection may run in, by what its monitor saw. The Python package `trimtab` learns
//! on them (`crates/py`, `python/trimtab`).
//!
//! What to read first: Zhang et al., "Bridging the Gap between QoE and QoS in Congestion Control"
//! (Floo, ATC 2023) §3.3 and §4.3, then `episode.rs`.
//!
//! ```
//! use trimtab_envs::{Course, CourseConfig, Objective, Part, RivalsConfig, Rules, Traffic};
//! use trimtab_cc::migrate::Switch;
//! use trimtab_units::Duration;
//!
//! let algorithms = ["cubic", "bbr"].map(|name| name.parse().unwrap());
//! let course = Course::new(CourseConfig {
//!     rules: Rules {
//!         algorithms: algorithms.into(),
//!         period: Duration::from_secs(2),
//!         periods: 3,
//!         switch: Switch::Full,
//!         objective: Objective::Mean,
//!     },
//!     part: Part::Train,
//!     conditions: 10,
//!     generated: 4,
//!     wifi: 0,
//!     recorded: None,
//!     traffic: vec![Traffic::WebBurst],
//!     flows: vec![1],
//!     rivals: RivalsConfig::default(),
//!     start: Some(0),
//! })
//! .unwrap();
//! let mut episode = course.episode(7);
//! while !episode.is_done() {
//!     let costs = episode.costs(1);
//!     let best = if costs[0] <= costs[1] { 0 } else { 1 };
//!     assert_eq!(episode.step(best).waited, costs[best]);
//! }
//! ```

pub mod agents;
pub mod condition;
mod course;
mod episode;
mod fixed;
mod future;
pub mod links;
pub mod muses;
mod rivals;
mod twin;

pub use course::{Course, CourseConfig, CourseError};
pub use episode::{Draw, Episode, Objective, Outcome, Rules, Step, Traffic};
pub use fixed::{Fixed, FixedError};
pub use future::{Ran, mixed};
pub use rivals::{RIVALS_MAX, Rival, RivalKind, RivalsConfig};
pub use trimtab_net::Part;
pub use twin::{Prior, Twin};
