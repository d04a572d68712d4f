//! From a scenario to runs, statistics, tables and reports.
//!
//! A [`scenario::Scenario`] says who competes, doing what, over which links. Its plan lists the runs;
//! [`run::pool`] does them on all cores and keeps their order; each leaves a
//! [`result::RunRecord`]; [`stats::summary::summarise`] makes paired comparisons of them; and the outputs
//! ([`report`], [`report::table`], [`report::archive`]) show them. Read [`scenario`] first, then [`result`].

mod bound;
pub mod compare;
pub mod conform;
pub mod fetch;
pub mod fleet;
pub mod kept;
pub mod leaderboard;
pub mod listing;
#[cfg(test)]
mod muses;
pub mod report;
pub mod reproduce;
pub mod result;
pub mod run;
pub mod samples;
pub mod scenario;
pub mod share;
pub mod stats;
#[cfg(test)]
mod testing;
pub mod validate;
