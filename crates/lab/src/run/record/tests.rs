//! Records of measurements made by hand, against numbers worked out by hand.

use trimtab_apps::{ChunkRecord, RequestId, RequestRecord, VideoRecord};
use trimtab_units::Rate;

use super::*;
use crate::run::prepare::prepare;
use crate::scenario::Scenario;

const NO_DETAILS: Recording = Recording { units: false, series: false };
const DETAILS: Recording = Recording { units: true, series: true };

/// A scenario of one application, 10 s long, of which the first second is warmup.
fn scenario(app: &str, more: &str) -> Prepared {
    let text = format!(
        "cc = [\"cubic\"]\ntraces = \"constant:12Mbit/s\"\nduration = \"10s\"\nwarmup = \"1s\"\n\
         rtt = \"40ms\"\nbuffer = \"2BDP\"\n{more}[[app]]\nkind = \"{app}\"\n"
    );
    prepare(&Scenario::parse(&text).unwrap().plan().unwrap()).unwrap()
}

fn millis(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A request that was sent and finished at these times.
fn request(size: u64, sent: u64, completed: Option<u64>) -> RequestRecord {
    RequestRecord {
        id: RequestId(0),
        size: Bytes::new(size),
        scheduled_at: millis(sent),
        sent_at: millis(sent),
        first_byte_at: completed.map(millis),
        completed_at: completed.map(millis),
        received: Bytes::new(if completed.is_some() { size } else { 0 }),
    }
}

fn delays(count: u64, ms: [u64; 3]) -> Delays {
    let [mean, p50, p95] = ms.map(Duration::from_millis);
    Delays { count, mean, p50, p95 }
}

/// A flow with 200 packets, of which 20 were retransmissions and 10 lost.
fn flow(goodput: u64, outcome: Outcome) -> FlowMeasurement {
    FlowMeasurement {
        goodput: Bytes::new(goodput),
        packets: 200,
        retransmits: 20,
        dropped: 10,
        rtt: delays(100, [50, 45, 90]),
        rtts: Sketch::default(),
        queue: delays(100, [10, 5, 50]),
        outcome,
    }
}

fn measured(own: Vec<FlowMeasurement>, competing: Vec<FlowMeasurement>) -> Measurement {
    Measurement {
        ended: millis(10_000),
        span: Duration::from_secs(9),
        carried: Bytes::new(9_000_000),
        capacity: Bytes::new(12_000_000),
        own,
        competing,
        series: Series::default(),
        switches: Vec::new(),
        selections: None,
    }
}

fn recorded(prepared: &Prepared, measured: Measurement, recording: Recording) -> RunRecord {
    record(prepared, &prepared.plan.jobs[0], measured, recording, "sim")
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn a_download_is_scored_by_its_completion_times() {
    let prepared = scenario("download", "");
    let requests = vec![
        request(1_000_000, 500, Some(700)),
        request(1_000_000, 2_000, Some(3_000)),
        request(500_000, 4_000, Some(6_000)),
    ];
    let own = vec![flow(9_000_000, Outcome::Requests(requests))];
    let run = recorded(&prepared, measured(own, Vec::new()), DETAILS);
    assert_eq!(
        (run.cc.as_str(), run.app.as_str(), run.datapath.as_str()),
        ("cubic", "download", "sim")
    );
    // The first request was sent within the warmup: it counts as finished, and is not scored.
    assert_eq!((run.requests, run.units.len()), (3, 2));
    // Mortise Eq. 6: 8 Mbit in 1 s and 4 Mbit in 2 s; P(0.1) = 0.2 of 20 retransmissions in 200.
    close(run.units[0].qoe, 8.0 * 0.8);
    close(run.units[1].qoe, 2.0 * 0.8);
    close(run.qoe.mean, 4.0);
    let rct = run.rct_ms.unwrap();
    assert_eq!((rct.mean, rct.p50), (1_500.0, 1_500.0));
    close(run.throughput_mbps, 8.0);
    close(run.utilization, 0.75);
    assert_eq!((run.loss_ratio, run.retransmit_ratio), (0.05, 0.1));
    assert_eq!((run.rtt_ms.mean, run.rtt_ms.p50, run.rtt_ms.p95), (50.0, 45.0, 90.0));
    assert_eq!((run.queue_delay_ms.mean, run.queue_delay_ms.p95), (10.0, 50.0));
    // 12 Mbit/s over 40 ms are 60 kB, twice.
    assert_eq!((run.cell.buffer_bytes, run.cell.rtt_ms, run.cell.flows), (120_000, 40.0, 1));
    assert_eq!((run.jain, run.friendliness, run.stall_ratio), (None, None, None));
    assert!(run.flow_throughput_mbps.is_empty(), "one flow alone has the run's throughput");
}

/// Rates of 8 and 2 Mbit/s, and one of a hundred packets that took 200 ms instead of 20.
#[test]
fn a_formula_of_samples_is_scored_over_the_run() {
    let requests =
        || vec![request(1_000_000, 2_000, Some(3_000)), request(500_000, 4_000, Some(6_000))];
    let score = |qoe: &str, share: u32| {
        let mut rtts = Sketch::default();
        rtts.record_many(20_000, 100 - share);
        rtts.record_many(200_000, share);
        let own = vec![FlowMeasurement { rtts, ..flow(9_000_000, Outcome::Requests(requests())) }];
        let prepared = scenario(&format!("download\"\nqoe = \"{qoe}"), "");
        recorded(&prepared, measured(own, Vec::new()), DETAILS).units
    };
    let near = |units: &[UnitRecord], expected: [f64; 2]| {
        for (unit, expected) in units.iter().zip(expected) {
            assert!((unit.qoe - expected).abs() < 0.01 * expected.abs(), "{units:?} {expected}");
        }
    };
    // A request has its own rate, and all have the tails of the flow.
    near(&score("T - 20*p99(D)", 1), [8.0 - 0.4, 2.0 - 0.4]);
    near(&score("T - 20*p99(D)", 2), [8.0 - 4.0, 2.0 - 4.0]);
    near(&score("p0(T) + mean(T)", 0), [2.0 + 5.0; 2]);
    near(&score("mean(if(D < 0.1, 1, 0))", 10), [0.9; 2]);
    // A bare D is still the flow's mean.
    near(&score("20*D", 10), [1.0; 2]);
}

/// 250 kB of 1 MB came within 2 s: that is 1 Mbit/s, not the 4 of the whole file.
#[test]
fn an_unfinished_request_is_scored_by_what_it_got() {
    let prepared = scenario("download", "");
    let part = RequestRecord { received: Bytes::new(250_000), ..request(1_000_000, 8_000, None) };
    let own = || vec![flow(0, Outcome::Requests(vec![part]))];
    let run = recorded(&prepared, measured(own(), Vec::new()), DETAILS);
    assert_eq!((run.requests, run.unfinished, run.units[0].duration_ms), (0, 1, 2_000.0));
    close(run.units[0].qoe, 1.0 * 0.8);
    // Mortise Eq. 22 has no bytes: a page counts what it has waited.
    let run = recorded(&scenario("web", ""), measured(own(), Vec::new()), DETAILS);
    close(run.users.mean, -2.0);
}

/// A user who is stuck since the warmup counts with what it got.
#[test]
fn a_request_of_the_warmup_that_never_finished_counts() {
    let prepared = scenario("download", "");
    let requests = vec![request(1_000, 100, Some(200)), request(1_000_000, 500, None)];
    let own = vec![flow(0, Outcome::Requests(requests))];
    let run = recorded(&prepared, measured(own, Vec::new()), DETAILS);
    assert_eq!(run.units.len(), 1);
    close(run.users.log_mean.unwrap(), crate::stats::NOTHING);
}

/// One user has two requests at 6.4 and 1.6, the other one at 0.4, all Mbit/s.
#[test]
fn users_weigh_alike_whatever_they_ask_for() {
    let prepared = scenario("download", "flows = 2\n");
    let busy = vec![request(1_000_000, 2_000, Some(3_000)), request(500_000, 4_000, Some(6_000))];
    let slow = vec![request(250_000, 2_000, Some(6_000))];
    let own = [busy, slow].map(|requests| flow(1_000, Outcome::Requests(requests))).to_vec();
    let run = recorded(&prepared, measured(own, Vec::new()), NO_DETAILS);
    close(run.qoe.mean, (6.4 + 1.6 + 0.4) / 3.0);
    close(run.users.mean, (4.0 + 0.4) / 2.0);
    close(run.users.log_mean.unwrap(), (4.0_f64 * 0.4).sqrt());
    close(run.users.jain.unwrap(), 4.4 * 4.4 / (2.0 * (16.0 + 0.16)));
}

#[test]
fn a_web_page_is_scored_by_its_waits() {
    let prepared = scenario("web", "");
    let requests = vec![request(10_000, 2_000, Some(2_300)), request(10_000, 3_000, Some(3_100))];
    let own = vec![flow(20_000, Outcome::Requests(requests))];
    let run = recorded(&prepared, measured(own, Vec::new()), DETAILS);
    // Mortise Eq. 22, request by request.
    close(run.units[0].qoe, -0.3);
    close(run.units[1].qoe, -0.1);
}

#[test]
fn details_are_kept_where_they_are_asked_for() {
    let prepared = scenario("download", "");
    let run = |recording| {
        let requests = vec![request(1_000, 2_000, Some(2_100))];
        let own = vec![flow(1_000, Outcome::Requests(requests))];
        recorded(&prepared, measured(own, Vec::new()), recording)
    };
    let (without, with) = (run(NO_DETAILS), run(DETAILS));
    assert_eq!((without.units.len(), without.series.is_none()), (0, true));
    assert_eq!((with.units.len(), with.series.is_some()), (1, true));
    assert_eq!(without.qoe, with.qoe, "what is kept changes no number");
}

/// Means are weighted by the packets that they are of; shares are those of all packets.
#[test]
fn several_flows_are_merged_by_their_packets() {
    let prepared = scenario("download", "flows = 2\n");
    let empty = || Outcome::Requests(Vec::new());
    let busy = FlowMeasurement { rtt: delays(300, [100, 90, 200]), ..flow(6_750_000, empty()) };
    let idle = FlowMeasurement {
        packets: 0,
        retransmits: 0,
        dropped: 0,
        queue: Delays::default(),
        ..flow(2_250_000, empty())
    };
    let competing = vec![flow(4_500_000, Outcome::Endless)];
    let run = recorded(&prepared, measured(vec![busy, idle], competing), NO_DETAILS);
    assert_eq!(run.rtt_ms.mean, 0.75 * 100.0 + 0.25 * 50.0);
    assert_eq!(run.queue_delay_ms.mean, 10.0, "a flow without packets has no say");
    assert_eq!((run.loss_ratio, run.retransmit_ratio), (0.05, 0.1));
    assert_eq!(run.flow_throughput_mbps, [6.0, 2.0, 4.0], "competitors come last");
    close(run.throughput_mbps, 8.0);
    // Jain, Chiu, Hawe 1984: (6 + 2)² / (2 · (36 + 4)).
    close(run.jain.unwrap(), 0.8);
    // Mortise §5.5: a flow's mean rate, 4, over that of the competitor.
    close(run.friendliness.unwrap(), 1.0);
    let rivals = run.rivals.unwrap();
    assert_eq!((rivals.throughput_mbps, rivals.rtt_ms, rivals.loss_ratio), (4.0, 50.0, 0.05));
    assert_eq!(rivals.cc, None, "the scenario names none");
    assert_eq!((run.requests, run.rct_ms, run.qoe.mean), (0, None, 0.0));
}

#[test]
fn nothing_delivered_divides_by_nothing() {
    let prepared = scenario("download", "");
    let nothing = FlowMeasurement {
        packets: 0,
        retransmits: 0,
        dropped: 0,
        rtt: Delays::default(),
        queue: Delays::default(),
        ..flow(0, Outcome::Requests(Vec::new()))
    };
    let run = recorded(&prepared, measured(vec![nothing], Vec::new()), NO_DETAILS);
    assert_eq!((run.loss_ratio, run.retransmit_ratio, run.rtt_ms.mean), (0.0, 0.0, 0.0));
    assert_eq!(run.throughput_mbps, 0.0);
}

fn chunk(mbps: f64, requested: u64, completed: Option<u64>, stall: u64) -> ChunkRecord {
    ChunkRecord {
        bitrate: Rate::from_mbps(mbps),
        size: Rate::from_mbps(mbps) * Duration::from_secs(2),
        duration: Duration::from_secs(2),
        requested_at: millis(requested),
        completed_at: completed.map(millis),
        stall: Duration::from_millis(stall),
        latency: None,
    }
}

fn video(chunks: Vec<ChunkRecord>, stalls: u32, stall_ms: u64, played_ms: u64) -> Outcome {
    Outcome::Video(VideoRecord {
        chunks,
        startup: Duration::from_millis(800),
        stalls,
        stall_time: Duration::from_millis(stall_ms),
        played: Duration::from_millis(played_ms),
    })
}

#[test]
fn video_is_scored_by_bitrates_and_stalls() {
    let prepared = scenario("vod", "");
    let chunks = vec![
        chunk(1.0, 1_000, Some(1_500), 0),
        chunk(2.0, 2_000, Some(4_000), 500),
        chunk(4.0, 5_000, None, 0),
    ];
    let own = vec![flow(750_000, video(chunks, 1, 500, 7_500))];
    let run = recorded(&prepared, measured(own, Vec::new()), DETAILS);
    assert_eq!((run.requests, run.units.len()), (2, 2), "the third chunk is not complete");
    assert_eq!(run.bitrate_kbps_mean, Some(1_500.0));
    assert_eq!((run.stalls, run.startup_ms), (Some(1), Some(800.0)));
    close(run.stall_ratio.unwrap(), 0.5 / 8.0);
    assert_eq!((run.rct_ms, run.latency_ms), (None, None), "no request, and not live");
    assert_eq!(run.units[1].stall_ms, Some(500.0));
    // Mortise Eq. 8: twice the bitrate is worth ln 2, a second of stalling costs 2.66.
    close(run.units[1].qoe - run.units[0].qoe, 2.0_f64.ln() - 2.66 * 0.5);
}

#[test]
fn live_video_pays_for_its_latency() {
    let prepared = scenario("live", "");
    let late = |latency: u64, mbps| ChunkRecord {
        latency: Some(Duration::from_millis(latency)),
        ..chunk(mbps, 2_000, Some(3_000), 0)
    };
    let own = vec![flow(750_000, video(vec![late(3_000, 1.0), late(5_000, 1.0)], 0, 0, 8_000))];
    let run = recorded(&prepared, measured(own, Vec::new()), DETAILS);
    assert_eq!((run.latency_ms, run.stall_ratio), (Some(4_000.0), Some(0.0)));
    assert_eq!(run.units[1].latency_ms, Some(5_000.0));
    close(run.units[0].qoe - run.units[1].qoe, 2.0 * 0.1);
}

#[test]
fn a_viewer_who_saw_nothing_has_stalled_throughout() {
    let prepared = scenario("vod", "");
    let own = vec![flow(0, video(Vec::new(), 0, 0, 0))];
    let run = recorded(&prepared, measured(own, Vec::new()), NO_DETAILS);
    assert_eq!((run.stall_ratio, run.bitrate_kbps_mean, run.requests), (Some(1.0), Some(0.0), 0));
}

#[test]
fn a_bulk_transfer_is_one_unit_of_its_throughput() {
    let prepared = scenario("bulk", "");
    let own = vec![flow(9_000_000, Outcome::Endless)];
    let run = recorded(&prepared, measured(own, Vec::new()), DETAILS);
    assert_eq!(run.units.len(), 1, "though it began within the warmup");
    close(run.qoe.mean, 8.0);
    let priced = scenario("bulk", "");
    let mut priced = priced.plan.scenario.clone();
    priced.app[0].qoe = Some("T - 20*D - 100*L".to_owned());
    let prepared = prepare(&priced.plan().unwrap()).unwrap();
    let own = vec![flow(9_000_000, Outcome::Endless)];
    let run = recorded(&prepared, measured(own, Vec::new()), DETAILS);
    close(run.qoe.mean, 8.0 - 20.0 * 0.05 - 100.0 * 0.1);
}

#[test]
fn the_score_of_a_measurement_is_that_of_its_record() {
    let prepared = scenario("download", "");
    let requests = vec![request(1_000_000, 2_000, Some(3_000)), request(1_000_000, 500, Some(900))];
    let measured = measured(vec![flow(9_000_000, Outcome::Requests(requests))], Vec::new());
    let score = measured.score(&prepared, &prepared.plan.jobs[0]);
    assert_eq!(score, recorded(&prepared, measured, NO_DETAILS).users.score());
}
