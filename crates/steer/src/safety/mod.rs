//! What a host does for safety around any steering: it leaves some connections alone, so that the
//! effect of steering can be measured ([`Arm`]), and ends a steering that does harm ([`Guard`]).

mod arm;
mod guard;
mod share;
mod window;

pub use arm::{Arm, PrefixKey};
pub use guard::{Guard, Harm, Safety, Verdict};
pub use share::Share;
pub use window::{Measured, Window};
