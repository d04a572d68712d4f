//! An operator's hand: connections that are left alone, by order and at once.
//!
//! What to read first: [`Verb`], which says what can be ordered; [`Target`], of which connections;
//! [`holds`], which orders are in force; `core/operate.rs`, which carries them out.

pub(crate) mod file;
pub(crate) mod holds;
pub(crate) mod target;

use std::fmt;

use serde::{Deserialize, Serialize};
use trimtab_units::Duration;

pub use holds::{Held, HoldStatus};
pub use target::Target;

/// The longest time that an order can be given for; without a time it has no end.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// What an operator can order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Nothing is steered: connections get back the algorithm and the knobs that they had before,
    /// and are measured. Sockets keep the algorithm that a rule gave them.
    Pause,
    /// No rule applies: sockets get back their former algorithm too, and new ones keep theirs.
    Exclude,
    /// The same for any target, as an emergency brake: all that the agent gave goes back.
    Restore,
    /// Ends the orders on a target, and re-arms the breaker of a rule.
    Resume,
    /// Knobs go back to their defaults, what was learnt is forgotten, and steering begins anew.
    Reset,
}

impl Verb {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Exclude => "exclude",
            Self::Restore => "restore",
            Self::Resume => "resume",
            Self::Reset => "reset",
        }
    }

    /// What it leaves connections with; `None` where it ends that.
    pub(crate) fn held(self) -> Option<Held> {
        match self {
            Self::Pause => Some(Held::Paused),
            Self::Exclude => Some(Held::Excluded),
            Self::Restore => Some(Held::Restored),
            Self::Resume | Self::Reset => None,
        }
    }
}

/// An order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What to do.
    pub verb: Verb,
    /// With which connections.
    pub target: Target,
    /// For how long, in seconds; `None`: until it is resumed.
    #[serde(default, rename = "for_s")]
    pub lasts: Option<f64>,
}

/// What an order did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// `trimtab.agent.order/1`; fields may be added without a new one.
    pub schema: String,
    /// What was ordered.
    pub verb: Verb,
    /// Of which connections.
    pub target: Target,
    /// Open connections that it changed.
    pub connections: usize,
    /// Orders that it ended.
    pub ended: usize,
    /// What became of all that, for people.
    pub text: String,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)
    }
}
