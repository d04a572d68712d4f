//! A logarithm in whole numbers, the same on every machine and in the kernel.

#[cfg(test)]
/// Steps of a doubling: the logarithm is in units of 1/256.
const STEPS_PER_DOUBLING: i16 = 256;
/// Bits after the point of that unit.
const FRACTION_BITS: u32 = 8;
/// Where the mantissa's point is while it is squared: the square of a number below 2 fits 64 bits.
const POINT: u32 = 31;

/// `256 * log2(1 + x)`, rounded down; 0 for 0, at most 16384.
///
/// The whole part is the place of the highest bit. Each further bit comes from squaring the mantissa: where
/// the square is 2 or more the bit is one. A mantissa is cut to 31 bits, so near a step the result may be one
/// too small; it never falls as `x` grows by that much, and is never different elsewhere.
pub fn log2(x: u64) -> i16 {
    let x = x.saturating_add(1);
    let whole = x.ilog2();
    let mut mantissa = if whole >= POINT { x >> (whole - POINT) } else { x << (POINT - whole) };
    let mut result = whole as i16;
    for _ in 0..FRACTION_BITS {
        mantissa = (mantissa * mantissa) >> POINT;
        let bit = mantissa >> (POINT + 1);
        mantissa >>= bit;
        result = result * 2 + bit as i16;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        for k in 0..64u32 {
            assert_eq!(log2((1u64 << k) - 1), k as i16 * STEPS_PER_DOUBLING, "2^{k}");
        }
        assert_eq!(log2(u64::MAX), 64 * STEPS_PER_DOUBLING - 1);
    }

    #[test]
    fn within_a_step_of_the_true_one_and_never_falling() {
        let mut last = 0;
        for i in 0..200_000u64 {
            let x = i * i * i / 7;
            let got = log2(x);
            assert!(got >= last, "falls at {x}");
            last = got;
            let exact = 256.0 * libm::log2(x as f64 + 1.0);
            let off = exact - f64::from(got);
            assert!(off > -1e-6 && off < 1.01, "{x}: {got} for {exact}");
        }
    }
}
