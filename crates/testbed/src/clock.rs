//! The time of a run, and how its threads are scheduled.

/// Starts with the run's link: its zero is the [`Time::ZERO`](trimtab_units::Time::ZERO) of the run.
pub(crate) use trimtab_emu::Clock;
use trimtab_units::Duration;

/// As the standard library has it.
pub(crate) fn real(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
}

/// Puts the calling thread before most others, behind the link's own: an application that waits for a processor looks
/// like one behind a slower link. Where the system refuses, it stays as it is.
pub(crate) fn hurry() {
    // In Linux priorities are per thread, and no process stands for the calling one.
    let _ = rustix::process::setpriority_process(None, -15);
}
