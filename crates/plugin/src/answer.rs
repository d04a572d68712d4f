//! What an algorithm from outside wants: a window, a rate, or both, checked.

use std::fmt::Display;

use trimtab_units::{Bytes, Rate};

/// No window is larger (1 TiB), and no path needs it: as for built-in algorithms.
const WINDOW_MAX: Bytes = Bytes::new(1 << 40);
/// Rates are within these, in Mbit/s: a packet in some seconds, and what no link carries.
const RATES_MBPS: (f64, f64) = (0.001, 1_000_000.0);

/// A window in bytes, at least `min`.
///
/// # Errors
/// It is negative or no finite number.
pub(crate) fn window(what: impl Display, bytes: f64, min: Bytes) -> Result<Bytes, String> {
    if bytes.is_finite() && bytes >= 0.0 {
        Ok(Bytes::from_f64(bytes).clamp(min, WINDOW_MAX))
    } else {
        Err(format!("{what} gave {bytes} as its window: give a finite number of bytes, 0 or more"))
    }
}

/// A rate in Mbit/s.
///
/// # Errors
/// It is zero, negative or no finite number.
pub(crate) fn rate(what: impl Display, mbps: f64) -> Result<Rate, String> {
    if mbps.is_finite() && mbps > 0.0 {
        Ok(Rate::from_mbps(mbps.clamp(RATES_MBPS.0, RATES_MBPS.1)))
    } else {
        Err(format!("{what} gave {mbps} Mbit/s as its rate: give a finite number above 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_number_of_bytes_within_the_limits() {
        let min = Bytes::new(3000);
        assert_eq!(window("it", 45_000.4, min), Ok(Bytes::new(45_000)));
        assert_eq!(window("it", 0.0, min), Ok(min));
        assert_eq!(window("it", 1e18, min), Ok(WINDOW_MAX));
        for wrong in [f64::NAN, -1.0, f64::INFINITY] {
            let e = window("on_ack", wrong, min).unwrap_err();
            assert!(e.starts_with("on_ack gave ") && e.ends_with("bytes, 0 or more"), "{e}");
        }
    }

    #[test]
    fn a_rate_is_above_zero() {
        assert_eq!(rate("it", 12.0), Ok(Rate::from_mbps(12.0)));
        assert_eq!(rate("it", 1e-9), Ok(Rate::from_mbps(0.001)));
        for wrong in [f64::NAN, 0.0, -3.0, f64::INFINITY] {
            assert!(rate("it", wrong).unwrap_err().ends_with("a finite number above 0"), "{wrong}");
        }
    }
}
