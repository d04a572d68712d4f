//! Traces of a link's capacity, in Mahimahi's packet-delivery format.
//!
//! One whole number per line: a time in milliseconds from the start of the trace, not smaller than the one
//! before it. Each line is one opportunity to deliver a packet. After the last line the trace starts
//! again, shifted by its last time, which is therefore the [period](Trace::period).

use trimtab_units::{Bytes, Duration, Rate};

/// The bytes that one opportunity delivers unless a link says otherwise: a full Ethernet payload.
pub(crate) const OPPORTUNITY: Bytes = Bytes::new(1500);

/// The delivery opportunities of a link, in whole milliseconds. Immutable: share it with an `Arc`.
///
/// It holds at least one opportunity, in ascending order, and the last one is at 1 ms or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    opportunities: Vec<u32>,
}

/// Why a text or a list of times is not a trace. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// There is not one time.
    #[error("the trace is empty; it needs at least one line with a time in whole milliseconds")]
    Empty,
    /// A line is something else than a whole number.
    #[error(
        "line {line} is {text:?}, not a time in whole milliseconds; a log of rates must first be \
         converted (`trimtab trace convert`)"
    )]
    NotANumber {
        /// The line.
        line: usize,
        /// What it says, shortened when it is long.
        text: String,
    },
    /// A time is negative.
    #[error(
        "line {line} is {text}, but times count from the start of the trace: subtract the first"
    )]
    Negative {
        /// The line.
        line: usize,
        /// What it says, shortened when it is long.
        text: String,
    },
    /// A time is above 4 294 967 295 ms (49 days).
    #[error(
        "line {line} is {text}, which is more than 49 days in milliseconds: subtract the first time if \
         these are clock times, and divide if they are micro- or nanoseconds"
    )]
    TooLate {
        /// The line.
        line: usize,
        /// What it says, shortened when it is long.
        text: String,
    },
    /// A time is smaller than the one before it.
    #[error("line {line} goes back from {previous} ms to {time} ms; sort the times (`sort -n`)")]
    Unsorted {
        /// The line of the smaller time.
        line: usize,
        /// The time before it, in ms.
        previous: u32,
        /// The time, in ms.
        time: u32,
    },
    /// The last time is zero, so the trace would repeat without time passing.
    #[error("the last time is 0 ms, so the trace has no length; it must end at 1 ms or later")]
    NoLength,
}

impl Trace {
    /// Reads Mahimahi's text format. Empty lines, spaces around a number and `\r\n` are accepted.
    ///
    /// # Errors
    /// [`TraceError`] at the first line that is wrong.
    pub fn parse(text: &[u8]) -> Result<Self, TraceError> {
        let mut opportunities = Vec::with_capacity(text.len() / 6);
        let mut previous = 0;
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let time = parse_time(line, index + 1)?;
            if time < previous {
                return Err(TraceError::Unsorted { line: index + 1, previous, time });
            }
            previous = time;
            opportunities.push(time);
        }
        Self::from_opportunities(opportunities)
    }

    /// From times in milliseconds, in ascending order. Repeated times are several opportunities.
    ///
    /// # Errors
    /// [`TraceError`] when there is none, when they are not in order (`line` is then the position,
    /// counted from 1), or when the last is zero.
    pub fn from_opportunities(opportunities: Vec<u32>) -> Result<Self, TraceError> {
        if let Some(at) = opportunities.windows(2).position(|pair| pair[1] < pair[0]) {
            let (previous, time) = (opportunities[at], opportunities[at + 1]);
            return Err(TraceError::Unsorted { line: at + 2, previous, time });
        }
        match opportunities.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoLength),
            Some(_) => Ok(Self { opportunities }),
        }
    }

    /// A link with so many packets at the start of every millisecond. `None` unless the rate is a
    /// multiple of 12 Mbit/s, a packet each millisecond.
    pub fn constant_mbps(rate: u32) -> Option<Self> {
        let packets = (rate / 12) as usize;
        let is_whole = packets > 0 && rate.is_multiple_of(12);
        is_whole.then(|| Self { opportunities: vec![1; packets] })
    }

    /// The times in milliseconds, ascending, at least one.
    pub fn opportunities(&self) -> &[u32] {
        &self.opportunities
    }

    /// The last time: after it the trace starts again. At least 1 ms.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms())
    }

    /// The mean rate over one period, at 1500 bytes per opportunity.
    pub fn mean_rate(&self) -> Rate {
        OPPORTUNITY * self.opportunities.len() as u64 / self.period()
    }

    /// [`period`](Self::period) in milliseconds.
    pub(crate) fn period_ms(&self) -> u64 {
        self.opportunities.last().map_or(1, |&last| u64::from(last))
    }

    /// How many opportunities lie at positions from 0 to `position_ms`, both included, when the trace
    /// repeats for ever. Takes O(log n).
    pub(crate) fn count_until(&self, position_ms: u64) -> u64 {
        let (rounds, rest) = (position_ms / self.period_ms(), position_ms % self.period_ms());
        let in_round = self.opportunities.partition_point(|&time| u64::from(time) <= rest);
        rounds.saturating_mul(self.opportunities.len() as u64).saturating_add(in_round as u64)
    }
}

/// One line, without the white space around it.
fn parse_time(text: &[u8], line: usize) -> Result<u32, TraceError> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        return digits
            .iter()
            .try_fold(0u32, |value, digit| {
                value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))
            })
            .ok_or_else(|| TraceError::TooLate { line, text: excerpt(text) });
    }
    let text_is_negative = text
        .strip_prefix(b"-")
        .is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit));
    let text = excerpt(text);
    Err(if text_is_negative {
        TraceError::Negative { line, text }
    } else {
        TraceError::NotANumber { line, text }
    })
}

/// The start of a line, for a message: it may be a megabyte of binary data.
fn excerpt(text: &[u8]) -> String {
    const BYTES_MAX: usize = 40;
    let start = String::from_utf8_lossy(&text[..text.len().min(BYTES_MAX)]);
    if text.len() > BYTES_MAX { format!("{start}...") } else { start.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_loop_at_the_last() {
        let trace = Trace::parse(b"1\n2\n2\n 5 \r\n\n").unwrap();
        assert_eq!(trace.opportunities(), [1, 2, 2, 5]);
        assert_eq!(trace.period(), Duration::from_millis(5));
        // 4 x 1500 bytes in 5 ms.
        assert_eq!(trace.mean_rate(), Rate::from_bytes_per_sec(1_200_000));
        let counts: Vec<u64> = (0..=11).map(|ms| trace.count_until(ms)).collect();
        assert_eq!(counts, [0, 1, 3, 3, 3, 4, 5, 7, 7, 7, 8, 9]);
    }

    #[test]
    fn a_first_time_of_zero_repeats_with_the_last() {
        let trace = Trace::parse(b"0\n3").unwrap();
        let counts: Vec<u64> = (0..=6).map(|ms| trace.count_until(ms)).collect();
        assert_eq!(counts, [1, 1, 1, 3, 3, 3, 5]);
    }

    #[test]
    fn what_is_no_trace_says_why() {
        let error = |text: &str| Trace::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error(""), TraceError::Empty);
        assert_eq!(error("\n \n"), TraceError::Empty);
        assert_eq!(error("0\n0\n"), TraceError::NoLength);
        assert_eq!(error("1\n7\n3"), TraceError::Unsorted { line: 3, previous: 7, time: 3 });
        let text = "-4".to_owned();
        assert_eq!(error("1\n-4"), TraceError::Negative { line: 2, text });
        let text = "1.5".to_owned();
        assert_eq!(error("1\n\n1.5\n"), TraceError::NotANumber { line: 3, text });
        let text = "4294967296".to_owned();
        assert_eq!(error("4294967296"), TraceError::TooLate { line: 1, text });
        assert_eq!(Trace::parse(b"4294967295").unwrap().opportunities(), [u32::MAX]);
        let message = error(&"x".repeat(1000)).to_string();
        assert!(message.len() < 200 && message.contains("line 1"), "{message}");
        assert_eq!(
            Trace::from_opportunities(vec![2, 1]),
            Err(TraceError::Unsorted { line: 2, previous: 2, time: 1 })
        );
    }

    #[test]
    fn a_constant_link_has_whole_packets_each_millisecond() {
        let rate = |mbps| Trace::constant_mbps(mbps).map(|trace| trace.mean_rate());
        assert_eq!(rate(48), Some(Rate::from_mbps(48.0)));
        assert_eq!((rate(0), rate(6), rate(30)), (None, None, None));
    }
}
