//! Sizes in bytes.

use core::fmt;
use core::ops::Div;

use crate::arithmetic::{multiples, sums};
use crate::{Duration, Rate};

/// A number of bytes, never negative. Arithmetic saturates. 1 KB is 1000 bytes, 1 KiB is 1024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest value; stands for "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// From a count of bytes.
    #[inline]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// From a real count of bytes, rounded to the nearest. NaN and negative values give zero.
    #[inline]
    pub fn from_f64(bytes: f64) -> Self {
        Self((bytes + 0.5) as u64)
    }
    /// The count.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The count as a real number.
    #[inline]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// The count in bits.
    #[inline]
    pub const fn bits(self) -> f64 {
        self.0 as f64 * 8.0
    }
    /// Whether this is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The product with a factor, rounded to the nearest byte. NaN and negatives give zero.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self::from_f64(self.0 as f64 * factor)
    }
    /// `self` / `other` as a real number. Infinite (or NaN for zero by zero) when `other` is zero.
    #[inline]
    pub fn ratio(self, other: Bytes) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

sums!(Bytes);
multiples!(Bytes);

impl Div<Rate> for Bytes {
    type Output = Duration;
    /// The time to send these bytes, rounded down to the nanosecond; for ever at a zero rate.
    #[inline]
    fn div(self, rate: Rate) -> Duration {
        let rate = rate.bytes_per_sec();
        if rate == 0 {
            return if self.0 == 0 { Duration::ZERO } else { Duration::MAX };
        }
        match self.0.checked_mul(1_000_000_000) {
            Some(n) => Duration::from_nanos(n / rate),
            None => {
                let ns = u128::from(self.0) * 1_000_000_000 / u128::from(rate);
                Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
            }
        }
    }
}
impl Div<Duration> for Bytes {
    type Output = Rate;
    /// The rate that sends these bytes in that time; the largest rate when the time is zero.
    #[inline]
    fn div(self, d: Duration) -> Rate {
        let ns = d.as_nanos();
        if ns == 0 {
            return if self.0 == 0 { Rate::ZERO } else { Rate::MAX };
        }
        match self.0.checked_mul(1_000_000_000) {
            Some(n) => Rate::from_bytes_per_sec(n / ns),
            None => {
                let r = u128::from(self.0) * 1_000_000_000 / u128::from(ns);
                Rate::from_bytes_per_sec(u64::try_from(r).unwrap_or(u64::MAX))
            }
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b if b >= 1_000_000 && b % 10_000 == 0 => write!(f, "{}MB", b as f64 / 1e6),
            b if b >= 1_000 && b % 10 == 0 => write!(f, "{}KB", b as f64 / 1e3),
            b => write!(f, "{b}B"),
        }
    }
}
