//! What users felt: from what an application went through to experience per request or chunk.

use trimtab_apps::{CallRecord, CloudGame, Outcome, RequestRecord, VideoRecord};
use trimtab_qoe::{Factors, Model, OperatingPoint, Samples, Sketch, download_qoe, streaming_qoe};
use trimtab_units::{Duration, Rate, Time};

use crate::result::UnitRecord;
use crate::run::prepare::PreparedApp;

/// What the network gave a flow over a run; requests are scored in its light.
#[derive(Clone, Copy, Debug)]
pub struct FlowPoint {
    /// Delivered to the application per time.
    pub throughput: Rate,
    /// Mean round-trip time.
    pub rtt: Duration,
    /// Retransmitted over sent packets, 0 to 1.
    pub retransmitted: f64,
}

/// Where a flow was, and the samples around it for models that read them.
struct Felt {
    point: FlowPoint,
    samples: Samples,
}

impl Felt {
    /// The throughputs are the rates of all requests or chunks of the run, warmup included, or that
    /// of the run where there are none; the delays are the round-trip times of all packets; the
    /// loss is that of the run.
    fn new(
        app: &PreparedApp,
        outcome: &Outcome,
        point: FlowPoint,
        rtts: &Sketch,
        end: Time,
    ) -> Self {
        let mut samples = Samples::default();
        if app.model.reads_samples() {
            match outcome {
                Outcome::Requests(requests) => requests
                    .iter()
                    .for_each(|r| samples.add_throughput(r.received / waited(r, end))),
                Outcome::Video(video) => video
                    .chunks
                    .iter()
                    .filter_map(|c| Some(c.size / c.completed_at?.since(c.requested_at)))
                    .for_each(|rate| samples.add_throughput(rate)),
                Outcome::Call(_) | Outcome::Endless => {}
            }
            samples.add_delays(rtts);
        }
        Self { point, samples }
    }

    /// The score of a request: its own rate as `T`, the flow's mean delay and loss.
    fn score(&self, model: &Model, throughput: Rate, factors: &Factors) -> f64 {
        let FlowPoint { rtt, retransmitted, .. } = self.point;
        let point = OperatingPoint { throughput, delay: rtt, loss: retransmitted };
        model.score_over(&point, &self.samples, factors)
    }
}

/// How long the user of a request waited for it, until `end` at most.
fn waited(request: &RequestRecord, end: Time) -> Duration {
    request.completion_time().unwrap_or_else(|| end.since(request.sent_at))
}

/// Experience per request or chunk of one flow. A request that is not finished by `end` is scored
/// by what it got: the bytes that arrived over the time waited. Bulk transfers have one unit, the
/// run.
pub fn units(
    app: &PreparedApp,
    outcome: &Outcome,
    flow: u32,
    point: FlowPoint,
    rtts: &Sketch,
    end: Time,
) -> Vec<UnitRecord> {
    let felt = Felt::new(app, outcome, point, rtts, end);
    match outcome {
        Outcome::Requests(requests) => {
            requests.iter().map(|r| request(app, r, flow, &felt, end)).collect()
        }
        Outcome::Video(video) => chunks(app, video, flow, &felt),
        Outcome::Call(record) => vec![call(app, record, flow, &felt)],
        Outcome::Endless => vec![bulk(app, flow, &felt, end)],
    }
}

fn request(app: &PreparedApp, r: &RequestRecord, flow: u32, felt: &Felt, end: Time) -> UnitRecord {
    let waited = waited(r, end);
    let qoe = match &app.model {
        // Mortise Eq. 6, of what arrived.
        Model::Download(_) => download_qoe(r.received, waited, felt.point.retransmitted),
        // Mortise Eq. 22, of the one request; unfinished, what it has waited so far.
        Model::Web(_) => -waited.as_secs_f64(),
        model => {
            let factors = app.factors.with_request(r.size).with_mean_response(r.size);
            felt.score(model, r.received / waited, &factors)
        }
    };
    UnitRecord {
        flow,
        start_ms: r.sent_at.as_millis_f64(),
        bytes: r.size.get(),
        duration_ms: waited.as_millis_f64(),
        finished: r.completed_at.is_some(),
        qoe,
        bitrate_kbps: None,
        stall_ms: None,
        latency_ms: None,
    }
}

/// What a second behind the live edge costs, in the unit of Mortise Eq. 8. Our own choice: a second of
/// stalling costs 2.66 there, and being ten seconds late is worth avoiding some 0.4 s of it.
const LATENCY_PRICE: f64 = 0.1;

/// What being behind the live edge costs; nothing on demand.
fn behind(latency: Option<Duration>) -> f64 {
    latency.map_or(0.0, |latency| LATENCY_PRICE * latency.as_secs_f64())
}

/// Mortise Eq. 8 per chunk: the logarithm of the bitrate, less the stall for it and, live, less the
/// time behind the live edge.
fn chunks(app: &PreparedApp, video: &VideoRecord, flow: u32, felt: &Felt) -> Vec<UnitRecord> {
    let complete = video.chunks.iter().filter_map(|c| Some((c, c.completed_at?)));
    complete
        .map(|(c, at)| {
            let took = at.since(c.requested_at);
            let qoe = match &app.model {
                model @ Model::Formula(_) => {
                    felt.score(model, c.size / took, &app.factors.with_chunk(c.size))
                }
                _ => streaming_qoe(&[c.bitrate], &[c.stall]).total - behind(c.latency),
            };
            UnitRecord {
                flow,
                start_ms: c.requested_at.as_millis_f64(),
                bytes: c.size.get(),
                duration_ms: took.as_millis_f64(),
                finished: true,
                qoe,
                bitrate_kbps: Some(c.bitrate.mbps() * 1000.0),
                stall_ms: Some(c.stall.as_millis_f64()),
                latency_ms: c.latency.map(Duration::as_millis_f64),
            }
        })
        .collect()
}

/// A call is one unit: a conference is scored by Mortise Eq. 13, a game by its own formula.
fn call(app: &PreparedApp, record: &CallRecord, flow: u32, felt: &Felt) -> UnitRecord {
    let qoe = match &app.model {
        model @ Model::Formula(_) => felt.score(model, felt.point.throughput, &app.factors),
        _ if app.settings.kind.name() == CloudGame::INFO.name => CloudGame::qoe(record),
        _ => record.qoe(),
    };
    let shown = record.frames.iter().filter(|frame| frame.presented_at.is_some());
    UnitRecord {
        flow,
        start_ms: record.start.as_millis_f64(),
        bytes: shown.map(|frame| frame.bytes.get()).sum(),
        duration_ms: record.length().as_millis_f64(),
        finished: true,
        qoe,
        bitrate_kbps: Some(record.bitrate().mbps() * 1000.0),
        ..UnitRecord::default()
    }
}

fn bulk(app: &PreparedApp, flow: u32, felt: &Felt, end: Time) -> UnitRecord {
    let throughput = felt.point.throughput;
    let qoe = match &app.model {
        model @ Model::Formula(_) => felt.score(model, throughput, &app.factors),
        _ => throughput.mbps(),
    };
    let bytes = (throughput * end.since(Time::ZERO)).get();
    UnitRecord {
        flow,
        bytes,
        duration_ms: end.as_millis_f64(),
        finished: true,
        qoe,
        ..UnitRecord::default()
    }
}

/// Whether this application's experience cannot be negative, so that twice as much means something:
/// not the logarithm of video (Mortise Eq. 8), nor minus the wait of web pages (Eq. 22). Formulas
/// may turn out negative all the same; their scores say so.
pub fn is_ratio(app: &PreparedApp, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Video(_) => false,
        Outcome::Requests(_) => !matches!(app.model, Model::Web(_)),
        Outcome::Call(_) | Outcome::Endless => true,
    }
}

/// The score of each of `flows` users: the arithmetic mean over its units. A user without a unit
/// asked for nothing after the warmup, and has no score.
pub fn users(units: &[UnitRecord], flows: u32) -> Vec<f64> {
    let score = |flow| {
        let own = || units.iter().filter(|unit| unit.flow == flow);
        let count = own().count();
        (count > 0).then(|| own().map(|unit| unit.qoe).sum::<f64>() / count as f64)
    };
    (0..flows).filter_map(score).collect()
}
