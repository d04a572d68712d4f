//! The time of a run.

/// Starts with the run's link: its zero is the [`Time::ZERO`](trimtab_units::Time::ZERO) of the run.
pub(crate) use trimtab_emu::{Clock, hurry};
use trimtab_units::Duration;

/// As the standard library has it.
pub(crate) fn real(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
}
