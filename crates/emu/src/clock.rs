//! Real time, and how threads keep up with it.

use std::num::NonZeroU64;
use std::time::Instant;

use trimtab_units::Time;

use crate::sys;

/// Real time as links see it: nanoseconds since the start.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock whose [`Time::ZERO`] is now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time that has passed since the start.
    pub fn now(self) -> Time {
        Time::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sleeps until `then`; not at all when that is over.
    pub fn sleep_until(self, then: Time) {
        let left = then.since(self.now());
        std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
    }
}

/// Puts the calling thread before most others, behind the link's own: an application that waits for
/// a processor looks like one behind a slower link. Where the system refuses, it stays as it is.
pub fn hurry() {
    // In Linux priorities are per thread, and no process stands for the calling one.
    let _ = rustix::process::setpriority_process(None, -15);
}

/// Puts the calling thread before every ordinary one, behind the link's own, for a thread that does
/// what a kernel does for TCP: `SCHED_FIFO`, and timers without slack. It must sleep most of the
/// time. Where the system refuses, it is as with [`hurry`].
pub fn act_as_kernel() {
    // Ordinary threads are woken up to 50 us late. A kernel that refuses leaves it so.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    if sys::schedule_first(1).is_err() {
        hurry();
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::Duration;

    use super::*;

    #[test]
    fn it_never_wakes_early_and_what_is_over_is_not_slept_for() {
        let clock = Clock::start();
        for _ in 0..5 {
            let then = clock.now() + Duration::from_millis(3);
            clock.sleep_until(then);
            assert!(clock.now() >= then);
        }
        let before = Instant::now();
        for _ in 0..1000 {
            clock.sleep_until(Time::ZERO);
        }
        assert!(before.elapsed().as_secs() < 5);
    }
}
