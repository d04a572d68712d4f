//! The part of a file that a request wants (RFC 9110 §14).

use std::ops::Range;

use http::HeaderMap;
use http::header::{IF_RANGE, RANGE};

/// What is to be sent of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// These bytes.
    Bytes(Range<u64>),
    /// The request wants what is not there.
    Beyond,
}

/// What a request wants of a file of this length.
pub(crate) fn wanted(headers: &HeaderMap, length: u64) -> Part {
    // Files have no validators here, so that no condition can be met (§13.1.5).
    if headers.contains_key(IF_RANGE) {
        return Part::Whole;
    }
    let text = headers.get(RANGE).and_then(|value| value.to_str().ok());
    text.and_then(|text| parse(text, length)).unwrap_or(Part::Whole)
}

/// The part of one range; `None` where a server is to ignore the header (§14.2): another unit,
/// several ranges, or none that can be read.
fn parse(text: &str, length: u64) -> Option<Part> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    if first.is_empty() {
        return match number(last)? {
            0 => Some(Part::Beyond),
            _ if length == 0 => None,
            count => Some(Part::Bytes(length.saturating_sub(count)..length)),
        };
    }
    let first = number(first)?;
    let end = if last.is_empty() { length } else { number(last)?.saturating_add(1) };
    match first {
        _ if !last.is_empty() && end <= first => None,
        _ if first >= length => Some(Part::Beyond),
        _ => Some(Part::Bytes(first..end.min(length))),
    }
}

/// Digits alone, without a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        let bytes = |range| Some(Part::Bytes(range));
        for (text, length, part) in [
            ("bytes=0-0", 10, bytes(0..1)),
            ("bytes=2-5", 10, bytes(2..6)),
            ("BYTES = 2-5", 10, bytes(2..6)),
            ("bytes=2-", 10, bytes(2..10)),
            ("bytes=-3", 10, bytes(7..10)),
            ("bytes=-30", 10, bytes(0..10)),
            ("bytes=5-99", 10, bytes(5..10)),
            ("bytes=5-18446744073709551615", 10, bytes(5..10)),
            ("bytes=10-", 10, Some(Part::Beyond)),
            ("bytes=0-", 0, Some(Part::Beyond)),
            ("bytes=-0", 10, Some(Part::Beyond)),
            ("bytes=-5", 0, None),
            ("bytes=5-2", 10, None),
            ("bytes=0-1,3-4", 10, None),
            ("bytes=+1-2", 10, None),
            ("bytes=-", 10, None),
            ("bytes=99999999999999999999-", 10, None),
            ("lines=1-2", 10, None),
            ("2-5", 10, None),
        ] {
            assert_eq!(parse(text, length), part, "{text} of {length}");
        }
    }

    #[test]
    fn a_condition_is_never_met() {
        let mut headers = HeaderMap::new();
        assert_eq!(wanted(&headers, 10), Part::Whole);
        headers.insert(RANGE, "bytes=1-".parse().unwrap());
        assert_eq!(wanted(&headers, 10), Part::Bytes(1..10));
        headers.insert(IF_RANGE, "\"a\"".parse().unwrap());
        assert_eq!(wanted(&headers, 10), Part::Whole);
    }
}
