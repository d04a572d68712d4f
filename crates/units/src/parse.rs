//! Values with their units from text: `40ms`, `150KB`, `12 Mbit/s`.

use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Duration, Rate};

/// Why a text is not a value with a unit. Its message lists the units that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    what: &'static str,
    units: &'static str,
    problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    NoNumber,
    NoUnit,
    UnknownUnit,
    OutOfRange,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, units, problem } = self;
        match problem {
            Problem::NoNumber => {
                write!(f, "a {what} starts with a number that is not negative, then a unit")?;
            }
            Problem::NoUnit => write!(f, "a {what} needs a unit")?,
            Problem::UnknownUnit => write!(f, "this is no unit of {what}")?,
            Problem::OutOfRange => write!(f, "this {what} is too large")?,
        }
        write!(f, " (units: {units})")
    }
}
impl core::error::Error for ParseUnitError {}

/// Splits `text` into number and unit and scales the number to the base unit.
fn scaled(
    text: &str,
    what: &'static str,
    units: &'static str,
    table: &[(&str, f64)],
) -> Result<f64, ParseUnitError> {
    let fail = |problem| ParseUnitError { what, units, problem };
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| fail(Problem::NoNumber))?;
    let unit = unit.trim();
    if unit.is_empty() {
        // Zero is zero in every unit.
        return if number == 0.0 { Ok(0.0) } else { Err(fail(Problem::NoUnit)) };
    }
    let scale = table
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name))
        .map(|&(_, scale)| scale)
        .ok_or(fail(Problem::UnknownUnit))?;
    let value = number * scale;
    if value < u64::MAX as f64 { Ok(value) } else { Err(fail(Problem::OutOfRange)) }
}

impl FromStr for Duration {
    type Err = ParseUnitError;
    /// Parses `250us`, `40ms`, `1.5 s`, `2min`, `1h`, `90d`. Case does not matter.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let table = [
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("sec", 1e9),
            ("min", 60e9),
            ("h", 3600e9),
            ("d", 86_400e9),
        ];
        let ns = scaled(text, "duration", "ns, us, ms, s, min, h, d", &table)?;
        Ok(Duration::from_nanos((ns + 0.5) as u64))
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;
    /// Parses `1500B`, `150 KB`, `64KiB`, `2MB`. Case does not matter; 1 KB is 1000 bytes.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let table = [
            ("b", 1.0),
            ("byte", 1.0),
            ("bytes", 1.0),
            ("kb", 1e3),
            ("kib", 1024.0),
            ("mb", 1e6),
            ("mib", 1024.0 * 1024.0),
            ("gb", 1e9),
            ("gib", 1024.0 * 1024.0 * 1024.0),
        ];
        let bytes = scaled(text, "size", "B, KB, MB, GB, KiB, MiB, GiB", &table)?;
        Ok(Bytes::from_f64(bytes))
    }
}

impl FromStr for Rate {
    type Err = ParseUnitError;
    /// Parses `800kbit/s`, `12 Mbit/s`, `12Mbps`, `1Gbps`. Case does not matter; always bits.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let table = [
            ("bit/s", 1.0),
            ("bps", 1.0),
            ("kbit/s", 1e3),
            ("kbps", 1e3),
            ("mbit/s", 1e6),
            ("mbps", 1e6),
            ("gbit/s", 1e9),
            ("gbps", 1e9),
        ];
        let units = "bit/s, kbit/s, Mbit/s, Gbit/s, or bps, kbps, Mbps, Gbps";
        let bits = scaled(text, "rate", units, &table)?;
        Ok(Rate::from_bytes_per_sec_f64(bits / 8.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale() {
        assert_eq!("40ms".parse(), Ok(Duration::from_millis(40)));
        assert_eq!(" 1.5 s ".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("250µs".parse(), Ok(Duration::from_micros(250)));
        assert_eq!("90d".parse(), Ok(Duration::from_secs(90 * 86_400)));
        assert_eq!("150KB".parse(), Ok(Bytes::new(150_000)));
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65_536)));
        assert_eq!("12 Mbit/s".parse(), Ok(Rate::from_bytes_per_sec(1_500_000)));
        assert_eq!("1gbps".parse(), Ok(Rate::from_mbps(1000.0)));
        assert_eq!("0".parse(), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_value_says_so() {
        let problem = |text: &str| text.parse::<Duration>().unwrap_err().problem;
        assert_eq!(problem("12"), Problem::NoUnit);
        assert_eq!(problem("ms"), Problem::NoNumber);
        assert_eq!(problem("-3ms"), Problem::NoNumber);
        assert_eq!(problem("3 parsecs"), Problem::UnknownUnit);
        assert_eq!(problem("99999999999h"), Problem::OutOfRange);
        assert_eq!(problem(""), Problem::NoNumber);
    }

    #[test]
    fn text_of_a_value_parses_back() {
        extern crate alloc;
        use alloc::string::ToString;
        for ns in [0, 1, 999, 1_500, 20_000_000, 1_500_000_000, 7_000_000_000] {
            let d = Duration::from_nanos(ns);
            assert_eq!(d.to_string().parse(), Ok(d));
        }
        for b in [0, 1, 1500, 30_000, 150_000, 2_000_000, 123_456_789] {
            let b = Bytes::new(b);
            assert_eq!(b.to_string().parse(), Ok(b));
        }
        for r in [1, 125, 12_500, 1_500_000, 1_250_000_000] {
            let r = Rate::from_bytes_per_sec(r);
            assert_eq!(r.to_string().parse(), Ok(r));
        }
    }

    #[test]
    fn nothing_wraps() {
        assert_eq!(Bytes::new(1) - Bytes::new(2), Bytes::ZERO);
        assert_eq!(Duration::MAX + Duration::from_nanos(1), Duration::MAX);
        assert_eq!(Rate::MAX * Duration::MAX, Bytes::MAX);
        assert_eq!(Bytes::MAX / Rate::from_bytes_per_sec(1), Duration::MAX);
        assert_eq!(Bytes::new(5) / Rate::ZERO, Duration::MAX);
        assert_eq!(Bytes::new(5) / Duration::ZERO, Rate::MAX);
    }
}
