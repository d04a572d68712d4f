//! Points in time and spans of it, in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

use crate::arithmetic::{multiples, sums};

/// A point in time: nanoseconds since the start of the run (or any other fixed epoch).
///
/// Range: 584 years. It never comes from a system clock inside a library; the caller gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A span of time in whole nanoseconds, never negative. Range: 584 years; arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

macro_rules! from_units {
    ($name:ident) => {
        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);
            /// The largest value; stands for "never" and "for ever".
            pub const MAX: Self = Self(u64::MAX);

            /// From whole nanoseconds.
            #[inline]
            pub const fn from_nanos(ns: u64) -> Self {
                Self(ns)
            }
            /// From whole microseconds.
            #[inline]
            pub const fn from_micros(us: u64) -> Self {
                Self(us.saturating_mul(1_000))
            }
            /// From whole milliseconds.
            #[inline]
            pub const fn from_millis(ms: u64) -> Self {
                Self(ms.saturating_mul(1_000_000))
            }
            /// From whole seconds.
            #[inline]
            pub const fn from_secs(s: u64) -> Self {
                Self(s.saturating_mul(1_000_000_000))
            }
            /// From seconds, rounded to the nearest nanosecond. NaN and negative values give zero.
            #[inline]
            pub fn from_secs_f64(s: f64) -> Self {
                // `as` saturates, and maps NaN to zero.
                Self((s * 1e9 + 0.5) as u64)
            }
            /// From milliseconds, rounded to the nearest nanosecond. NaN and negative give zero.
            #[inline]
            pub fn from_millis_f64(ms: f64) -> Self {
                Self((ms * 1e6 + 0.5) as u64)
            }
            /// Whole nanoseconds.
            #[inline]
            pub const fn as_nanos(self) -> u64 {
                self.0
            }
            /// Whole microseconds, rounded down.
            #[inline]
            pub const fn as_micros(self) -> u64 {
                self.0 / 1_000
            }
            /// Whole milliseconds, rounded down.
            #[inline]
            pub const fn as_millis(self) -> u64 {
                self.0 / 1_000_000
            }
            /// Seconds.
            #[inline]
            pub fn as_secs_f64(self) -> f64 {
                self.0 as f64 * 1e-9
            }
            /// Milliseconds.
            #[inline]
            pub fn as_millis_f64(self) -> f64 {
                self.0 as f64 * 1e-6
            }
        }
    };
}
from_units!(Time);
from_units!(Duration);

impl Time {
    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// The product with a factor, rounded to the nearest nanosecond. NaN and negatives give zero.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
    /// How many times `other` fits in `self`, as a real number. Infinite (or NaN for zero by zero)
    /// when `other` is zero.
    #[inline]
    pub fn ratio(self, other: Duration) -> f64 {
        self.0 as f64 / other.0 as f64
    }
    /// Whether this is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The absolute difference.
    #[inline]
    pub const fn abs_diff(self, other: Duration) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

sums!(Duration);
multiples!(Duration);

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub<Duration> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, d: Duration) -> Time {
        Time(self.0.saturating_sub(d.0))
    }
}
impl Sub for Time {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0s"),
            ns if ns % 1_000_000_000 == 0 => write!(f, "{}s", ns / 1_000_000_000),
            ns if ns % 1_000_000 == 0 => write!(f, "{}ms", ns / 1_000_000),
            ns if ns >= 1_000_000_000 => write!(f, "{}s", ns as f64 * 1e-9),
            ns if ns >= 1_000_000 => write!(f, "{}ms", ns as f64 * 1e-6),
            ns if ns >= 1_000 => write!(f, "{}us", ns as f64 * 1e-3),
            ns => write!(f, "{ns}ns"),
        }
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}
