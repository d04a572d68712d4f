//! The log of a link: one row per packet, and on demand the form that Mahimahi's tools read. A thread of its own
//! writes it, so that the one that carries packets never waits for a disk.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use trimtab_net::{DropCause, LinkConfig};
use trimtab_units::{Bytes, Duration, Time};

use crate::error::EmuError;
use crate::mahimahi::MahimahiLog;
use crate::passage::Direction;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It came to the link, which may have dropped it at once.
    Arrived { direction: Direction, size: Bytes, at: Time, dropped: Option<DropCause> },
    /// The far end has it.
    Delivered {
        direction: Direction,
        size: Bytes,
        arrived: Time,
        /// When it left the queue.
        departed: Time,
        /// When the far end should have had it.
        due: Time,
        /// When it had it.
        written: Time,
    },
    /// The link dropped it after it had waited.
    Dropped { direction: Direction, size: Bytes, arrived: Time, at: Time, cause: DropCause },
}

/// The thread's end of the channel: collects entries and hands them over many at a time, for waking the writer
/// costs a system call.
pub(crate) struct LogSender {
    entries: Vec<Entry>,
    last: Time,
    to: Sender<Batch>,
}

/// Entries, and the time by which all that happened before is among those handed over.
struct Batch {
    entries: Vec<Entry>,
    now: Time,
}

const BATCH: usize = 2048;

/// What waits longer than this is handed over before the thread sleeps, so that a log can be watched.
const BATCH_AGE_MAX: Duration = Duration::from_millis(100);

impl LogSender {
    pub(crate) fn send(&mut self, entry: Entry) {
        self.entries.push(entry);
        if self.entries.len() >= BATCH {
            let now = match entry {
                Entry::Arrived { at, .. } | Entry::Dropped { at, .. } => at,
                Entry::Delivered { written, .. } => written,
            };
            self.flush(now);
        }
    }

    pub(crate) fn flush_before_sleep(&mut self, now: Time) {
        if !self.entries.is_empty() && now.since(self.last) > BATCH_AGE_MAX {
            self.flush(now);
        }
    }

    fn flush(&mut self, now: Time) {
        let entries = std::mem::replace(&mut self.entries, Vec::with_capacity(BATCH));
        self.last = now;
        // A writer that failed keeps its error for the end.
        let _ = self.to.send(Batch { entries, now });
    }
}

impl Drop for LogSender {
    fn drop(&mut self) {
        let now = Time::MAX;
        self.flush(now);
    }
}

/// The thread that writes.
pub(crate) struct LogWriter {
    thread: JoinHandle<Result<(), EmuError>>,
}

impl LogWriter {
    /// Makes the folder and the files. `command` is written into the heads of Mahimahi's logs.
    pub(crate) fn start(
        folder: &Path,
        down: &LinkConfig,
        up: &LinkConfig,
    ) -> Result<(LogSender, Self), EmuError> {
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let files = Files::new(folder, down, up)?;
        let (to, from) = channel();
        let thread = thread::Builder::new()
            .name("link-log".into())
            .spawn(move || files.write_all(&from))
            .map_err(EmuError::system("start a thread"))?;
        let sender = LogSender { entries: Vec::with_capacity(BATCH), last: Time::ZERO, to };
        Ok((sender, Self { thread }))
    }

    /// Waits until all is written. The sender must be gone.
    pub(crate) fn finish(self) -> Result<(), EmuError> {
        self.thread.join().unwrap_or(Err(EmuError::State("lost the thread that writes its log")))
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> EmuError {
    let path: PathBuf = path.to_owned();
    move |cause| EmuError::Log { path, cause }
}

struct Files {
    packets: BufWriter<File>,
    packets_path: PathBuf,
    mahimahi: [MahimahiLog; 2],
}

/// The columns of `packets.csv`; times are in milliseconds since the link began.
const COLUMNS: &str = "direction,fate,bytes,arrival_ms,departure_ms,delivery_ms,queueing_delay_ms,one_way_delay_ms,late_ms";

impl Files {
    fn new(folder: &Path, down: &LinkConfig, up: &LinkConfig) -> Result<Self, EmuError> {
        let packets_path = folder.join("packets.csv");
        let open = || -> io::Result<_> {
            let mut packets = BufWriter::new(File::create(&packets_path)?);
            writeln!(packets, "{COLUMNS}")?;
            Ok(packets)
        };
        let packets = open().map_err(failed(&packets_path))?;
        let [down, up] = [(Direction::Down, down), (Direction::Up, up)].map(|(direction, link)| {
            let path = folder.join(format!("{}.log", direction.name()));
            MahimahiLog::create(&path, direction, link).map_err(failed(&path))
        });
        Ok(Self { packets, packets_path, mahimahi: [down?, up?] })
    }

    /// Writes until the sender is gone. After an error it only listens, so that the sender's memory stays small.
    fn write_all(mut self, from: &Receiver<Batch>) -> Result<(), EmuError> {
        let mut result = Ok(());
        for batch in from {
            if result.is_ok() {
                result = self.write(&batch);
            }
        }
        result
    }

    fn write(&mut self, batch: &Batch) -> Result<(), EmuError> {
        let Self { packets, packets_path, mahimahi } = self;
        let mut rows = || -> io::Result<()> {
            for entry in &batch.entries {
                write_row(packets, entry)?;
            }
            packets.flush()
        };
        rows().map_err(failed(packets_path))?;
        for (log, direction) in mahimahi.iter_mut().zip(Direction::BOTH) {
            let entries = batch.entries.iter().filter(|entry| entry.direction() == direction);
            entries.for_each(|entry| log.add(entry));
            log.write_until(batch.now).map_err(failed(log.path()))?;
        }
        Ok(())
    }
}

impl Entry {
    fn direction(&self) -> Direction {
        match *self {
            Self::Arrived { direction, .. }
            | Self::Delivered { direction, .. }
            | Self::Dropped { direction, .. } => direction,
        }
    }
}

/// One row for a packet whose fate is known; nothing for one that has only arrived.
fn write_row(out: &mut impl Write, entry: &Entry) -> io::Result<()> {
    let ms = |time: Time| time.as_millis_f64();
    match *entry {
        Entry::Arrived { dropped: None, .. } => Ok(()),
        Entry::Arrived { direction, size, at, dropped: Some(cause) } => {
            let (direction, fate) = (direction.name(), fate(cause));
            writeln!(out, "{direction},{fate},{size},{:.6},,,,,", ms(at), size = size.get())
        }
        Entry::Dropped { direction, size, arrived, at, cause } => {
            let waited = at.since(arrived).as_millis_f64();
            let (direction, fate, size) = (direction.name(), fate(cause), size.get());
            writeln!(out, "{direction},{fate},{size},{:.6},,,{waited:.6},,", ms(arrived))
        }
        Entry::Delivered { direction, size, arrived, departed, due, written } => writeln!(
            out,
            "{},delivered,{},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6}",
            direction.name(),
            size.get(),
            ms(arrived),
            ms(departed),
            ms(written),
            departed.since(arrived).as_millis_f64(),
            written.since(arrived).as_millis_f64(),
            written.since(due).as_millis_f64(),
        ),
    }
}

const fn fate(cause: DropCause) -> &'static str {
    match cause {
        DropCause::RandomLoss => "random-loss",
        DropCause::Policer => "policer",
        DropCause::QueueFull => "queue-full",
        DropCause::Aqm => "aqm",
    }
}

#[cfg(test)]
mod tests;
