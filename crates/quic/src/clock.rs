//! Time, virtual or real, in the forms that the parts of a run need.

use std::time::Instant;

use trimtab_units::{Duration, Time};

/// The times of a run. Everything counts from when the run begins, but handshakes take place
/// before; so connections live by a clock that is ahead by `lead`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What noq takes for time zero. In virtual time only differences matter.
    epoch: Instant,
    lead: Duration,
}

impl Clock {
    /// A clock on which a run begins after `lead`.
    pub(crate) fn new(lead: Duration) -> Self {
        Self { epoch: Instant::now(), lead }
    }

    /// The same clock, by which the run begins at this time of connections.
    pub(crate) fn beginning(self, now: Time) -> Self {
        Self { lead: now.since(Time::ZERO), ..self }
    }

    /// The time of connections in real time.
    pub(crate) fn now(&self) -> Time {
        self.time(Instant::now())
    }

    /// The time of connections at a time of the run.
    pub(crate) fn of_run(&self, run: Time) -> Time {
        run + self.lead
    }

    /// The time of the run; its beginning while handshakes take place.
    pub(crate) fn run(&self, now: Time) -> Time {
        Time::ZERO + now.since(Time::ZERO + self.lead)
    }

    /// As noq has it.
    pub(crate) fn instant(&self, now: Time) -> Instant {
        self.epoch + std::time::Duration::from_nanos(now.as_nanos())
    }

    /// From noq's.
    pub(crate) fn time(&self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_come_before_time_zero_of_the_run() {
        let clock = Clock::new(Duration::from_millis(300));
        let [early, late] = [100, 350].map(Time::from_millis);
        assert_eq!((clock.run(early), clock.run(late)), (Time::ZERO, Time::from_millis(50)));
        assert_eq!(clock.of_run(Time::from_millis(50)), late);
        assert_eq!(clock.time(clock.instant(late)), late);
        let later = clock.beginning(late);
        assert_eq!((later.run(late), later.instant(late)), (Time::ZERO, clock.instant(late)));
    }
}
