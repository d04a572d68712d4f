//! A stack for tests.

use crate::hints::Hints;
use crate::paths::{Next, Paths};
use crate::stack::{Pacing, Stack, Traits};

/// A stack that has nothing but a name for its CUBIC.
#[derive(Clone, Debug)]
pub(crate) enum Own {}

impl Stack for Own {
    type Factory = Paths;
    const TRAITS: &'static Traits = &Traits { pacing: Pacing::ByRate, own: "own::CubicConfig" };
}

pub(crate) type Config = crate::Config<Own>;

/// What the next path begins with.
pub(crate) fn next(config: &Config) -> Next {
    Next { settings: config.settings().clone(), hints: Hints::default() }
}
