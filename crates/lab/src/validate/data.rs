//! The measurements: what the CSV files of a ground-truth folder say.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use thiserror::Error;
use trimtab_net::TraceFileError;
use trimtab_net::mahimahi_log::LogFileError;
use trimtab_units::Duration;

/// Why a ground-truth folder cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}; give the folder that holds bulk.csv and download.csv", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A column is missing.
    #[error("{path} has no column {column:?}; use the files as they were published", path = .path.display())]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A value is no number, or a line is too short.
    #[error("{path}, line {line}: column {column:?} holds no number; use the files as published", path = .path.display())]
    NotANumber {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column.
        column: &'static str,
    },
    /// There is nothing to compare with.
    #[error("{path} has no measurements", path = .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The measurements use an algorithm that the simulator has not.
    #[error("{path} has measurements of {cca:?}; known are bbr, cubic and reno", path = .path.display())]
    UnknownAlgorithm {
        /// The file.
        path: PathBuf,
        /// The algorithm.
        cca: String,
    },
    /// A trace that the measurements were taken on cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceFileError),
    /// A trace is nowhere in the folder of traces.
    #[error("no file {name}.trace.gz below {folder}; give the folder of the recorded traces", folder = .folder.display())]
    NoTrace {
        /// The name of the trace.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A log of a link cannot be read.
    #[error(transparent)]
    Log(#[from] LogFileError),
}

/// A table with named columns.
struct Csv {
    path: PathBuf,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One line of it.
struct Row<'a> {
    csv: &'a Csv,
    line: usize,
    fields: &'a [String],
}

impl Csv {
    /// Reads a table, decompressed when its name ends in `.gz`.
    fn load(path: PathBuf) -> Result<Self, ValidateError> {
        let read = |source| ValidateError::Read { path: path.clone(), source };
        let mut text = String::new();
        let mut file = File::open(&path).map_err(read)?;
        if path.extension().is_some_and(|extension| extension == "gz") {
            MultiGzDecoder::new(file).read_to_string(&mut text).map_err(read)?;
        } else {
            file.read_to_string(&mut text).map_err(read)?;
        }
        Self::parse(path, &text)
    }

    /// A table that is already read.
    fn parse(path: PathBuf, text: &str) -> Result<Self, ValidateError> {
        let mut lines = text.lines().map(|l| l.split(',').map(str::to_owned).collect::<Vec<_>>());
        let header = lines.next().unwrap_or_default();
        let rows: Vec<_> = lines.collect();
        if rows.is_empty() {
            return Err(ValidateError::Empty { path });
        }
        Ok(Self { path, header, rows })
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().enumerate().map(|(i, fields)| Row { csv: self, line: i + 2, fields })
    }
}

impl Row<'_> {
    fn text(&self, column: &'static str) -> Result<&str, ValidateError> {
        let index = self.csv.header.iter().position(|name| name == column);
        let index =
            index.ok_or_else(|| ValidateError::NoColumn { path: self.csv.path.clone(), column })?;
        self.fields.get(index).map(String::as_str).ok_or_else(|| self.not_a_number(column))
    }

    fn number(&self, column: &'static str) -> Result<f64, ValidateError> {
        self.text(column)?.parse().map_err(|_| self.not_a_number(column))
    }

    fn count(&self, column: &'static str) -> Result<u32, ValidateError> {
        self.text(column)?.parse().map_err(|_| self.not_a_number(column))
    }

    /// Values joined by `;`.
    fn numbers(&self, column: &'static str) -> Result<Vec<f64>, ValidateError> {
        let values = self.text(column)?.split(';').map(str::parse).collect::<Result<_, _>>();
        values.map_err(|_| self.not_a_number(column))
    }

    fn not_a_number(&self, column: &'static str) -> ValidateError {
        ValidateError::NotANumber { path: self.csv.path.clone(), line: self.line, column }
    }
}

/// Receivers that answer every second packet send an acknowledgement for 1.9 to 2.1 packets; where
/// four or eight packets arrive together and the reader wakes up late, it is one for 2.9 to 5.5.
const PAIRS_BELOW: f64 = 2.5;
/// Runs of the kernel's BBR over Trimtab's own emulator, which `emu-bench record` writes.
const EMULATED: &str = include_str!("emulated.csv");

/// What carried the packets of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emulator {
    Mahimahi,
    /// `trimtab-emu`.
    Trimtab {
        /// How late its packets were at the 99th percentile, as it reported.
        late: Duration,
        /// Whether its receiver answered every second packet of a burst, and did not wait for more.
        acks_pairs: bool,
    },
}

/// One run of bulk flows.
#[derive(Clone, Debug)]
pub(crate) struct BulkRun {
    pub(crate) emulator: Emulator,
    pub(crate) run: String,
    /// One per flow.
    pub(crate) ccas: Vec<String>,
    pub(crate) rate_mbps: u32,
    pub(crate) rtt_ms: u32,
    pub(crate) buffer_packets: u32,
    pub(crate) loss: f64,
    pub(crate) duration_s: f64,
    pub(crate) window_s: (f64, f64),
    pub(crate) flow_starts_s: Vec<f64>,
    pub(crate) goodput_mbps: f64,
    pub(crate) queue_mean_ms: f64,
    pub(crate) retransmit_pct: f64,
}

impl BulkRun {
    /// The run's name without its repeat.
    pub(crate) fn cell(&self) -> &str {
        self.run.rsplit_once('-').map_or(self.run.as_str(), |(cell, _)| cell)
    }
}

/// `bulk.csv`.
pub(crate) fn bulk_runs(folder: &Path) -> Result<Vec<BulkRun>, ValidateError> {
    runs(&Csv::load(folder.join("bulk.csv"))?, |_| Ok(Emulator::Mahimahi))
}

/// The runs over Trimtab's own emulator.
pub(crate) fn emulated_runs() -> Result<Vec<BulkRun>, ValidateError> {
    runs(&Csv::parse(PathBuf::from("emulated.csv"), EMULATED)?, |row| {
        Ok(Emulator::Trimtab {
            late: Duration::from_millis_f64(row.number("late_p99_ms")?),
            acks_pairs: row.number("packets_per_ack")? < PAIRS_BELOW,
        })
    })
}

fn runs(
    csv: &Csv,
    emulator: impl Fn(&Row<'_>) -> Result<Emulator, ValidateError>,
) -> Result<Vec<BulkRun>, ValidateError> {
    let run = |row: Row<'_>| {
        Ok(BulkRun {
            emulator: emulator(&row)?,
            run: row.text("run")?.to_owned(),
            ccas: row.text("cca")?.split('+').map(str::to_owned).collect(),
            rate_mbps: row.count("rate_mbps")?,
            rtt_ms: row.count("rtt_ms")?,
            buffer_packets: row.count("buffer_packets")?,
            loss: row.number("loss")?,
            duration_s: row.number("duration_s")?,
            window_s: (row.number("window_from_s")?, row.number("window_to_s")?),
            flow_starts_s: row.numbers("flow_starts_s")?,
            goodput_mbps: row.number("goodput_mbps")?,
            queue_mean_ms: row.number("queue_mean_ms")?,
            retransmit_pct: row.number("retransmit_pct")?,
        })
    };
    csv.rows().map(run).collect()
}

/// The state of a run of one flow at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) time_s: f64,
    /// Of what was newly acknowledged since the sample before.
    pub(crate) goodput_mbps: f64,
    /// Since the start.
    pub(crate) retransmits: u64,
    /// Since the sample before.
    pub(crate) queue_drops: u64,
}

/// The series of a bulk run of one flow; `None` when the folder has none.
pub(crate) fn series(folder: &Path, run: &BulkRun) -> Result<Option<Vec<Sample>>, ValidateError> {
    let path = folder.join("bulk-series").join(format!("{}.csv.gz", run.run));
    if !path.exists() {
        return Ok(None);
    }
    let csv = Csv::load(path)?;
    let sample = |row: Row<'_>| {
        Ok(Sample {
            time_s: row.number("time_s")?,
            goodput_mbps: row.number("goodput_mbps")?,
            retransmits: row.count("retransmits")?.into(),
            queue_drops: row.count("queue_drops")?.into(),
        })
    };
    csv.rows().map(sample).collect::<Result<_, _>>().map(Some)
}

/// One session of the download workload.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) trace: String,
    pub(crate) cca: String,
    pub(crate) buffer_packets: u32,
    /// Position in the trace when the first request was sent.
    pub(crate) trace_ms: f64,
    pub(crate) retransmit_pct: f64,
    pub(crate) queue_mean_ms: f64,
    pub(crate) duration_s: f64,
    pub(crate) requests: Vec<Request>,
}

/// One request of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) size_bytes: u32,
    pub(crate) sent_ms: f64,
    pub(crate) rct_ms: f64,
}

/// `download-sessions.csv` and `download.csv`.
pub(crate) fn sessions(folder: &Path) -> Result<Vec<Session>, ValidateError> {
    let csv = Csv::load(folder.join("download-sessions.csv"))?;
    let key = |row: &Row<'_>| -> Result<[String; 4], ValidateError> {
        let part = |column| row.text(column).map(str::to_owned);
        Ok([part("trace")?, part("cca")?, part("buffer_packets")?, part("repeat")?])
    };
    let mut sessions = Vec::new();
    for row in csv.rows() {
        let session = Session {
            trace: row.text("trace")?.to_owned(),
            cca: row.text("cca")?.to_owned(),
            buffer_packets: row.count("buffer_packets")?,
            trace_ms: row.number("trace_ms_at_first_request")?,
            retransmit_pct: row.number("retransmit_pct")?,
            queue_mean_ms: row.number("queue_mean_ms")?,
            duration_s: row.number("duration_s")?,
            requests: Vec::new(),
        };
        sessions.push((key(&row)?, session));
    }
    let csv = Csv::load(folder.join("download.csv"))?;
    for row in csv.rows() {
        let key = key(&row)?;
        if let Some((_, session)) = sessions.iter_mut().find(|(k, _)| *k == key) {
            session.requests.push(Request {
                size_bytes: row.count("size_bytes")?,
                sent_ms: row.number("t_send_ms")?,
                rct_ms: row.number("rct_ms")?,
            });
        }
    }
    Ok(sessions.into_iter().map(|(_, session)| session).collect())
}

#[cfg(test)]
mod tests;
