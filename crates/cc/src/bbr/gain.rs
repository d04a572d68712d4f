//! Gains: the factors that BBR multiplies rates and windows by.

use trimtab_units::{Bytes, Rate};

/// Fraction bits. Linux's gains have 8, so each of its values is exact here; a decimal gain of the
/// drafts (2.77) is off by less than one part in 100 000.
const SHIFT: u32 = 16;

/// A factor from 0 to 65 535 in steps of 2^-16: integer arithmetic, the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gain(u32);

impl Gain {
    /// One: no change.
    pub(super) const UNIT: Self = Self(1 << SHIFT);

    /// `num` / `den`, rounded down.
    pub(super) const fn ratio(num: u32, den: u32) -> Self {
        Self((((num as u64) << SHIFT) / den as u64) as u32)
    }

    /// The nearest gain; NaN and negatives give zero.
    pub(super) fn from_f64(gain: f64) -> Self {
        Self((gain * f64::from(Self::UNIT.0) + 0.5) as u32)
    }

    /// Rounded down; saturates. In two parts, so that no product overflows 64 bits.
    const fn times(self, value: u64) -> u64 {
        let gain = self.0 as u64;
        let low = ((value & ((1 << SHIFT) - 1)) * gain) >> SHIFT;
        (value >> SHIFT).saturating_mul(gain).saturating_add(low)
    }

    /// The rate times this gain, rounded down.
    pub(super) const fn of_rate(self, rate: Rate) -> Rate {
        Rate::from_bytes_per_sec(self.times(rate.bytes_per_sec()))
    }

    /// The size times this gain, rounded down.
    pub(super) const fn of_bytes(self, bytes: Bytes) -> Bytes {
        Bytes::new(self.times(bytes.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplies_exactly_and_saturates() {
        let g = Gain::ratio(5, 4);
        assert_eq!(g.of_bytes(Bytes::new(1000)), Bytes::new(1250));
        assert_eq!(g.of_bytes(Bytes::new(7)), Bytes::new(8), "8.75 rounds down");
        assert_eq!(g.of_bytes(Bytes::MAX), Bytes::MAX);
        // 2^46 + 1: a product of 64 bits would overflow with the gain at 16 fraction bits.
        assert_eq!(
            Gain::from_f64(3.0).of_bytes(Bytes::new((1 << 46) + 1)).get(),
            3 * ((1 << 46) + 1)
        );
        assert_eq!(Gain::UNIT.of_rate(Rate::from_bytes_per_sec(123_457)).bytes_per_sec(), 123_457);
        assert_eq!(Gain::from_f64(1.25), g);
        assert_eq!(Gain::from_f64(f64::NAN).of_bytes(Bytes::new(9)), Bytes::ZERO);
    }
}
