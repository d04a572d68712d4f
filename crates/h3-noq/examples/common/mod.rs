//! What the servers among the examples have in common: who they are, how their connections are
//! steered, and what they report.

pub(crate) mod identity;
pub(crate) mod report;
pub(crate) mod responses;
pub(crate) mod server;

/// What a program ends with, or a request.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;
