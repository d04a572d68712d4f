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
        ("cell_rtt_steps", text(all().map(|r| r.cell.rtt_steps.as_str()))),
        ("vmaf", maybe(all().map(|r| r.vmaf))),
        ("frame_delay_ms_mean", maybe(all().map(|r| r.frame_delay_ms.map(|d| d.mean)))),
        ("frame_delay_ms_p95", maybe(all().map(|r| r.frame_delay_ms.map(|d| d.p95)))),
        ("target_kbps_mean", maybe(all().map(|r| r.target_kbps_mean))),
        ("freezes", maybe(all().map(|r| r.freezes))),
        ("freeze_ratio", maybe(all().map(|r| r.freeze_ratio))),
        ("drop_ratio", maybe(all().map(|r| r.drop_ratio))),
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
        ("target_mbps", value(|s| &s.target_mbps)),
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
    use crate::result::{
        CellRecord, DelayRecord, QoeRecord, RctRecord, RttRecord, Series, UnitRecord,
    };
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

    /// A record in which every number is another one.
    fn distinct(seed: u64) -> RunRecord {
        let mut next = 1000.0 * seed as f64;
        let mut n = || {
            next += 1.25;
            next
        };
        let mut r = run("cubic", "t", seed, 1.0);
        r.cell = CellRecord {
            rtt_ms: n(),
            rtt_steps: "step:9ms,8ms@7s".to_owned(),
            buffer_bytes: seed + 77,
            loss: n(),
            jitter_ms: n(),
            flows: 5,
            rivals: "some".to_owned(),
        };
        r.qoe = QoeRecord { mean: n(), p5: n(), p50: n(), p95: n() };
        (r.throughput_mbps, r.utilization) = (n(), n());
        r.rtt_ms = RttRecord { mean: n(), p50: n(), p95: n() };
        r.queue_delay_ms = DelayRecord { mean: n(), p95: n() };
        (r.loss_ratio, r.retransmit_ratio, r.requests) = (n(), n(), seed + 99);
        r.rct_ms = Some(RctRecord { mean: n(), p50: n(), p90: n(), p95: n(), p99: n() });
        (r.bitrate_kbps_mean, r.stall_ratio, r.stalls) = (Some(n()), Some(n()), Some(seed + 3));
        (r.startup_ms, r.latency_ms, r.jain, r.friendliness) =
            (Some(n()), Some(n()), Some(n()), Some(n()));
        (r.vmaf, r.freeze_ratio, r.drop_ratio) = (Some(n()), Some(n()), Some(n()));
        (r.target_kbps_mean, r.freezes) = (Some(n()), Some(n()));
        r.frame_delay_ms = Some(DelayRecord { mean: n(), p95: n() });
        r
    }

    /// Columns carry the names of the JSON's fields, and so their values.
    #[test]
    fn a_column_has_what_the_json_has_under_its_name() {
        let runs = [distinct(4), run("bbr", "u", 9, 2.5)];
        let json: Vec<serde_json::Value> =
            runs.iter().map(|run| serde_json::to_value(run).unwrap()).collect();
        let field = |row: usize, name: &str| {
            let groups = [
                "cell",
                "qoe",
                "rtt_ms",
                "queue_delay_ms",
                "rct_ms",
                "frame_delay_ms",
                "users",
                "rivals",
            ];
            let inner = groups.iter().find_map(|group| {
                let rest = name.strip_prefix(group)?.strip_prefix('_')?;
                json[row].get(group)?.get(rest)
            });
            inner.or_else(|| json[row].get(name)).cloned().unwrap_or_default()
        };
        let mut seen = 0;
        for (name, values) in runs_table(&runs).iter().filter(|(name, _)| *name != "run") {
            for row in 0..runs.len() {
                let expected = field(row, name);
                match values {
                    // No text in the JSON is an empty one.
                    Values::Text(v) => {
                        assert_eq!(expected.as_str().unwrap_or_default(), v[row], "{name}");
                    }
                    Values::Count(v) => assert_eq!(expected, v[row], "{name}"),
                    // Nothing in the JSON is nothing in the table; a zero that is left out is one.
                    Values::Number(v) if v[row].is_nan() => assert!(expected.is_null(), "{name}"),
                    Values::Number(v) => {
                        assert_eq!(expected.as_f64().unwrap_or(0.0), v[row], "{name}");
                    }
                }
                seen += 1;
            }
        }
        assert!(seen > 70, "{seen} values");
        let missing = runs_table(&runs).into_iter().find(|(name, _)| *name == "jain").unwrap().1;
        assert!(matches!(missing, Values::Number(v) if v[0] > 0.0 && v[1].is_nan()));
    }

    #[test]
    fn requests_and_bins_stand_in_the_row_of_their_run() {
        let unit = |n: u32| UnitRecord {
            flow: n,
            start_ms: f64::from(n) + 0.1,
            bytes: 10 + u64::from(n),
            duration_ms: f64::from(n) + 0.2,
            finished: n != 2,
            qoe: f64::from(n) + 0.3,
            bitrate_kbps: (n > 1).then_some(f64::from(n) + 0.4),
            stall_ms: Some(f64::from(n) + 0.5),
            latency_ms: None,
        };
        let mut runs = vec![run("a", "t", 1, 1.0), run("b", "t", 2, 1.0), run("c", "u", 3, 1.0)];
        runs[0].units = vec![unit(1)];
        runs[2].units = vec![unit(2), unit(3)];
        let bins = |from: f64| (0..3).map(|i| from + f64::from(i)).collect::<Vec<_>>();
        let series = Series {
            bin_ms: 50.0,
            capacity_mbps: bins(10.0),
            throughput_mbps: bins(20.0),
            queue_delay_ms: bins(30.0),
            rtt_ms: bins(40.0),
            cwnd_bytes: bins(50.0),
            delta: bins(60.0),
            lambda: bins(70.0),
            tau: bins(80.0),
            target_mbps: bins(90.0),
        };
        runs[1].series = Some(series);
        let column = |table: &Table, name: &str| -> Vec<f64> {
            match &table.iter().find(|(n, _)| *n == name).unwrap().1 {
                Values::Count(v) => v.iter().map(|&n| n as f64).collect(),
                Values::Number(v) => v.clone(),
                Values::Text(_) => panic!("{name} is text"),
            }
        };
        let requests = requests_table(&runs);
        for (name, expected) in [
            ("run", [0.0, 2.0, 2.0]),
            ("seed", [1.0, 3.0, 3.0]),
            ("flow", [1.0, 2.0, 3.0]),
            ("start_ms", [1.1, 2.1, 3.1]),
            ("bytes", [11.0, 12.0, 13.0]),
            ("duration_ms", [1.2, 2.2, 3.2]),
            ("qoe", [1.3, 2.3, 3.3]),
            ("stall_ms", [1.5, 2.5, 3.5]),
        ] {
            assert_eq!(column(&requests, name), expected, "{name}");
        }
        assert!(column(&requests, "bitrate_kbps")[0].is_nan());
        assert_eq!(column(&requests, "bitrate_kbps")[1..], [2.4, 3.4]);
        let series = series_table(&runs);
        assert_eq!(column(&series, "run"), [1.0; 3]);
        assert_eq!(column(&series, "t_ms"), [0.0, 50.0, 100.0]);
        let names = [
            "capacity_mbps",
            "throughput_mbps",
            "queue_delay_ms",
            "rtt_ms",
            "cwnd_bytes",
            "delta",
            "lambda",
            "tau",
            "target_mbps",
        ];
        for (i, name) in names.iter().enumerate() {
            assert_eq!(column(&series, name), bins(10.0 * (i + 1) as f64), "{name}");
        }
    }

    /// What Polars, pandas or R read is what was written, in every column of every table.
    #[test]
    fn every_value_of_a_file_reads_back() {
        let mut runs: Vec<RunRecord> = (0..40).map(distinct).collect();
        runs.iter_mut().step_by(3).for_each(|run| {
            run.jain = None;
            run.cc = format!("mortise:λ=\"{}\"", run.seed);
        });
        let table = runs_table(&runs);
        let mut bytes = Vec::new();
        encode(&table, &mut bytes).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.parquet");
        std::fs::write(&path, bytes).unwrap();
        let file = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 40);
        for (i, row) in rows.iter().enumerate() {
            for (c, (name, values)) in table.iter().enumerate() {
                match values {
                    Values::Text(v) => assert_eq!(row.get_string(c).unwrap(), &v[i], "{name}"),
                    Values::Count(v) => assert_eq!(row.get_long(c).unwrap(), v[i], "{name}"),
                    Values::Number(v) if v[i].is_nan() => assert!(row.get_double(c).is_err()),
                    Values::Number(v) => assert_eq!(row.get_double(c).unwrap(), v[i], "{name}"),
                }
            }
        }
    }

    #[test]
    fn a_summary_has_both_ends_of_its_intervals() {
        let runs: Vec<RunRecord> = [1.0, 2.0, 4.0]
            .into_iter()
            .zip(0..)
            .flat_map(|(q, seed)| {
                [run("cubic", "t", seed, q), run("omniscient", "t", seed, 2.0 * q)]
            })
            .collect();
        let rows = crate::stats::summary::summarise(&runs);
        let table = summary_table(&rows);
        let number = |name: &str| match &table.iter().find(|(n, _)| *n == name).unwrap().1 {
            Values::Number(v) => v[0],
            _ => panic!("{name} is a number"),
        };
        let [low, high] = rows[0].qoe_ci95.unwrap();
        assert_eq!((number("qoe_ci95_low"), number("qoe_ci95_high")), (low, high));
        assert_eq!((number("qoe_mean"), number("of_omniscient")), (7.0 / 3.0, 0.5));
    }
}
