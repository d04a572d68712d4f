//! The agent: finds TCP connections, and steers their congestion control by a policy.
//!
//! [`run`] is the daemon. It loads the datapath of `trimtab-tcp`, or takes over what is loaded; each connection that opens
//! is given to the first rule of the configuration that matches, and is measured and steered from then on. When the
//! agent stops, connections get back what they had before. When it is killed, they go on with their last knobs, and the
//! next agent takes them up there. Those whose programs it replaces get back their algorithms' own
//! knobs.
//!
//! What to read first: [`Config`], which says what can be asked for; `core.rs`, in which connections come, go and are
//! looked at; `connection.rs`, what a look is; `guard.rs`, when a connection goes back to what is safe.

mod agent;
mod ahead;
mod arm;
mod assign;
mod check;
mod config;
mod connection;
mod control;
mod core;
mod customize;
mod datapath;
mod decision;
mod default;
mod ended;
mod error;
mod governor;
mod guard;
mod hints;
mod http;
mod lock;
mod logging;
mod metrics;
mod notify;
mod places;
mod responses;
mod serve;
mod sizes;
mod sock_diag;
mod table;
mod tally;
mod top;
mod unload;
mod view;
mod window;

pub use agent::run;
pub use arm::Arm;
pub use assign::Assigned;
pub use check::{Checked, check};
pub use config::{
    Config, ConfigError, Customized, DatapathOptions, Detail, Fleet, Forest, Learnt, Matches, Mode,
    Ports, Prefix, Rule, Safety, Select, Share, Sockets, Steering, Turns,
};
pub use connection::Standing;
pub use control::{ask_flows, ask_status, ask_why};
pub use core::Core;
pub use datapath::{Datapath, KernelLink, Link};
pub use decision::{Cause, Change, Decision};
pub use error::Error;
pub use guard::Harm;
pub use table::flow_table;
pub use tally::Tally;
pub use top::{Look, look, top};
pub use unload::{Unloaded, unload};
pub use view::{DatapathStatus, EdgeStatus, FlowView, RuleStatus, Status, Why};
pub use window::Measured;

/// Folder of the sockets and the lock, unless told.
pub const FOLDER: &str = "/run/trimtab";
