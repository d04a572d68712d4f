//! Logs of rates, and their conversion to traces and back.
//!
//! A rate log is a text with two columns, the time in seconds and the rate in Mbit/s, separated by a comma, a
//! semicolon or white space:
//!
//! ```text
//! time_s,mbps
//! 0,12.5
//! 1,9.75
//! ```
//!
//! Each rate holds until the next line, the last one as long as the one before it (a single line: 1 s).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use trimtab_units::{Duration, Rate, Time};

use crate::spread::Spread;
use crate::trace::{Trace, TraceError};
use crate::trace_file::{TraceFileError, read_text};

/// The largest rate that is taken for one, in Mbit/s: 1 Tbit/s.
const MBPS_MAX: f64 = 1e6;
/// The largest time, in seconds: what a trace can hold.
const SECONDS_MAX: f64 = u32::MAX as f64 / 1000.0;

/// Rates over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLog {
    /// When each rate begins; ascending, at least one.
    samples: Vec<(Time, Rate)>,
}

/// Why a text is not a rate log. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateLogError {
    /// There is not one line with numbers.
    #[error("the log is empty; it needs lines with a time in seconds and a rate in Mbit/s")]
    Empty,
    /// A line has something else than two numbers.
    #[error("line {line} is {text:?}, not a time in seconds and a rate in Mbit/s")]
    NotASample {
        /// The line.
        line: usize,
        /// What it says, shortened when it is long.
        text: String,
    },
    /// A rate is negative, not finite, or above 1 Tbit/s.
    #[error("the rate on line {line} is not between 0 and 1000000 Mbit/s; is it in bit/s?")]
    Rate {
        /// The line.
        line: usize,
    },
    /// A time is negative, not finite, or above 49 days.
    #[error("the time on line {line} is not between 0 and 49 days; is it in milliseconds?")]
    Time {
        /// The line.
        line: usize,
    },
    /// A time is not after the one before it.
    #[error("the time on line {line} is not after the one before it; sort the lines, one per time")]
    Unsorted {
        /// The line.
        line: usize,
    },
}

/// Why a rate log could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RateLogFileError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] TraceFileError),
    /// It is not a rate log.
    #[error("{}: {error}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: RateLogError,
    },
}

impl RateLog {
    /// Reads the text of a rate log. A first line of words, lines that start with `#`, empty lines and
    /// further columns are passed over. Times count from the first.
    ///
    /// # Errors
    /// [`RateLogError`] at the first line that is wrong.
    pub fn parse(text: &[u8]) -> Result<Self, RateLogError> {
        let mut samples: Vec<(Time, Rate)> = Vec::new();
        let mut first_seconds = None;
        let mut is_header_possible = true;
        for (index, bytes) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = index + 1;
            let text = String::from_utf8_lossy(bytes);
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let may_be_header = std::mem::take(&mut is_header_possible);
            let separators = |c: char| c == ',' || c == ';' || c.is_whitespace();
            let mut columns = text.split(separators).filter(|column| !column.is_empty());
            let mut number = || columns.next()?.parse::<f64>().ok();
            let (Some(seconds), Some(mbps)) = (number(), number()) else {
                if may_be_header && !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                    continue;
                }
                let text = text.chars().take(40).collect();
                return Err(RateLogError::NotASample { line, text });
            };
            let since_first = seconds - *first_seconds.get_or_insert(seconds);
            if !(seconds >= 0.0 && since_first <= SECONDS_MAX) {
                return Err(RateLogError::Time { line });
            }
            if !(0.0..=MBPS_MAX).contains(&mbps) {
                return Err(RateLogError::Rate { line });
            }
            let at = Time::from_secs_f64(since_first);
            if since_first < 0.0 || samples.last().is_some_and(|&(previous, _)| at <= previous) {
                return Err(RateLogError::Unsorted { line });
            }
            samples.push((at, Rate::from_mbps(mbps)));
        }
        if samples.is_empty() { Err(RateLogError::Empty) } else { Ok(Self { samples }) }
    }

    /// Reads a rate log from a file, plain or compressed with gzip.
    ///
    /// # Errors
    /// [`RateLogFileError`] when the file cannot be read or is not a rate log.
    pub fn load(path: &Path) -> Result<Self, RateLogFileError> {
        let text =
            read_text(path).map_err(|problem| TraceFileError { path: path.to_owned(), problem })?;
        Self::parse(&text).map_err(|error| RateLogFileError::Log { path: path.to_owned(), error })
    }

    /// The rates of a trace in bins, at 1500 bytes per opportunity. A last part that fills no whole bin is
    /// left out, unless there is nothing else. `bin` is taken in whole milliseconds, at least one.
    pub fn of_trace(trace: &Trace, bin: Duration) -> Self {
        let bin = Duration::from_millis(bin.as_millis().max(1));
        let rates = trace.rates(bin).into_iter();
        Self { samples: (0..).map(|k| Time::ZERO + bin * k).zip(rates).collect() }
    }

    /// When each rate begins, from zero, ascending.
    pub fn samples(&self) -> &[(Time, Rate)] {
        &self.samples
    }

    /// The trace that carries these rates, spread evenly: opportunity k comes at the first whole millisecond
    /// at which k times 1500 bytes have accumulated, with what is left carried from rate to rate. If the
    /// last millisecond would be empty it gets one opportunity, so that the trace repeats after the log's
    /// length. At most 40 million opportunities.
    ///
    /// # Errors
    /// [`TraceError::NoLength`] when the log is shorter than a millisecond.
    pub fn to_trace(&self) -> Result<Trace, TraceError> {
        let mut spread = Spread::default();
        let mut span = Duration::from_secs(1);
        for (index, &(at, rate)) in self.samples.iter().enumerate() {
            if let Some(&(next, _)) = self.samples.get(index + 1) {
                span = next.since(at);
            }
            spread.add(span, rate);
        }
        spread.finish()
    }

    /// Writes the two columns with a header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "time_s,mbps")?;
        for (at, rate) in &self.samples {
            // Divided and not multiplied, so that the shortest text of the number comes out.
            let (seconds, mbps) = (at.as_nanos() as f64 / 1e9, rate.bits_per_sec() / 1e6);
            writeln!(out, "{seconds},{mbps}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str) -> RateLog {
        RateLog::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn rates_are_spread_evenly_and_remainders_carried() {
        // 8 Mbit/s is an opportunity every 1.5 ms; 3 ms of it, then 4 Mbit/s: one every 3 ms.
        let trace = log("0 8\n0.004 4\n").to_trace().unwrap();
        // 1.5, 3 ms; at 4 ms two thirds of an opportunity are owed, so the next is 1 ms later, then 8 ms.
        assert_eq!(trace.opportunities(), [2, 3, 5, 8]);
        // 1 Mbit/s for 0.1 s: every 12 ms, and one at the end for the length.
        let trace = log("100,1\n100.05,1").to_trace().unwrap();
        assert_eq!(trace.opportunities(), [12, 24, 36, 48, 60, 72, 84, 96, 100]);
        let idle = log("0,0\n5,0").to_trace().unwrap();
        assert_eq!(idle.opportunities(), [10_000]);
    }

    #[test]
    fn there_and_back() {
        let text = "time_s,mbps\n0,12\n0.5,48\n1,3.6\n1.5,0\n2,24\n";
        let first = log(text);
        let trace = first.to_trace().unwrap();
        let back = RateLog::of_trace(&trace, Duration::from_millis(500));
        assert_eq!(back, first);
        let mut written = Vec::new();
        back.write_csv(&mut written).unwrap();
        assert_eq!(str::from_utf8(&written).unwrap(), text);
    }

    #[test]
    fn what_is_no_log_says_why() {
        let error = |text: &str| RateLog::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error("time,rate\n"), RateLogError::Empty);
        assert!(matches!(error("1 2\nx 3"), RateLogError::NotASample { line: 2, .. }));
        assert!(matches!(error("time rate\nagain\n1 2"), RateLogError::NotASample { line: 2, .. }));
        assert!(matches!(error("7\n"), RateLogError::NotASample { line: 1, .. }));
        assert_eq!(error("0 1\n1 -2"), RateLogError::Rate { line: 2 });
        assert_eq!(error("0 1\n1 NaN"), RateLogError::Rate { line: 2 });
        assert_eq!(error("0 1\n1 12000000"), RateLogError::Rate { line: 2 });
        assert_eq!(error("0 1\n99999999 1"), RateLogError::Time { line: 2 });
        assert_eq!(error("-1 1"), RateLogError::Time { line: 1 });
        assert_eq!(error("0 1\n2 1\n2 1"), RateLogError::Unsorted { line: 3 });
        assert_eq!(error("3 1\n2 1"), RateLogError::Unsorted { line: 2 });
        assert_eq!(log("0 1\n0.0000001 1").to_trace(), Err(TraceError::NoLength));
    }
}
