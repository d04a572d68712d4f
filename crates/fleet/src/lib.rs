//! Customization of congestion control for a fleet of servers (paper 002): what edges report once per interval, what is
//! learnt from it, and which configuration they get.
//!
//! An *aggregate* is a service to a destination prefix ([`Key`]). In each [`Interval`] one
//! [`Configuration`] is in force for its connections. Edges add what they saw up to a [`Report`] of
//! mergeable sketches; the engine merges those of all edges and hands them to [`Aggregate::close`],
//! which computes the reward of the [`Service`], learns, and says in a [`Decision`] all that can be
//! asked about it.
//!
//! Nothing here reads a clock, draws a random number or does I/O: the caller hands in times and keeps the state, which
//! is plain data for serde. The same service, key and reports give the same decisions on every machine.
//!
//! ```
//! use trimtab_fleet::{Aggregate, Interval, Recorder, Service, Summary};
//! use trimtab_units::Time;
//!
//! let service = Service::parse(
//!     r#"
//!     name = "games"
//!     interval = "20min"
//!     algorithm = "vivace"
//!     reward = "p50(throughput) - 0.1 * mean(loss)"
//!     [knobs]
//!     gamma = { min = 1, max = 5000, scale = "log" }
//!     startup_rate_max = { min = 1, max = 1000, scale = "log" }
//!     [safe]
//!     startup_rate_max = 20
//!     "#,
//! )
//! .unwrap();
//! let mut aggregate = Aggregate::new("games/203.0.113.0/24".parse().unwrap());
//!
//! // Sunday, 22 November 2026, 04:00 UTC.
//! let interval = service.interval_at(Time::from_secs(1_795_320_000));
//! let configuration = aggregate.open(&service, interval);
//! assert_eq!(configuration.algorithm, "vivace");
//!
//! let mut throughput = Recorder::new();
//! (1..=100).for_each(|mbps| throughput.record(f64::from(mbps)));
//! let mut loss = Recorder::new();
//! loss.record(0.01);
//! let mut summary = Summary::new(100);
//! summary.set("throughput", throughput.sketch()).unwrap();
//! summary.set("loss", loss.sketch()).unwrap();
//!
//! let decision = aggregate.close(&service, interval, &summary).unwrap();
//! assert_eq!(decision.context, "weekend 00-08");
//! assert!((decision.reward.unwrap() - 50.0).abs() < 1.0);
//! ```
#![deny(missing_docs)]

mod aggregate;
pub mod bootstrap;
mod configuration;
mod context;
mod control;
mod decision;
pub mod experiment;
mod fit;
mod harm;
mod interval;
mod key;
mod prior;
mod report;
mod reward;
mod scale;
mod service;
mod sharing;
mod side_by_side;
mod sketch;
mod spread;
mod summary;
mod together;
mod what_if;

pub use aggregate::{Aggregate, CloseError, Ended, Hold, OPEN_MAX};
pub use configuration::{Chosen, Configuration, ConfigurationError};
pub use context::{Context, Contexts, ContextsError, UtcOffset};
pub use control::{CONTROL, Control, TREATMENT};
pub use decision::{Algorithms, Decision, Odds, RewardSource};
pub use fit::{
    Prediction, PresentSurrogate, SurrogateFit, SurrogateFitError, SurrogateTerm, Unsuitable,
};
pub use harm::{Bottleneck, Harm};
pub use interval::Interval;
pub use key::{Key, KeyError, Prefix, SERVICE_NAME_LEN_MAX, ServiceName};
pub use prior::PriorRow;
pub use report::{REPORT_BYTES_MAX, Report, ReportError};
pub use reward::{Guard, GuardError};
pub use service::{BUILT_IN_STATISTICS, KnobRange, Learning, Other, Service, ServiceError};
pub use sharing::{AGGREGATES_MIN, INTERVALS_MIN, Shared, Sharing, SharingError, Sighting};
pub use side_by_side::{Observed, SideBySide};
pub use sketch::{RELATIVE_ERROR_MAX, Recorder, Sketch, SketchError, VALUE_MAX};
pub use summary::{STATISTIC_NAME_LEN_MAX, STATISTICS_MAX, Summary, SummaryError};
pub use together::{Together, TogetherError, TogetherMistake, WrongBits};
/// What the aggregates of a service found together, what one of them adds, and what may be in force.
pub use trimtab_steer::customize::{Cell, Commons, Finding, Point};
pub use what_if::{Target, WhatIf, WhatIfError};
