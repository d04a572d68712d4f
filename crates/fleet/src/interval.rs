//! Intervals: how long one configuration is in force (paper 002 §3.1, Δt).

use core::fmt;

use serde::{Deserialize, Serialize};
use trimtab_units::{Duration, Time};

/// An interval of a service: its number since 1970-01-01 00:00 UTC, for the service's length of intervals.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Interval(pub u64);

impl Interval {
    /// The interval that `at` lies in, for intervals of `length`; `at` is the time since 1970-01-01 00:00 UTC.
    ///
    /// # Panics
    /// The length is zero; a [`crate::Service`] has none such.
    pub const fn at(at: Time, length: Duration) -> Self {
        Self(at.as_nanos() / length.as_nanos())
    }

    /// When it begins, since 1970-01-01 00:00 UTC.
    pub const fn start(self, length: Duration) -> Time {
        Time::from_nanos(self.0.saturating_mul(length.as_nanos()))
    }

    /// When it ends and the next one begins.
    pub const fn end(self, length: Duration) -> Time {
        self.next().start(length)
    }

    /// The next one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn begins_where_the_one_before_it_ends() {
        let length = Duration::from_secs(1200);
        let at = Time::from_secs(1_795_320_599);
        let interval = Interval::at(at, length);
        assert_eq!(interval, Interval(1_496_100));
        assert_eq!(interval.start(length), Time::from_secs(1_795_320_000));
        assert_eq!(interval.end(length), interval.next().start(length));
        assert_eq!(Interval::at(interval.end(length), length), interval.next());
    }

    proptest! {
        #[test]
        fn a_time_lies_in_its_interval_and_in_no_other(
            at in any::<u64>(), length in 1_000_000_000..86_400_000_000_000u64,
        ) {
            let (at, length) = (Time::from_nanos(at), Duration::from_nanos(length));
            let interval = Interval::at(at, length);
            prop_assert!(interval.start(length) <= at);
            // Near the end of time an interval has no end.
            let end = interval.end(length);
            prop_assert!(at < end || end.as_nanos() == u64::MAX, "{at:?} {end:?}");
        }
    }

    #[test]
    fn the_last_interval_has_no_next() {
        let last = Interval(u64::MAX);
        assert_eq!(last.next(), last);
        assert_eq!(last.start(Duration::from_secs(1)), Time::MAX);
    }
}
