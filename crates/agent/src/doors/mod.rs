//! The agent's doors: how people, monitoring and applications reach it.

pub(crate) mod access;
pub(crate) mod control;
pub(crate) mod hints;
pub(crate) mod http;
pub(crate) mod metrics;
pub(crate) mod serve;
pub(crate) mod table;
mod top;
pub(crate) mod view;

pub use control::{ask_flows, ask_status, ask_why, order};
pub use table::flow_table;
pub use top::{Look, look, top};
pub use view::{DatapathStatus, EdgeStatus, FlowView, RolloutStatus, RuleStatus, Status, Why};
