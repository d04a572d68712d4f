//! What the agent does with the kernel around its datapath: who owns a socket, which algorithm it begins with.

pub(crate) mod ahead;
pub(crate) mod assign;
pub(crate) mod default;
pub(crate) mod places;
pub(crate) mod sock_diag;
mod unload;
mod wanted;

pub use assign::Assigned;
pub use unload::{Unloaded, unload};
