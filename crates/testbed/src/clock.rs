//! The time of a run, and how its threads are scheduled.

use std::time::Instant;

use trimtab_units::{Duration, Time};

/// Real time since the run's link started, the [`Time::ZERO`] of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sleeps until `then`; not at all when that is over.
    pub(crate) fn sleep_until(self, then: Time) {
        std::thread::sleep(real(then.since(self.now())));
    }
}

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
