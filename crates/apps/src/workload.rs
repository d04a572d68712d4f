//! Workloads: requests with their times, from a file or drawn from a distribution.
//!
//! The file format is that of the Mortise artifact: one request per line, the gap in milliseconds
//! since the request before it (for the first: since the start), white space, and the size of the
//! response in bytes. We also skip empty lines and lines that begin with `#`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;
use trimtab_units::{Bytes, Duration};

use crate::CdnDistribution;
use crate::draw::Draw;

/// The longest gap that a file may hold: a day. More is a file in other units.
const GAP_MS_MAX: u64 = 24 * 3600 * 1000;
/// The largest response that a file may hold: 1 TB.
const SIZE_MAX: u64 = 1_000_000_000_000;
/// The most requests of a workload.
const REQUESTS_MAX: usize = 1_000_000;

/// Seed of [`Workload::demo`]: the first whose shares of gaps and sizes all lie within 0.06 of the
/// published points, with a mean demand near the distribution's.
const DEMO_SEED: u64 = 30;
/// So many gaps are drawn until one is longer than the time since the last request.
const REDRAWS: usize = 1_000;
/// Length of [`Workload::demo`].
const DEMO_LENGTH: Duration = Duration::from_secs(60);

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadRequest {
    /// When it is to be sent, since the start of the workload.
    pub at: Duration,
    /// Size of the response, at least one byte.
    pub size: Bytes,
}

/// Requests in the order of their times; at least one. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    requests: Arc<[WorkloadRequest]>,
}

/// Why a text is not a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// It has no request.
    #[error("the workload has no request: write one per line as GAP_MS SIZE_BYTES")]
    Empty,
    /// A line is wrong.
    #[error("line {line} of the workload: {problem}")]
    Line {
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineProblem,
    },
}

/// What is wrong with a line of a workload file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineProblem {
    /// It has not two columns.
    #[error("{found} columns, but a request has two: GAP_MS SIZE_BYTES")]
    Columns {
        /// How many it has.
        found: usize,
    },
    /// The first column is no gap.
    #[error("{text:?} is no gap: write whole milliseconds from 0 to {GAP_MS_MAX}")]
    Gap {
        /// The column.
        text: String,
    },
    /// The second column is no size.
    #[error("{text:?} is no size: write whole bytes from 1 to {SIZE_MAX}")]
    Size {
        /// The column.
        text: String,
    },
    /// There are too many requests.
    #[error("more than {REQUESTS_MAX} requests: split the file")]
    TooMany,
}

impl Workload {
    /// Parses a workload file.
    ///
    /// # Errors
    /// A line is not a gap and a size, or there is no request at all.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let mut requests = Vec::new();
        let mut at = Duration::ZERO;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fail = |problem| WorkloadError::Line { line: index + 1, problem };
            let (gap, size) = parse_line(line).map_err(fail)?;
            if requests.len() == REQUESTS_MAX {
                return Err(fail(LineProblem::TooMany));
            }
            at += gap;
            requests.push(WorkloadRequest { at, size });
        }
        if requests.is_empty() {
            return Err(WorkloadError::Empty);
        }
        Ok(Self { requests: requests.into() })
    }

    /// One request at once, for a response of `size`, at least 1 B.
    pub fn single(size: Bytes) -> Self {
        let request = WorkloadRequest { at: Duration::ZERO, size: size.max(Bytes::new(1)) };
        Self { requests: [request].into() }
    }

    /// Draws requests for about `length`: all that come before it, and at least one. At most a
    /// million.
    pub fn draw(distribution: &CdnDistribution, length: Duration, seed: u64) -> Self {
        let mut gaps = Draw::new(seed, 1);
        let mut sizes = Draw::new(seed, 2);
        // The first request comes at once: a run is about requests, not about waiting for one.
        let mut requests =
            vec![WorkloadRequest { at: Duration::ZERO, size: distribution.size(&mut sizes) }];
        let mut at = Duration::ZERO;
        while requests.len() < REQUESTS_MAX {
            at += distribution.gap(&mut gaps);
            if at >= length {
                break;
            }
            requests.push(WorkloadRequest { at, size: distribution.size(&mut sizes) });
        }
        Self { requests: requests.into() }
    }

    /// Another future of the same kind: the first `kept` requests stay, and after them gaps and sizes
    /// are drawn from those of the whole workload, up to about its length. The gap after the last one
    /// that stays lasts beyond `now`, since the start, as it did.
    pub(crate) fn redrawn(&self, kept: usize, now: Duration, seed: u64) -> Self {
        let (past, future) = self.requests.split_at(kept.min(self.requests.len()));
        let (Some(last), false) = (past.last(), future.is_empty()) else { return self.clone() };
        let (mut gaps, mut sizes) = (Draw::new(seed, 1), Draw::new(seed, 2));
        let mut gap = || {
            let i = 1 + gaps.below(self.requests.len() - 1);
            self.requests[i].at - self.requests[i - 1].at
        };
        let first = (0..REDRAWS).map(|_| last.at + gap()).find(|&at| at > now);
        let mut at = first.unwrap_or(future[0].at);
        let mut requests = past.to_vec();
        while at <= self.length() && requests.len() < REQUESTS_MAX {
            requests.push(WorkloadRequest {
                at,
                size: self.requests[sizes.below(self.requests.len())].size,
            });
            at += gap();
        }
        Self { requests: requests.into() }
    }

    /// The workload that ships with the project as `workloads/demo.wk`: a minute of
    /// [`CdnDistribution::default`].
    pub fn demo() -> Self {
        Self::draw(&CdnDistribution::default(), DEMO_LENGTH, DEMO_SEED)
    }

    /// The requests in the order of their times.
    pub fn requests(&self) -> &[WorkloadRequest] {
        &self.requests
    }

    /// When the last request is due, since the start.
    pub fn length(&self) -> Duration {
        self.requests.last().map_or(Duration::ZERO, |r| r.at)
    }

    /// Sum of the responses.
    pub fn total_size(&self) -> Bytes {
        self.requests.iter().map(|r| r.size).sum()
    }
}

/// The text of `workloads/demo.wk`: [`Workload::demo`] with a line on what it is.
pub fn demo_text() -> String {
    format!(
        "# GAP_MS SIZE_BYTES: {DEMO_LENGTH} drawn with seed {DEMO_SEED} from the distribution of \
         Mortise, Appendix B, by `cargo run -p trimtab-apps --example demo_workload`.\n{}",
        Workload::demo()
    )
}

fn parse_line(line: &str) -> Result<(Duration, Bytes), LineProblem> {
    let mut columns = line.split_whitespace();
    let (Some(gap), Some(size), None) = (columns.next(), columns.next(), columns.next()) else {
        return Err(LineProblem::Columns { found: line.split_whitespace().count() });
    };
    let whole = |text: &str| text.parse::<u64>().ok();
    let gap_ms = whole(gap)
        .filter(|&ms| ms <= GAP_MS_MAX)
        .ok_or_else(|| LineProblem::Gap { text: shortened(gap) })?;
    let bytes = whole(size)
        .filter(|bytes| (1..=SIZE_MAX).contains(bytes))
        .ok_or_else(|| LineProblem::Size { text: shortened(size) })?;
    Ok((Duration::from_millis(gap_ms), Bytes::new(bytes)))
}

/// The start of a column, so that an error message stays one line even for a binary file.
fn shortened(text: &str) -> String {
    text.chars().take(24).collect()
}

impl FromStr for Workload {
    type Err = WorkloadError;
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        Self::parse(text)
    }
}

impl fmt::Display for Workload {
    /// The file's text, without comments. Times are rounded down to the millisecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before_ms = 0;
        for request in self.requests.iter() {
            let at_ms = request.at.as_millis();
            writeln!(f, "{} {}", at_ms - before_ms, request.size.get())?;
            before_ms = at_ms;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn problem(text: &str) -> (usize, LineProblem) {
        match Workload::parse(text) {
            Err(WorkloadError::Line { line, problem }) => (line, problem),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn gaps_add_up() {
        let w = Workload::parse("5\t100\n# a comment\n\n0 200\r\n  20   300  \n").unwrap();
        let seen: Vec<_> = w.requests().iter().map(|r| (r.at.as_millis(), r.size.get())).collect();
        assert_eq!(seen, [(5, 100), (5, 200), (25, 300)]);
        assert_eq!((w.length(), w.total_size()), (Duration::from_millis(25), Bytes::new(600)));
    }

    #[test]
    fn errors_name_the_line() {
        assert_eq!(Workload::parse(""), Err(WorkloadError::Empty));
        assert_eq!(Workload::parse("# only a comment\n"), Err(WorkloadError::Empty));
        assert_eq!(problem("0 1\n\n7\n"), (3, LineProblem::Columns { found: 1 }));
        assert_eq!(problem("0 1 2"), (1, LineProblem::Columns { found: 3 }));
        assert_eq!(problem("0 1\n-4 1"), (2, LineProblem::Gap { text: "-4".into() }));
        assert_eq!(problem("1.5 1"), (1, LineProblem::Gap { text: "1.5".into() }));
        assert_eq!(problem("86400001 1"), (1, LineProblem::Gap { text: "86400001".into() }));
        assert_eq!(problem("0 0"), (1, LineProblem::Size { text: "0".into() }));
        assert_eq!(problem("0 10KB"), (1, LineProblem::Size { text: "10KB".into() }));
        assert_eq!(
            Workload::parse("0 x").unwrap_err().to_string(),
            "line 1 of the workload: \"x\" is no size: write whole bytes from 1 to 1000000000000"
        );
    }

    #[test]
    fn a_drawn_workload_fills_its_length_and_repeats_with_its_seed() {
        let length = Duration::from_secs(600);
        let draw = |seed| Workload::draw(&CdnDistribution::default(), length, seed);
        let w = draw(4);
        assert_eq!(w.requests()[0].at, Duration::ZERO);
        assert!(w.length() < length && w.length() > Duration::from_secs(560));
        assert_eq!(w, draw(4));
        assert_ne!(w, draw(5));
        let one = Workload::draw(&CdnDistribution::default(), Duration::ZERO, 4);
        assert_eq!(one.requests().len(), 1);
    }

    #[test]
    fn the_shipped_workload_is_what_the_generator_gives() {
        let file = include_str!("demo.wk");
        assert_eq!(file, demo_text());
        assert_eq!(Workload::parse(file), Ok(Workload::demo()));
    }

    #[test]
    fn the_shipped_workload_is_like_the_published_distribution() {
        let demo = Workload::demo();
        let requests = demo.requests();
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let gaps: Vec<_> = requests.windows(2).map(|w| (w[1].at - w[0].at).as_millis()).collect();
        let gap =
            |f: &dyn Fn(u64) -> bool| share(gaps.iter().filter(|&&g| f(g)).count(), gaps.len());
        let size = |f: &dyn Fn(u64) -> bool| {
            share(requests.iter().filter(|r| f(r.size.get())).count(), requests.len())
        };
        let shares = [gap(&|g| g == 0), gap(&|g| g < 200), gap(&|g| g < 1000)];
        for (seen, published) in shares.into_iter().zip([0.36, 0.40, 0.80]) {
            assert!((seen - published).abs() < 0.06, "{seen} for {published}");
        }
        for (seen, published) in [(size(&|s| s < 100_000), 0.3), (size(&|s| s > 1_000_000), 0.5)] {
            assert!((seen - published).abs() < 0.06, "{seen} for {published}");
        }
        let demand = demo.total_size() / DEMO_LENGTH;
        assert!((demand.mbps() - 5.5).abs() < 0.5, "{demand}");
    }

    proptest! {
        #[test]
        fn the_text_of_a_workload_parses_back(
            lines in prop::collection::vec((0..=GAP_MS_MAX, 1..=SIZE_MAX), 1..40)
        ) {
            let text: String = lines.iter().map(|(g, s)| format!("{g} {s}\n")).collect();
            let w = Workload::parse(&text).unwrap();
            prop_assert_eq!(w.to_string(), text);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[0-9a-z#.\\-\\t \\r\\né]{0,60}") {
            let _ = Workload::parse(&text).map_err(|e| e.to_string());
        }
    }
}
