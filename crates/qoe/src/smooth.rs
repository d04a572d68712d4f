//! A maximum without a kink.

/// `max(0, x)`, rounded off over about `width` on either side of zero: `w·ln(1 + e^(x/w))`.
///
/// It lies above `max(0, x)` by at most `w·ln 2`, at zero. A width of zero (or less) is the plain
/// maximum.
pub(crate) fn softplus(x: f64, width: f64) -> f64 {
    if width <= 0.0 {
        return x.max(0.0);
    }
    x.max(0.0) + width * libm::log1p(libm::exp(-x.abs() / width))
}

/// The slope of [`softplus`] in `x`, 0 to 1. With no width, the kink counts as part of the rise.
pub(crate) fn softplus_slope(x: f64, width: f64) -> f64 {
    if width <= 0.0 {
        return f64::from(x >= 0.0);
    }
    1.0 / (1.0 + libm::exp(-x / width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meets_the_plain_maximum_away_from_zero() {
        assert_eq!((softplus(3.0, 0.0), softplus(-3.0, 0.0)), (3.0, 0.0));
        assert_eq!((softplus_slope(0.0, 0.0), softplus_slope(-1e-9, 0.0)), (1.0, 0.0));
        assert!((softplus(20.0, 0.5) - 20.0).abs() < 1e-12);
        assert!(softplus(-20.0, 0.5) < 1e-12);
        assert!((softplus(0.0, 0.5) - 0.5 * core::f64::consts::LN_2).abs() < 1e-15);
        assert_eq!((softplus(1e6, 0.5), softplus(-1e6, 0.5)), (1e6, 0.0));
    }

    #[test]
    fn slope_is_the_derivative() {
        for x in [-3.0, -0.4, 0.0, 0.1, 2.0] {
            let h = 1e-6;
            let numeric = (softplus(x + h, 0.5) - softplus(x - h, 0.5)) / (2.0 * h);
            assert!((numeric - softplus_slope(x, 0.5)).abs() < 1e-8, "at {x}");
        }
    }
}
