//! The engine of a fleet: takes reports of edges in, learns a configuration of congestion control for each aggregate of
//! traffic, and hands it out (paper 002 §2 to §4).
//!
//! [`run`] is the process. What it learns, and how, is `trimtab-fleet`'s; this crate keeps what must not be lost
//! (`store`), talks to edges, operators and browsers (`api`, `server`, `dashboard`), and closes intervals when they are
//! over (`closer`). `trimtab-fleet-client` has the types of the API and asks an engine that runs.
//!
//! What to read first: `store/mod.rs`, which says what is kept and when it is safe; then `api/mod.rs`, the table of all
//! that can be asked for.

mod allowance;
mod api;
mod audit;
mod broker;
mod certified;
mod clock;
mod closer;
mod comparisons;
mod config;
mod dashboard;
mod demo;
mod engine;
mod error;
mod health;
mod ingest;
mod keeping;
mod learning;
mod logging;
mod metrics;
mod outgoing;
mod places;
mod refusals;
mod run;
mod safe;
mod secret;
mod server;
mod services;
#[cfg(test)]
mod simulation;
mod store;
mod studies;
mod study_tables;
mod surrogate_table;
mod tables;
mod tokens;
mod traces;
mod webhooks;
mod who;

pub use audit::check_audit;
pub use config::{BrokerSettings, Config, ConfigError, Keep, Limits, PostgresSettings, Tls};
pub use demo::demo;
pub use error::Error;
pub use keeping::{back_up_store, move_store};
pub use logging::LogFormat;
pub use run::run;
pub use store::{AuditCheck, AuditMark, Moved, StoreError, Tampered};
pub use study_tables::{experiment_text, experiments_text, rollout_text, rollouts_text};
pub use surrogate_table::fit_surrogate_text;
pub use tables::{
    aggregate_text, aggregates_text, audit_check_text, audit_text, bulk_text, comparisons_text,
    explain_text, moved_text, safe_text, shared_text, status_text, tokens_text, what_if_text,
};
pub use tokens::{add_token, list_tokens, revoke_token, rotate_token};
