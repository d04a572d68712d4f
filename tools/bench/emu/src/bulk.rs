//! Bulk flows: one TCP connection over a link of a constant rate.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_net::mahimahi_log::{OPPORTUNITY, OVERHEAD};
use trimtab_net::{Capacity, JitterConfig, LinkConfig, LossConfig, QueueConfig, Trace};
use trimtab_units::{Bytes, Duration};

use crate::cells::{self, Row, mean};
use crate::queue::{Queueing, queueing};
use crate::table::{Column, Measured, Timed};
use crate::{BenchError, traffic};

pub(crate) const COLUMNS: [Column; 4] = [
    Column { name: "goodput, Mbit/s", is_relative: true },
    Column { name: "mean queue, ms", is_relative: true },
    Column { name: "p95 queue, ms", is_relative: true },
    Column { name: "retransmitted, %", is_relative: false },
];

/// The cells of one flow, by name; each with its repeats.
pub(crate) fn cells(ground_truth: &Path) -> Result<BTreeMap<String, Vec<Row>>, BenchError> {
    let rows = cells::rows(&ground_truth.join("bulk.csv"))?;
    let single = rows.into_iter().filter(|row| row.text("flows") == "1").collect();
    // The last part of a run's name is its repeat.
    Ok(cells::groups(single, |row| {
        row.text("run").rsplit_once('-').map_or("", |(name, _)| name).to_owned()
    }))
}

/// What came of a run, as the columns of the recordings have it.
pub(crate) struct Run {
    pub(crate) goodput_mbps: f64,
    pub(crate) queue: Queueing,
    pub(crate) retransmit_pct: f64,
    /// Data packets that reached the receiver for each packet that it sent.
    pub(crate) packets_per_ack: f64,
    /// The timing error of our downlink.
    pub(crate) late_p99_ms: f64,
}

impl Timed for Run {
    fn late_p99_ms(&self) -> f64 {
        self.late_p99_ms
    }
}

/// Runs a cell over our link, and compares it with its repeats over Mahimahi.
pub(crate) fn measure(
    ground_truth: &Path,
    rows: &[Row],
    jitter: JitterConfig,
) -> Result<Measured, BenchError> {
    let cell = &rows[0];
    let trace = format!("links/const{}.trace.gz", cell.text("rate_mbps"));
    let run = run(cell, Trace::load(&ground_truth.join(trace))?, jitter)?;
    Ok(Measured {
        ours: vec![run.goodput_mbps, run.queue.mean_ms, run.queue.p95_ms, run.retransmit_pct],
        theirs: ["goodput_mbps", "queue_mean_ms", "queue_p95_ms", "retransmit_pct"]
            .map(|column| mean(rows, column))
            .to_vec(),
        late_p99_ms: run.late_p99_ms,
    })
}

/// Runs a cell over our link.
pub(crate) fn run(cell: &Row, trace: Trace, jitter: JitterConfig) -> Result<Run, BenchError> {
    let trace = Arc::new(trace);
    let capacity = || Capacity::Trace {
        trace: trace.clone(),
        offset: Duration::ZERO,
        opportunity: OPPORTUNITY,
    };
    let delay = Duration::from_millis_f64(cell.number("rtt_ms") / 2.0);
    let up = LinkConfig::new(capacity()).overhead(OVERHEAD).delay(delay).jitter(jitter);
    let mut down =
        up.clone().queue(QueueConfig::drop_tail_packets(cell.number("buffer_packets") as u32));
    let loss = cell.number("loss");
    if loss > 0.0 {
        down.loss = LossConfig::Independent(loss);
    }
    let folder = tempfile::tempdir()?;
    let mut topology = Topology::new(ServerSide::Private)?;
    for side in [topology.server(), topology.client()] {
        for (name, value) in [
            ("net.ipv4.tcp_wmem", "4096 16384 67108864"),
            ("net.ipv4.tcp_rmem", "4096 131072 67108864"),
            ("net.ipv4.tcp_no_metrics_save", "1"),
        ] {
            side.set_sysctl(name, value)?;
        }
    }
    topology.start(&Config { down, up, seed: seed(cell), log: Some(folder.path().to_owned()) })?;
    let [from, to, end] = ["window_from_s", "window_to_s", "duration_s"].map(|c| cell.number(c));
    let received = {
        let rtt = StdDuration::from_secs_f64(cell.number("rtt_ms") / 1e3);
        traffic::bulk(&topology, cell.text("cca"), rtt, StdDuration::from_secs_f64(end))?
    };
    let (sent, again) = traffic::segments(topology.server())?;
    let report = topology.stop()?;
    let window = [from, to].map(StdDuration::from_secs_f64);
    let goodput = received.bytes_between(window[0], window[1]) as f64 * 8e-6 / (to - from);
    let window = (Duration::from_secs_f64(from), Duration::from_secs_f64(to));
    let queue = queueing(&folder.path().join("down.log"), Bytes::new(1503), window)?;
    Ok(Run {
        goodput_mbps: goodput,
        queue,
        retransmit_pct: again as f64 / (sent + again) as f64 * 100.0,
        packets_per_ack: report.down.deliveries as f64 / report.up.arrivals.max(1) as f64,
        late_p99_ms: report.down.late.map_or(f64::NAN, |late| late.p99_ms),
    })
}

/// A seed of each cell's own, or all would lose the same packets.
fn seed(cell: &Row) -> u64 {
    cell.text("run").bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte))
}
