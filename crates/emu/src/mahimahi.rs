//! The log of one direction in the form of Mahimahi's `mm-link`, which its tools and
//! [`trimtab_net::mahimahi_log`] read.
//!
//! Such a log is in the order of the link's own time: in each millisecond first the opportunities, then the
//! departures that they allow, then arrivals and drops. We learn of a departure only when the packet has crossed
//! the propagation delay, so lines wait here until nothing earlier can come.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use trimtab_net::mahimahi_log::{Departure, Record};
use trimtab_net::{Capacity, DropCause, JitterConfig, LinkConfig, QueueConfig};
use trimtab_units::{Bytes, Duration, Time};

use crate::log::Entry;
use crate::passage::Direction;

pub(crate) struct MahimahiLog {
    path: PathBuf,
    out: BufWriter<File>,
    capacity: Capacity,
    opportunity: Bytes,
    overhead: Bytes,
    /// A departure that is this old has been reported.
    lag: Duration,
    /// By millisecond, and there in the order of the link: departures, then the others.
    waiting: BTreeMap<u64, Millisecond>,
    /// All before this millisecond is written.
    written_ms: u64,
}

#[derive(Default)]
struct Millisecond {
    departures: String,
    arrivals: String,
}

impl MahimahiLog {
    pub(crate) fn create(path: &Path, direction: Direction, link: &LinkConfig) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        writeln!(out, "# trimtab emu ({}link)", direction.name())?;
        writeln!(out, "# queue: {}", queue_name(&link.queue))?;
        writeln!(out, "# init timestamp: {}", since_1970.as_millis())?;
        writeln!(out, "# base timestamp: 0")?;
        let opportunity = match link.capacity {
            Capacity::Trace { opportunity, .. } => opportunity,
            _ => Bytes::ZERO,
        };
        Ok(Self {
            path: path.to_owned(),
            out,
            capacity: link.capacity.clone(),
            opportunity,
            overhead: link.overhead,
            lag: lag(link),
            waiting: BTreeMap::new(),
            written_ms: 0,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn add(&mut self, entry: &Entry) {
        let overhead = self.overhead;
        let mut note = |at: Time, record: Record| {
            let ms = self.waiting.entry(at.as_millis()).or_default();
            match record {
                Record::Departure(_) => push(&mut ms.departures, &record),
                _ => push(&mut ms.arrivals, &record),
            }
        };
        match *entry {
            // These never came to mm-link's queue: losing is another program's work there.
            Entry::Arrived {
                dropped: Some(DropCause::RandomLoss | DropCause::Policer), ..
            } => {}
            Entry::Arrived { size, at, dropped, .. } => {
                let size = size + overhead;
                note(at, Record::Arrival { at, size });
                if dropped.is_some() {
                    note(at, Record::Drop { at, packets: 1, size });
                }
            }
            Entry::Delivered { size, arrived, departed, .. } => {
                // Both are whole milliseconds on mm-link's clock.
                let delay = Duration::from_millis(departed.as_millis() - arrived.as_millis());
                let size = size + overhead;
                note(departed, Record::Departure(Departure { at: departed, size, delay }));
            }
            Entry::Dropped { size, at, .. } => {
                note(at, Record::Drop { at, packets: 1, size: size + overhead });
            }
        }
    }

    /// Writes all that is older than anything that may still come, when all that was reported by `now` has been
    /// added; all that there is when `now` is the end of time.
    pub(crate) fn write_until(&mut self, now: Time) -> io::Result<()> {
        let end_ms = if now == Time::MAX {
            self.waiting.keys().next_back().map_or(self.written_ms, |last| last + 1)
        } else {
            now.since(Time::ZERO + self.lag).as_millis()
        };
        while self.written_ms < end_ms {
            let ms = self.written_ms;
            if !self.opportunity.is_zero() && ms > 0 {
                let [from, to] = [ms - 1, ms].map(Time::from_millis);
                let bytes = self.capacity.bytes_between(from, to);
                for _ in 0..bytes.get() / self.opportunity.get() {
                    writeln!(self.out, "{ms} # {}", self.opportunity.get())?;
                }
            }
            if let Some(lines) = self.waiting.remove(&ms) {
                self.out.write_all(lines.departures.as_bytes())?;
                self.out.write_all(lines.arrivals.as_bytes())?;
            }
            self.written_ms += 1;
        }
        self.out.flush()
    }
}

fn push(lines: &mut String, record: &Record) {
    let ms = record.at().as_millis();
    // Writing to a string does not fail.
    let _ = match *record {
        Record::Arrival { size, .. } => writeln!(lines, "{ms} + {}", size.get()),
        Record::Opportunity { size, .. } => writeln!(lines, "{ms} # {}", size.get()),
        Record::Departure(Departure { size, delay, .. }) => {
            writeln!(lines, "{ms} - {} {}", size.get(), delay.as_millis())
        }
        Record::Drop { packets, size, .. } => writeln!(lines, "{ms} d {packets} {}", size.get()),
    };
}

/// How long after its departure a packet can be reported: the longest way to the far end, and some seconds in
/// which this program may not have been scheduled.
fn lag(link: &LinkConfig) -> Duration {
    let jitter = match link.jitter {
        JitterConfig::None => Duration::ZERO,
        JitterConfig::Uniform { max } | JitterConfig::Bell { max } => max,
        // A queue of a thousand packets that leave together.
        JitterConfig::Burst { max, each } => max + each * 1000,
        JitterConfig::Polled { late, .. } => Duration::from_millis(1) + late * 2,
    };
    let held_back = link.reorder.map_or(Duration::ZERO, |reorder| reorder.extra);
    link.delay.longest() + jitter + held_back + Duration::from_secs(5)
}

/// As `mm-link` writes it.
fn queue_name(queue: &QueueConfig) -> String {
    let (name, bytes, packets) = match *queue {
        QueueConfig::DropTail { bytes: None, packets: None } => return "infinite".to_owned(),
        QueueConfig::DropTail { bytes, packets } => ("droptail", bytes, packets),
        QueueConfig::CoDel { bytes, packets, .. } => ("codel", bytes, packets),
    };
    let bytes = bytes.map(|bytes| format!("bytes={}", bytes.get()));
    let packets = packets.map(|packets| format!("packets={packets}"));
    let limits: Vec<String> = bytes.into_iter().chain(packets).collect();
    format!("{name} [{}]", limits.join(", "))
}

#[cfg(test)]
mod tests;
