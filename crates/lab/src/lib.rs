//! From a scenario to runs, statistics, tables and reports.
//!
//! A [`scenario::Scenario`] says who competes, doing what, over which links. Its plan lists the runs;
//! [`pool`] does them on all cores and keeps their order; each leaves a
//! [`result::RunRecord`]; [`summary::summarise`] makes paired comparisons of them; and the outputs
//! ([`table`], [`report`], [`archive`]) show them. Read [`scenario`] first, then [`result`].

pub mod archive;
mod axis;
pub mod cells;
pub mod compare;
pub mod course;
pub mod datapath;
pub mod fetch;
pub mod headline;
pub mod links;
#[cfg(test)]
mod muses;
mod oracle;
pub mod output;
pub mod parity;
pub mod pool;
pub mod prepare;
pub mod program;
pub mod record;
pub mod report;
pub mod result;
pub mod run;
pub mod scenario;
pub mod score;
pub mod select_oracle;
pub mod selection;
pub mod stats;
mod suits;
pub mod summary;
pub mod switches;
pub mod table;
#[cfg(test)]
mod testing;
pub mod validate;
