//! Recordings over our links: the table that `trimtab validate` holds the simulator to.

use std::collections::BTreeMap;

use trimtab_net::{JitterConfig, Trace};

use crate::bulk;
use crate::cells::{self, Row};
use crate::{BenchError, Record, table};

/// The columns of a cell, as they were given.
const GIVEN: [&str; 12] = [
    "run",
    "cca",
    "flows",
    "rate_mbps",
    "rtt_ms",
    "buffer_packets",
    "loss",
    "repeat",
    "duration_s",
    "window_from_s",
    "window_to_s",
    "flow_starts_s",
];

/// The columns of what came of it.
const MEASURED: [&str; 5] =
    ["goodput_mbps", "queue_mean_ms", "retransmit_pct", "packets_per_ack", "late_p99_ms"];

pub(crate) fn run(args: &Record) -> Result<(), BenchError> {
    let rows = cells::rows(&args.cells)?.into_iter().enumerate();
    let is_wanted =
        |name: &str| args.only.is_empty() || args.only.iter().any(|part| name.contains(part));
    let runs: BTreeMap<String, Row> = rows
        .filter(|(_, row)| is_wanted(row.text("run")))
        .map(|(i, row)| (format!("{i:04} {}", row.text("run")), row))
        .collect();
    if runs.is_empty() {
        return Err(BenchError::NoCell(args.only.clone()));
    }
    let done = table::all(&runs, args.jobs, |row| {
        let trace = constant(row.text("rate_mbps"))?;
        bulk::run(row, trace, JitterConfig::None)
    })?;
    println!("{},{}", GIVEN.join(","), MEASURED.join(","));
    for (name, run) in done {
        let given = GIVEN.map(|column| runs[&name].text(column)).join(",");
        println!(
            "{given},{:.3},{:.2},{:.3},{:.2},{:.3}",
            run.goodput_mbps,
            run.queue.mean_ms,
            run.retransmit_pct,
            run.packets_per_ack,
            run.late_p99_ms
        );
    }
    Ok(())
}

fn constant(rate_mbps: &str) -> Result<Trace, BenchError> {
    let trace = rate_mbps.parse().ok().and_then(Trace::constant_mbps);
    trace.ok_or_else(|| BenchError::Rate(rate_mbps.to_owned()))
}
