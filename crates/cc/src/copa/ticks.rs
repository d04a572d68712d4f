//! When flows of one kind drain the queue: at the same time.
//!
//! A flow that holds its window down to see who fills the queue (`mode.rs`) empties no more than its
//! own part of it. Flows of its kind that fill the rest would each take the others for strangers;
//! with the window of CUBIC, each then fills the queue for all. So they drain together, at moments
//! that all of them know by the clock. Where the clocks of two senders differ, they drain apart, and
//! take each other for CUBIC.

use trimtab_units::{Duration, Time};

/// The shortest time between two ticks; the next ones are twice as long, and so on, so that the
/// ticks of a flow with a long round trip are those of all others, too.
const SHORTEST: Duration = Duration::from_millis(250);

/// The common clock of the senders, between two looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    before: Time,
    now: Time,
}

impl Ticks {
    /// Between these times of the connection, whose zero is at `clock`.
    pub(super) fn between(before: Time, now: Time, clock: Duration) -> Self {
        Self { before: before + clock, now: now + clock }
    }

    /// Whether a multiple of this period came: of 250 ms, or that doubled until it is `least`.
    pub(super) fn come(self, least: Duration) -> bool {
        let mut period = SHORTEST;
        while period < least {
            period = period * 2;
        }
        self.before.as_nanos() / period.as_nanos() != self.now.as_nanos() / period.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn come(before: u64, now: u64, clock: u64, least: u64) -> bool {
        let at = Time::from_millis;
        Ticks::between(at(before), at(now), ms(clock)).come(ms(least))
    }

    #[test]
    fn ticks_are_multiples_of_the_period_that_is_long_enough() {
        assert!(come(249, 250, 0, 1) && !come(250, 499, 0, 1));
        assert!(!come(249, 250, 0, 251) && come(499, 500, 0, 251));
        assert!(!come(15_999, 16_000, 0, 16_001) && come(31_999, 32_000, 0, 16_001));
        assert!(come(0, 10_000, 0, 16), "many at once");
        assert!(!come(7, 7, 0, 1));
    }

    /// Two connections that began at different times have the same ticks.
    #[test]
    fn ticks_are_those_of_the_common_clock() {
        assert!(come(149, 150, 100, 1) && !come(249, 250, 100, 1));
    }

    /// A flow's long period ends with one of every shorter period.
    #[test]
    fn long_periods_end_with_short_ones() {
        for now in (0..64_000).step_by(50) {
            for least in [250, 2000, 16_000] {
                assert!(!come(now, now + 50, 0, least) || come(now, now + 50, 0, least / 2));
            }
        }
    }
}
