//! Results as Parquet, for Polars, pandas, DuckDB and R: `runs.parquet` (one row per run),
//! `requests.parquet` (one row per request or chunk), `series.parquet` (one row per run and time bin).
//!
//! `docs/reference/tables.md` describes every column. The three files appear together or not at all.
//! Columns carry the names of the JSON's fields; `run`
//! is the row of `runs.parquet`, from 0.

use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::report::output::{Draft, OutputError};
use crate::result::{RunRecord, SummaryRow};

/// The values of one column.
pub enum Values {
    /// Never missing.
    Text(Vec<String>),
    /// Never missing.
    Count(Vec<i64>),
    /// NaN stands for "no value" and is written as null.
    Number(Vec<f64>),
}

/// A table by columns, in order.
pub type Table = Vec<(&'static str, Values)>;

/// Writes the three files into `folder`, which is made if it is not there.
///
/// # Errors
/// The folder cannot be made or the disk is full: what was there before stays as it was.
pub fn write(folder: &Path, runs: &[RunRecord]) -> Result<(), OutputError> {
    let tables = [
        ("runs.parquet", runs_table(runs)),
        ("requests.parquet", requests_table(runs)),
        ("series.parquet", series_table(runs)),
    ];
    let existed = folder.exists();
    let written = write_tables(folder, &tables);
    if written.is_err() && !existed {
        // Only succeeds when it is empty, which it is: drafts clean up after themselves.
        let _ = std::fs::remove_dir(folder);
    }
    written
}

fn write_tables(folder: &Path, tables: &[(&str, Table)]) -> Result<(), OutputError> {
    let mut drafts = Vec::new();
    for (name, table) in tables {
        let mut draft = Draft::new(&folder.join(name))?;
        draft.write(|out| encode(table, out))?;
        drafts.push(draft);
    }
    drafts.into_iter().try_for_each(Draft::commit)
}

fn encode(table: &Table, out: &mut dyn io::Write) -> io::Result<()> {
    // The writer wants a sink that can be sent to another thread; memory is one.
    let mut bytes = Vec::new();
    encode_parquet(table, &mut bytes).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn encode_parquet(table: &Table, out: &mut Vec<u8>) -> Result<(), ParquetError> {
    let fields = table
        .iter()
        .map(|(name, values)| {
            let field = match values {
                Values::Text(_) => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                    .with_logical_type(Some(LogicalType::String))
                    .with_repetition(Repetition::REQUIRED),
                Values::Count(_) => Type::primitive_type_builder(name, Physical::INT64)
                    .with_repetition(Repetition::REQUIRED),
                Values::Number(_) => Type::primitive_type_builder(name, Physical::DOUBLE)
                    .with_repetition(Repetition::OPTIONAL),
            };
            field.build().map(Arc::new)
        })
        .collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("trimtab").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("trimtab ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, values) in table {
        let Some(mut column) = group.next_column()? else { break };
        match values {
            Values::Text(v) => {
                let v: Vec<ByteArray> = v.iter().map(|t| ByteArray::from(t.as_str())).collect();
                column.typed::<ByteArrayType>().write_batch(&v, None, None)?;
            }
            Values::Count(v) => {
                column.typed::<Int64Type>().write_batch(v, None, None)?;
            }
            Values::Number(v) => {
                let defined: Vec<i16> = v.iter().map(|x| i16::from(!x.is_nan())).collect();
                let v: Vec<f64> = v.iter().copied().filter(|x| !x.is_nan()).collect();
                column.typed::<DoubleType>().write_batch(&v, Some(&defined), None)?;
            }
        }
        column.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(())
}

fn text<'a>(values: impl Iterator<Item = &'a str>) -> Values {
    Values::Text(values.map(str::to_owned).collect())
}
fn count(values: impl Iterator<Item = u64>) -> Values {
    Values::Count(values.map(|v| i64::try_from(v).unwrap_or(i64::MAX)).collect())
}
fn number(values: impl Iterator<Item = f64>) -> Values {
    Values::Number(values.collect())
}
fn maybe(values: impl Iterator<Item = Option<f64>>) -> Values {
    Values::Number(values.map(|v| v.unwrap_or(f64::NAN)).collect())
}

/// One row per run.
pub fn runs_table(runs: &[RunRecord]) -> Table {
    let all = || runs.iter();
    let rct = |f: fn(&crate::result::RctRecord) -> f64| {
        maybe(all().map(move |r| r.rct_ms.as_ref().map(f)))
    };
    let rivals = |f: fn(&crate::result::RivalsRecord) -> f64| {
        maybe(all().map(move |r| r.rivals.as_ref().map(f)))
    };
    vec![
        ("run", count(0..runs.len() as u64)),
        ("cc", text(all().map(|r| r.cc.as_str()))),
        ("app", text(all().map(|r| r.app.as_str()))),
        ("transport", text(all().map(|r| r.transport.name()))),
        ("trace", text(all().map(|r| r.trace.as_str()))),
        ("seed", count(all().map(|r| r.seed))),
        ("cell_rtt_ms", number(all().map(|r| r.cell.rtt_ms))),
        ("cell_buffer_bytes", count(all().map(|r| r.cell.buffer_bytes))),
        ("cell_loss", number(all().map(|r| r.cell.loss))),
        ("cell_flows", count(all().map(|r| u64::from(r.cell.flows)))),
        ("qoe_mean", number(all().map(|r| r.qoe.mean))),
        ("qoe_p5", number(all().map(|r| r.qoe.p5))),
        ("qoe_p50", number(all().map(|r| r.qoe.p50))),
        ("qoe_p95", number(all().map(|r| r.qoe.p95))),
        ("throughput_mbps", number(all().map(|r| r.throughput_mbps))),
        ("utilization", number(all().map(|r| r.utilization))),
        ("rtt_ms_mean", number(all().map(|r| r.rtt_ms.mean))),
        ("rtt_ms_p50", number(all().map(|r| r.rtt_ms.p50))),
        ("rtt_ms_p95", number(all().map(|r| r.rtt_ms.p95))),
        ("queue_delay_ms_mean", number(all().map(|r| r.queue_delay_ms.mean))),
        ("queue_delay_ms_p95", number(all().map(|r| r.queue_delay_ms.p95))),
        ("loss_ratio", number(all().map(|r| r.loss_ratio))),
        ("retransmit_ratio", number(all().map(|r| r.retransmit_ratio))),
        ("requests", count(all().map(|r| r.requests))),
        ("rct_ms_mean", rct(|r| r.mean)),
        ("rct_ms_p50", rct(|r| r.p50)),
        ("rct_ms_p90", rct(|r| r.p90)),
        ("rct_ms_p95", rct(|r| r.p95)),
        ("rct_ms_p99", rct(|r| r.p99)),
        ("bitrate_kbps_mean", maybe(all().map(|r| r.bitrate_kbps_mean))),
        ("stall_ratio", maybe(all().map(|r| r.stall_ratio))),
        ("stalls", maybe(all().map(|r| r.stalls.map(|n| n as f64)))),
        ("startup_ms", maybe(all().map(|r| r.startup_ms))),
        ("latency_ms", maybe(all().map(|r| r.latency_ms))),
        ("jain", maybe(all().map(|r| r.jain))),
        ("friendliness", maybe(all().map(|r| r.friendliness))),
        ("cell_jitter_ms", number(all().map(|r| r.cell.jitter_ms))),
        ("users_log_mean", maybe(all().map(|r| r.users.log_mean))),
        ("users_mean", number(all().map(|r| r.users.mean))),
        ("users_p5", number(all().map(|r| r.users.p5))),
        ("users_jain", maybe(all().map(|r| r.users.jain))),
        ("unfinished", count(all().map(|r| r.unfinished))),
        ("rivals_throughput_mbps", rivals(|r| r.throughput_mbps)),
        ("rivals_rtt_ms", rivals(|r| r.rtt_ms)),
        ("rivals_loss_ratio", rivals(|r| r.loss_ratio)),
        ("cell_rivals", text(all().map(|r| r.cell.rivals.as_str()))),
    ]
}

/// One row per request or chunk that was kept.
pub fn requests_table(runs: &[RunRecord]) -> Table {
    let all = || runs.iter().enumerate().flat_map(|(i, r)| r.units.iter().map(move |u| (i, r, u)));
    vec![
        ("run", count(all().map(|(i, ..)| i as u64))),
        ("cc", text(all().map(|(_, r, _)| r.cc.as_str()))),
        ("app", text(all().map(|(_, r, _)| r.app.as_str()))),
        ("trace", text(all().map(|(_, r, _)| r.trace.as_str()))),
        ("seed", count(all().map(|(_, r, _)| r.seed))),
        ("flow", count(all().map(|(.., u)| u64::from(u.flow)))),
        ("start_ms", number(all().map(|(.., u)| u.start_ms))),
        ("bytes", count(all().map(|(.., u)| u.bytes))),
        ("duration_ms", number(all().map(|(.., u)| u.duration_ms))),
        ("qoe", number(all().map(|(.., u)| u.qoe))),
        ("bitrate_kbps", maybe(all().map(|(.., u)| u.bitrate_kbps))),
        ("stall_ms", maybe(all().map(|(.., u)| u.stall_ms))),
        ("latency_ms", maybe(all().map(|(.., u)| u.latency_ms))),
        ("finished", count(all().map(|(.., u)| u64::from(u.finished)))),
    ]
}

/// One row per bin of the courses over time that were kept.
pub fn series_table(runs: &[RunRecord]) -> Table {
    let with_series =
        || runs.iter().enumerate().filter_map(|(i, r)| Some((i, r, r.series.as_ref()?)));
    let bins = || {
        with_series()
            .flat_map(|(i, r, s)| (0..s.capacity_mbps.len()).map(move |bin| (i, r, s, bin)))
    };
    // A series may lack a quantity altogether; its column is then null for that run.
    let value = |f: fn(&crate::result::Series) -> &[f64]| {
        number(bins().map(move |(_, _, s, bin)| f(s).get(bin).copied().unwrap_or(f64::NAN)))
    };
    vec![
        ("run", count(bins().map(|(i, ..)| i as u64))),
        ("cc", text(bins().map(|(_, r, ..)| r.cc.as_str()))),
        ("app", text(bins().map(|(_, r, ..)| r.app.as_str()))),
        ("trace", text(bins().map(|(_, r, ..)| r.trace.as_str()))),
        ("seed", count(bins().map(|(_, r, ..)| r.seed))),
        ("t_ms", number(bins().map(|(_, _, s, bin)| bin as f64 * s.bin_ms))),
        ("capacity_mbps", value(|s| &s.capacity_mbps)),
        ("throughput_mbps", value(|s| &s.throughput_mbps)),
        ("queue_delay_ms", value(|s| &s.queue_delay_ms)),
        ("rtt_ms", value(|s| &s.rtt_ms)),
        ("cwnd_bytes", value(|s| &s.cwnd_bytes)),
        ("delta", value(|s| &s.delta)),
        ("lambda", value(|s| &s.lambda)),
        ("tau", value(|s| &s.tau)),
    ]
}

/// One row per scheme and application. Only Python has it as a table; the JSON has it in full.
pub fn summary_table(rows: &[SummaryRow]) -> Table {
    let all = || rows.iter();
    vec![
        ("cc", text(all().map(|r| r.cc.as_str()))),
        ("app", text(all().map(|r| r.app.as_str()))),
        ("runs", count(all().map(|r| r.runs))),
        ("qoe_mean", number(all().map(|r| r.qoe_mean))),
        ("qoe_ci95_low", maybe(all().map(|r| r.qoe_ci95.map(|ci| ci[0])))),
        ("qoe_ci95_high", maybe(all().map(|r| r.qoe_ci95.map(|ci| ci[1])))),
        ("of_omniscient", maybe(all().map(|r| r.of_omniscient.as_ref().map(|e| e.value)))),
        ("throughput_mbps", number(all().map(|r| r.throughput_mbps))),
        ("queue_delay_ms", number(all().map(|r| r.queue_delay_ms))),
        ("retransmit_ratio", number(all().map(|r| r.retransmit_ratio))),
        ("score", number(all().map(|r| r.score))),
        ("score_ci95_low", maybe(all().map(|r| r.score_ci95.map(|ci| ci[0])))),
        ("score_ci95_high", maybe(all().map(|r| r.score_ci95.map(|ci| ci[1])))),
        (
            "score_of_omniscient",
            maybe(all().map(|r| r.score_of_omniscient.as_ref().map(|e| e.value))),
        ),
        ("users_mean", number(all().map(|r| r.users_mean))),
        ("users_p5", number(all().map(|r| r.users_p5))),
        ("users_jain", maybe(all().map(|r| r.users_jain))),
    ]
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::result::{Series, UnitRecord};
    use crate::testing::run;

    fn runs() -> Vec<RunRecord> {
        let mut r = run("cubic", "t", 3, 4.5);
        r.units = vec![UnitRecord { bytes: 7, qoe: 1.5, ..UnitRecord::default() }; 2];
        r.series = Some(Series {
            bin_ms: 100.0,
            capacity_mbps: vec![12.0, 6.0],
            throughput_mbps: vec![11.0, f64::NAN],
            ..Series::default()
        });
        vec![run("bbr", "t", 3, 5.5), r]
    }

    #[test]
    fn what_is_written_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("results");
        write(&out, &runs()).unwrap();
        let rows = |name: &str| {
            let file = std::fs::File::open(out.join(name)).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            reader.get_row_iter(None).unwrap().map(Result::unwrap).collect::<Vec<_>>()
        };
        let r = rows("runs.parquet");
        assert_eq!(r.len(), 2);
        assert_eq!(r[1].get_string(1).unwrap(), "cubic");
        assert_eq!(r[1].get_long(5).unwrap(), 3);
        assert_eq!(r[1].get_double(10).unwrap(), 4.5);
        assert_eq!(rows("requests.parquet").len(), 2);
        let s = rows("series.parquet");
        assert_eq!(s.len(), 2);
        assert_eq!(s[1].get_double(5).unwrap(), 100.0);
        assert_eq!(s[1].get_double(6).unwrap(), 6.0);
        assert!(s[1].get_double(7).is_err(), "NaN is written as null");
        assert!(s[0].get_double(10).is_err(), "a missing quantity is null");
    }

    /// The columns and types in each section of the reference page are those of the tables, in order.
    #[test]
    fn the_reference_has_every_column_and_no_other() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tables.md");
        let text = std::fs::read_to_string(page).unwrap();
        let summary = crate::stats::summary::summarise(&runs());
        for (section, table) in [
            ("## `runs.parquet`", runs_table(&runs())),
            ("## `requests.parquet`", requests_table(&runs())),
            ("## `series.parquet`", series_table(&runs())),
            ("## The summary, in Python", summary_table(&summary)),
        ] {
            let (_, rest) = text.split_once(section).unwrap();
            let own = rest.split("\n## ").next().unwrap();
            let row = |line: &str| {
                let mut cells = line.strip_prefix("| `")?.split(" | ");
                let name = cells.next()?.trim_end_matches('`').to_owned();
                Some((name, cells.next()?.to_owned()))
            };
            let documented: Vec<(String, String)> = own.lines().filter_map(row).collect();
            let written: Vec<(String, String)> = table
                .iter()
                .map(|(name, values)| {
                    let kind = match values {
                        Values::Text(_) => "string",
                        Values::Count(_) => "int64",
                        Values::Number(_) => "double",
                    };
                    ((*name).to_owned(), kind.to_owned())
                })
                .collect();
            assert_eq!(documented, written, "{section}");
        }
    }

    #[test]
    fn no_runs_make_empty_tables() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &[]).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_failure_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        // A folder where a file should go: the first file succeeds, the third fails.
        std::fs::create_dir_all(dir.path().join("series.parquet")).unwrap();
        assert!(write(dir.path(), &runs()).is_err());
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["series.parquet"]);
    }
}
