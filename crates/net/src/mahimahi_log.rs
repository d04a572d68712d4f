//! Logs of Mahimahi's `mm-link`, and their replay through a [`Link`].
//!
//! A log has the arrivals at the queue, the opportunities of the trace, the departures and the drops, in
//! the order in which the emulator did them:
//!
//! ```text
//! # queue: droptail [packets=20]
//! # base timestamp: 33
//! 34 # 1504         an opportunity of 1504 bytes at 34 ms
//! 60 + 64           a packet of 64 bytes arrives
//! 61 - 64 1         it leaves, 1 ms after it came
//! 216 d 1 1504      the packet that came just before is dropped
//! ```
//!
//! [`replay`] feeds the arrivals to a link and compares what becomes of each packet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab_units::{Bytes, Duration, Time};

use crate::capacity::Capacity;
use crate::config::{LinkConfig, QueueConfig};
use crate::link::{Event, Link, Packet};
use crate::trace::Trace;
use crate::trace_file::{TraceFileError, read_text};

/// What one opportunity carries in Mahimahi: 1500 bytes of IP and the [`OVERHEAD`] of its tunnel.
pub const OPPORTUNITY: Bytes = Bytes::new(1504);

/// What Mahimahi's tunnel adds to each packet. It is in the sizes of its log, too.
pub const OVERHEAD: Bytes = Bytes::new(4);

/// One line of a log. Times are those of the emulator's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A packet arrives at the queue.
    Arrival {
        /// When.
        at: Time,
        /// Its size.
        size: Bytes,
    },
    /// The trace offers to carry some bytes.
    Opportunity {
        /// When.
        at: Time,
        /// How many.
        size: Bytes,
    },
    /// The packet at the head of the queue has left.
    Departure(Departure),
    /// Packets were dropped, the last of which arrived just before.
    Drop {
        /// When.
        at: Time,
        /// How many.
        packets: u64,
        /// Their size together.
        size: Bytes,
    },
}

/// A packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When its last byte left.
    pub at: Time,
    /// Its size.
    pub size: Bytes,
    /// How long ago it had arrived.
    pub delay: Duration,
}

/// A log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The time of the emulator's clock at which its trace began.
    pub base: Time,
    /// The queue, as the header names it.
    pub queue: QueueConfig,
    /// The lines, in their order.
    pub records: Vec<Record>,
}

/// Why a text is not a log of `mm-link` that can be replayed. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A line that is none of the four kinds.
    #[error("line {line} is {text:?}, no record of an mm-link log")]
    NotARecord {
        /// The line.
        line: usize,
        /// What it says, shortened when it is long.
        text: String,
    },
    /// A queue that the replay does not know.
    #[error(
        "line {line} names the queue {text:?}; only infinite and droptail queues can be replayed"
    )]
    UnknownQueue {
        /// The line.
        line: usize,
        /// What it says.
        text: String,
    },
    /// The header lacks a line.
    #[error("the header has no line \"# {0}: ...\"; use the log as mm-link wrote it")]
    NoHeader(&'static str),
    /// Times go back.
    #[error("the time on line {line} is before that of the line before it; use the log as written")]
    Unsorted {
        /// The line.
        line: usize,
    },
}

/// Why a log could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFileError {
    /// The file could not be read.
    #[error(transparent)]
    File(#[from] TraceFileError),
    /// It is not a log.
    #[error("{}: {error}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: LogError,
    },
}

impl Log {
    /// Reads the text of a log.
    ///
    /// # Errors
    /// [`LogError`] at the first line that is wrong.
    pub fn parse(text: &[u8]) -> Result<Self, LogError> {
        let (mut base, mut queue) = (None, None);
        let mut records = Vec::with_capacity(text.len() / 12);
        let mut previous = 0;
        for (index, bytes) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = index + 1;
            let fail = || LogError::NotARecord {
                line,
                text: String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned(),
            };
            let text = str::from_utf8(bytes).map_err(|_| fail())?.trim();
            if let Some(header) = text.strip_prefix('#') {
                let Some((key, value)) = header.split_once(':') else { continue };
                match key.trim() {
                    "base timestamp" => {
                        base = Some(value.trim().parse().map_err(|_| fail())?);
                    }
                    "queue" => queue = Some(parse_queue(value.trim(), line)?),
                    _ => {}
                }
            } else if !text.is_empty() {
                let (time, record) = parse_record(text).ok_or_else(fail)?;
                if time < previous {
                    return Err(LogError::Unsorted { line });
                }
                previous = time;
                records.push(record);
            }
        }
        let base = Time::from_millis(base.ok_or(LogError::NoHeader("base timestamp"))?);
        let queue = queue.ok_or(LogError::NoHeader("queue"))?;
        Ok(Self { base, queue, records })
    }

    /// Reads a log from a file, plain or compressed with gzip.
    ///
    /// # Errors
    /// [`LogFileError`] when the file cannot be read or is not a log.
    pub fn load(path: &Path) -> Result<Self, LogFileError> {
        let text =
            read_text(path).map_err(|problem| TraceFileError { path: path.to_owned(), problem })?;
        Self::parse(&text).map_err(|error| LogFileError::Log { path: path.to_owned(), error })
    }

    /// The link that wrote this log, if it played `trace`.
    pub fn link(&self, trace: Arc<Trace>) -> LinkConfig {
        let offset = Duration::ZERO;
        LinkConfig::new(Capacity::Trace { trace, offset, opportunity: OPPORTUNITY })
            .queue(self.queue)
    }
}

/// `infinite`, or `droptail [packets=20]`, with `bytes=` as well or instead.
fn parse_queue(text: &str, line: usize) -> Result<QueueConfig, LogError> {
    let fail = || LogError::UnknownQueue { line, text: text.to_owned() };
    let (kind, limits) = text.split_once('[').unwrap_or((text, ""));
    match kind.trim() {
        "infinite" => return Ok(QueueConfig::UNLIMITED),
        "droptail" => {}
        _ => return Err(fail()),
    }
    let (mut bytes, mut packets) = (None, None);
    for limit in limits.trim_end_matches(']').split(',').map(str::trim).filter(|l| !l.is_empty()) {
        match limit.split_once('=').ok_or_else(fail)? {
            ("bytes", value) => bytes = Some(Bytes::new(value.parse().map_err(|_| fail())?)),
            ("packets", value) => packets = Some(value.parse().map_err(|_| fail())?),
            _ => return Err(fail()),
        }
    }
    Ok(QueueConfig::DropTail { bytes, packets })
}

/// A record with its time in ms.
fn parse_record(line: &str) -> Option<(u64, Record)> {
    let mut fields = line.split_ascii_whitespace();
    let time_ms = fields.next()?.parse().ok()?;
    let at = Time::from_millis(time_ms);
    let kind = fields.next()?;
    let mut number = || fields.next()?.parse::<u64>().ok();
    let record = match kind {
        "+" => Record::Arrival { at, size: Bytes::new(number()?) },
        "#" => Record::Opportunity { at, size: Bytes::new(number()?) },
        "-" => {
            let (size, delay) = (Bytes::new(number()?), Duration::from_millis(number()?));
            Record::Departure(Departure { at, size, delay })
        }
        "d" => Record::Drop { at, packets: number()?, size: Bytes::new(number()?) },
        _ => return None,
    };
    fields.next().is_none().then_some((time_ms, record))
}

/// How a replay compares with its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The arrivals that were fed to the link.
    pub arrivals: usize,
    /// The departures in the log, each compared in time, size and delay.
    pub departures: usize,
    /// The drops in the log, each compared in packet.
    pub drops: usize,
    /// Where log and link differ, in order of time within each kind. Empty when they agree.
    pub mismatches: Vec<Mismatch>,
}

/// A difference between a log and its replay. Times are those of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The departure with this number (from 0) is another one, or is missing on one side.
    Departure {
        /// The number of the departure.
        number: usize,
        /// In the log.
        logged: Option<Departure>,
        /// Of the link.
        replayed: Option<Departure>,
    },
    /// A packet was dropped on one side alone.
    Drop {
        /// The number of its arrival, from 0.
        arrival: usize,
        /// When it arrived.
        at: Time,
        /// Whether the log has the drop.
        is_logged: bool,
    },
    /// The bytes that the link can carry in a millisecond.
    Opportunities {
        /// The millisecond.
        at: Time,
        /// In the log.
        logged: Bytes,
        /// Of the link.
        replayed: Bytes,
    },
}

/// Feeds the arrivals of a log to a link and compares its drops, departures and capacity with the log's.
///
/// `config` is usually [`Log::link`]; its time zero is the log's base. Delay, loss and the like belong to
/// other programs of Mahimahi, so `config` should have none.
pub fn replay(log: &Log, config: &LinkConfig) -> Replay {
    let mut link: Link<()> = Link::new(config, 0);
    let link_time = |at: Time| Time::ZERO + at.since(log.base);
    let log_time = |at: Time| log.base + at.since(Time::ZERO);
    let mut result = Replay::default();

    let mut logged = Vec::new();
    let mut replayed = Vec::new();
    let mut drain = |link: &mut Link<()>, now: Time| {
        while let Some(event) = link.poll(now) {
            if let Event::Delivered(delivery) = event {
                let delay = delivery.departed_at.since(delivery.enqueued_at);
                let size = delivery.packet.size;
                replayed.push(Departure { at: log_time(delivery.departed_at), size, delay });
            }
        }
    };
    // The last arrival, and whether the link dropped it; decided when the log has said what it did.
    let mut undecided: Option<(Time, bool)> = None;
    for record in &log.records {
        match *record {
            Record::Arrival { at, size } => {
                result.compare_drop(undecided, false);
                drain(&mut link, link_time(at));
                let is_dropped = link.send(link_time(at), Packet { size, payload: () }).is_err();
                undecided = Some((at, is_dropped));
                result.arrivals += 1;
            }
            Record::Departure(departure) => logged.push(departure),
            Record::Drop { .. } => {
                result.compare_drop(undecided.take(), true);
                result.drops += 1;
            }
            Record::Opportunity { .. } => {}
        }
    }
    result.compare_drop(undecided, false);
    if let Some(last) = log.records.last() {
        drain(&mut link, link_time(last.at()));
    }
    result.departures = logged.len();
    for number in 0..logged.len().max(replayed.len()) {
        let (logged, replayed) = (logged.get(number).copied(), replayed.get(number).copied());
        if logged != replayed {
            result.mismatches.push(Mismatch::Departure { number, logged, replayed });
        }
    }
    result.compare_opportunities(log, &config.capacity);
    result
}

impl Record {
    /// The time of the line.
    pub fn at(&self) -> Time {
        match *self {
            Self::Arrival { at, .. } | Self::Opportunity { at, .. } | Self::Drop { at, .. } => at,
            Self::Departure(departure) => departure.at,
        }
    }
}

impl Replay {
    fn compare_drop(&mut self, arrival: Option<(Time, bool)>, is_logged: bool) {
        if let Some((at, is_dropped)) = arrival
            && is_dropped != is_logged
        {
            let arrival = self.arrivals - 1;
            self.mismatches.push(Mismatch::Drop { arrival, at, is_logged });
        }
    }

    /// Compares the opportunities of each millisecond after the base. (Those at the base itself come
    /// before any packet can.)
    fn compare_opportunities(&mut self, log: &Log, capacity: &Capacity) {
        let Some(last) = log.records.last() else { return };
        let mut logged = log.records.iter().filter_map(|record| match *record {
            Record::Opportunity { at, size } if at > log.base => Some((at, size)),
            _ => None,
        });
        let mut next = logged.next();
        for ms in 1..=last.at().since(log.base).as_millis() {
            let at = log.base + Duration::from_millis(ms);
            let mut in_log = Bytes::ZERO;
            while let Some((_, size)) = next.filter(|&(time, _)| time == at) {
                in_log += size;
                next = logged.next();
            }
            let replayed = capacity.bytes_between(Time::from_millis(ms - 1), Time::from_millis(ms));
            if in_log != replayed {
                self.mismatches.push(Mismatch::Opportunities { at, logged: in_log, replayed });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
# mahimahi mm-link (downlink) [trace]
# queue: droptail [packets=1]
# base timestamp: 100
102 # 1504
103 + 1504
104 # 1504
104 - 1504 1
105 + 700
105 + 1200
105 + 80
105 d 1 80
";

    fn log(text: &str) -> Log {
        Log::parse(text.as_bytes()).unwrap()
    }

    fn config(log: &Log) -> LinkConfig {
        log.link(Arc::new(Trace::from_opportunities(vec![2, 4, 8]).unwrap()))
    }

    #[test]
    fn a_log_parses() {
        let log = log(LOG);
        assert_eq!(log.base, Time::from_millis(100));
        assert_eq!(log.queue, QueueConfig::drop_tail_packets(1));
        assert_eq!(log.records.len(), 8);
        let (at, size) = (Time::from_millis(104), Bytes::new(1504));
        let departure = Departure { at, size, delay: Duration::from_millis(1) };
        assert_eq!(log.records[3], Record::Departure(departure));
        let at = Time::from_millis(105);
        assert_eq!(log.records[7], Record::Drop { at, packets: 1, size: Bytes::new(80) });
    }

    #[test]
    fn every_kind_of_difference_is_found() {
        // The second arrival at 105 finds the queue full, which this log does not say.
        let log = log(LOG);
        let at = Time::from_millis(105);
        let result = replay(&log, &config(&log));
        assert_eq!((result.arrivals, result.departures, result.drops), (4, 1, 1));
        assert_eq!(result.mismatches, [Mismatch::Drop { arrival: 2, at, is_logged: false }]);

        let full = self::log(&LOG.replace("packets=1", "packets=2"));
        assert_eq!(replay(&full, &config(&full)).mismatches, []);
        let roomy = self::log(&LOG.replace("packets=1", "bytes=2000"));
        assert_eq!(
            replay(&roomy, &config(&roomy)).mismatches,
            [Mismatch::Drop { arrival: 3, at, is_logged: true }]
        );

        let late = self::log(&full_text().replace("104 - 1504 1", "104 - 1504 2"));
        let mismatches = replay(&late, &config(&late)).mismatches;
        assert!(
            matches!(mismatches[..], [Mismatch::Departure { number: 0, .. }]),
            "{mismatches:?}"
        );

        let missing = self::log(&full_text().replace("102 # 1504\n", ""));
        let at = Time::from_millis(102);
        let (logged, replayed) = (Bytes::ZERO, OPPORTUNITY);
        assert_eq!(
            replay(&missing, &config(&missing)).mismatches,
            [Mismatch::Opportunities { at, logged, replayed }]
        );
    }

    fn full_text() -> String {
        LOG.replace("packets=1", "packets=2")
    }

    #[test]
    fn what_is_no_log_says_why() {
        let error = |text: &str| Log::parse(text.as_bytes()).unwrap_err();
        assert_eq!(error("# base timestamp: 3\n"), LogError::NoHeader("queue"));
        assert_eq!(error("# queue: infinite\n"), LogError::NoHeader("base timestamp"));
        let codel = "# base timestamp: 3\n# queue: codel [packets=10]\n";
        assert!(matches!(error(codel), LogError::UnknownQueue { line: 2, .. }));
        for line in ["3 + ", "3 - 15", "3 * 4", "x + 4", "3 + 4 5", "3 d 1"] {
            let text = format!("# base timestamp: 3\n# queue: infinite\n{line}\n");
            assert!(matches!(error(&text), LogError::NotARecord { line: 3, .. }), "{line}");
        }
        assert_eq!(error(&format!("{LOG}104 + 3\n")), LogError::Unsorted { line: 12 });
    }
}
