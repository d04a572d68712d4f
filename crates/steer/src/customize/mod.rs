//! PCC customization (paper 002 §4): a contextual continuum-armed bandit that learns the knobs of a congestion control
//! from the rewards of intervals.
//!
//! A [`Learner`] is one context of one aggregate. It proposes a [`Trial`], a [`Point`] of a [`Space`]
//! of knobs or another algorithm, and gets the reward of the interval in which that was in force. It
//! draws nothing by itself: every draw comes from the number that its caller hands in, so that the
//! same history gives the same decisions.
//!
//! What to read first: §4.2 and §4.3 of the paper, then `learner.rs`.
//!
//! ```
//! use trimtab_steer::customize::{Dimension, Learner, Preset, Settings, Space};
//!
//! let space = Space::new(vec![Dimension::linear(0.0, 10.0), Dimension::logarithmic(1.0, 1000.0)]);
//! let mut learner = Learner::new(Settings::of(Preset::Pairs), space.unit(&[5.0, 10.0]), space.unit(&[5.0, 10.0]), 2);
//! for round in 0..600 {
//!     let trial = learner.propose(round);
//!     let [linear, logarithmic] = space.values(&trial.point)[..] else { unreachable!() };
//!     // The best configuration is 7 and 100.
//!     let reward = -(linear - 7.0).powi(2) / 100.0 - ((logarithmic / 100.0_f64).ln() / 6.9).powi(2);
//!     learner.observe(&trial, Some(reward), false);
//! }
//! let best = space.values(learner.centre());
//! assert!((best[0] - 7.0).abs() < 1.0 && (60.0..160.0).contains(&best[1]), "{best:?}");
//! ```

mod arms;
mod chance;
mod commons;
mod draw;
mod gradient;
mod harm;
mod learner;
mod memory;
mod model;
mod point;
mod relevance;
mod search;
mod settings;
mod shift;
mod space;
mod surrogate;
mod watch;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

pub use arms::{Arms, ArmsPrior, Worth};
pub use chance::Chance;
pub use commons::{Commons, Finding, Known};
pub use gradient::Step;
pub use learner::{Learner, Lesson, Outcome, Purpose, Reward, Trial};
pub use memory::{Cell, Memory};
pub use point::{At, Point};
pub use relevance::{Relevance, TestPoint};
pub use settings::{Acquisition, Estimator, Forgetting, Preset, Settings, SettingsError};
pub use space::{Dimension, Space};
pub use watch::{Alarm, Watch};
