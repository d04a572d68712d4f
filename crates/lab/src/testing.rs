//! Records and comparisons of numbers for the tests of this crate.

use crate::result::{CellRecord, DelayRecord, QoeRecord, RctRecord, RttRecord, RunRecord};
use crate::scenario::TransportKind;
use crate::stats::UsersRecord;

/// Asserts that two numbers are the same but for rounding.
#[track_caller]
pub(crate) fn close(found: f64, expected: f64) {
    let off = (found - expected).abs();
    assert!(off <= 1e-9 * expected.abs().max(1.0), "{found}, not {expected}");
}

/// A download run with the given mean experience and nothing remarkable otherwise.
pub(crate) fn run(cc: &str, trace: &str, seed: u64, qoe: f64) -> RunRecord {
    RunRecord {
        cc: cc.to_owned(),
        app: "download".to_owned(),
        datapath: "sim".to_owned(),
        transport: TransportKind::Quic,
        trace: trace.to_owned(),
        seed,
        cell: CellRecord {
            rtt_ms: 20.0,
            rtt_steps: String::new(),
            buffer_bytes: 150_000,
            loss: 0.0,
            jitter_ms: 0.0,
            flows: 1,
            rivals: String::new(),
        },
        qoe: QoeRecord { mean: qoe, p5: 0.5 * qoe, p50: qoe, p95: 1.5 * qoe },
        users: UsersRecord::of(&[qoe], true),
        throughput_mbps: 10.0,
        utilization: 0.9,
        rtt_ms: RttRecord { mean: 35.0, p50: 30.0, p95: 80.0 },
        queue_delay_ms: DelayRecord { mean: 15.0, p95: 60.0 },
        loss_ratio: 0.01,
        retransmit_ratio: 0.01,
        requests: 92,
        unfinished: 0,
        rct_ms: Some(RctRecord { mean: 800.0, p50: 500.0, p90: 1500.0, p95: 2000.0, p99: 3000.0 }),
        bitrate_kbps_mean: None,
        stall_ratio: None,
        stalls: None,
        startup_ms: None,
        latency_ms: None,
        vmaf: None,
        frame_delay_ms: None,
        target_kbps_mean: None,
        freezes: None,
        freeze_ratio: None,
        drop_ratio: None,
        flow_throughput_mbps: Vec::new(),
        jain: None,
        friendliness: None,
        rivals: None,
        switches: Vec::new(),
        selections: None,
        units: Vec::new(),
        series: None,
        call: None,
    }
}
