//! The agent: finds TCP connections, and steers their congestion control by a policy.
//!
//! [`run`] is the daemon: a loader, which keeps the capabilities, and a steerer without any (`loader`).
//! It loads the datapath of `trimtab-kernel`, or takes over what is loaded;
//! each connection that opens is given to the first rule of the configuration that matches, and is
//! measured and steered from then on. When the agent stops, connections get back what they had
//! before. When it is killed, they go on with their last knobs, and the next agent takes them up
//! there. Those whose programs it replaces get back their algorithms' own knobs.
//!
//! What to read first: [`Config`], which says what can be asked for; `core`, in which connections
//! come, go and are looked at; `connection`, what a look is; `connection/back.rs`, when a connection
//! goes back to the fallback.

mod arms;
mod config;
mod connection;
mod core;
mod daemon;
mod datapath;
mod doors;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod kernel;
mod loader;
mod operate;

pub use arms::compare::{Compared, Comparison};
pub use config::{
    Bottleneck, Breaker, Compare, Config, ConfigError, Customized, DatapathOptions, Detail, Fleet,
    Forest, Learnt, LogFormat, Matches, Mode, Ports, Prefix, Rollout, Rule, Safety, Select, Share,
    Sockets, Steering, Turns,
};
pub use config::{Checked, check};
pub use connection::Standing;
pub use connection::{Cause, Change, Decision};
pub use core::Core;
pub use core::Tally;
pub use daemon::run;
pub use datapath::{Datapath, Link};
pub use doors::flow_table;
pub use doors::{DatapathStatus, EdgeStatus, FlowView, RolloutStatus, RuleStatus, Status, Why};
pub use doors::{Look, look, top};
pub use doors::{ask_flows, ask_status, ask_why, order};
pub use error::Error;
pub use kernel::Assigned;
pub use kernel::{Unloaded, unload};
pub use operate::{Done, Held, HoldStatus, LONGEST, Order, Target, Verb};
pub use trimtab_steer::safety::{Arm, Harm, Measured};

/// Default folder of the sockets and the lock.
pub const FOLDER: &str = "/run/trimtab";
