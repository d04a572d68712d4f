//! The operators that several of the types share. All of them saturate.

/// Sums and differences.
macro_rules! sums {
    ($Type:ident) => {
        impl core::ops::Add for $Type {
            type Output = $Type;
            #[inline]
            fn add(self, other: $Type) -> $Type {
                $Type(self.0.saturating_add(other.0))
            }
        }
        impl core::ops::Sub for $Type {
            type Output = $Type;
            #[inline]
            fn sub(self, other: $Type) -> $Type {
                $Type(self.0.saturating_sub(other.0))
            }
        }
        impl core::iter::Sum for $Type {
            #[inline]
            fn sum<I: Iterator<Item = $Type>>(iter: I) -> $Type {
                iter.fold($Type::ZERO, core::ops::Add::add)
            }
        }
    };
}
pub(crate) use sums;

/// Sums in place, and multiples by a whole number.
macro_rules! multiples {
    ($Type:ident) => {
        impl core::ops::AddAssign for $Type {
            #[inline]
            fn add_assign(&mut self, other: $Type) {
                *self = *self + other;
            }
        }
        impl core::ops::SubAssign for $Type {
            #[inline]
            fn sub_assign(&mut self, other: $Type) {
                *self = *self - other;
            }
        }
        impl core::ops::Mul<u64> for $Type {
            type Output = $Type;
            #[inline]
            fn mul(self, factor: u64) -> $Type {
                $Type(self.0.saturating_mul(factor))
            }
        }
        impl core::ops::Div<u64> for $Type {
            type Output = $Type;
            /// Rounds down. Division by zero gives the largest value.
            #[inline]
            fn div(self, divisor: u64) -> $Type {
                self.0.checked_div(divisor).map_or($Type::MAX, $Type)
            }
        }
    };
}
pub(crate) use multiples;
