//! Rates in bytes per second.

use core::fmt;
use core::ops::Mul;

use crate::arithmetic::sums;
use crate::{Bytes, Duration};

/// A rate in whole bytes per second, never negative. Arithmetic saturates.
///
/// One byte per second is fine enough for links from 10 kbit/s up (an error below 0.1%), and whole
/// numbers make the same sum on every machine. Text is in bits per second, as links are sold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// The largest value; stands for "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// From bytes per second.
    #[inline]
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Self(bytes)
    }
    /// From bytes per second, rounded to the nearest. NaN and negative values give zero.
    #[inline]
    pub fn from_bytes_per_sec_f64(bytes: f64) -> Self {
        Self((bytes + 0.5) as u64)
    }
    /// From bits per second, rounded down to a whole byte.
    #[inline]
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits / 8)
    }
    /// From Mbit/s (10^6 bits per second), rounded to the nearest byte per second.
    #[inline]
    pub fn from_mbps(mbps: f64) -> Self {
        Self::from_bytes_per_sec_f64(mbps * 125_000.0)
    }
    /// Bytes per second.
    #[inline]
    pub const fn bytes_per_sec(self) -> u64 {
        self.0
    }
    /// Bits per second.
    #[inline]
    pub const fn bits_per_sec(self) -> f64 {
        self.0 as f64 * 8.0
    }
    /// Mbit/s (10^6 bits per second).
    #[inline]
    pub const fn mbps(self) -> f64 {
        self.0 as f64 * 8e-6
    }
    /// Whether this is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The product with a factor, rounded to the nearest. NaN and negatives give zero.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self::from_bytes_per_sec_f64(self.0 as f64 * factor)
    }
    /// `self` / `other` as a real number. Infinite (or NaN for zero by zero) when `other` is zero.
    #[inline]
    pub fn ratio(self, other: Rate) -> f64 {
        self.0 as f64 / other.0 as f64
    }
}

sums!(Rate);

impl Mul<Duration> for Rate {
    type Output = Bytes;
    /// The bytes sent in that time, rounded down.
    #[inline]
    fn mul(self, d: Duration) -> Bytes {
        match self.0.checked_mul(d.as_nanos()) {
            Some(n) => Bytes::new(n / 1_000_000_000),
            None => {
                let bytes = u128::from(self.0) * u128::from(d.as_nanos()) / 1_000_000_000;
                Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 as f64 * 8.0 {
            b if b >= 1e9 => write!(f, "{}Gbit/s", b / 1e9),
            b if b >= 1e6 => write!(f, "{}Mbit/s", b / 1e6),
            b if b >= 1e3 => write!(f, "{}kbit/s", b / 1e3),
            b => write!(f, "{b}bit/s"),
        }
    }
}
