//! From what a run measured to its record.

use trimtab_apps::{CallRecord, Outcome};
use trimtab_qoe::Sketch;
use trimtab_sim::Histogram;
use trimtab_units::{Bytes, Duration, Time};

use crate::result::{
    CellRecord, DelayRecord, QoeRecord, RctRecord, RivalsRecord, RttRecord, RunRecord,
    SelectionsRecord, Series, SwitchRecord, UnitRecord, UsersRecord,
};
use crate::run::Recording;
use crate::run::prepare::Prepared;
use crate::run::score::{FlowPoint, is_ratio, units, users};
use crate::scenario::{Competitor, Job, Scenario};
use crate::stats::{friendliness_ratio, jain};

/// What a run measured, whatever carried it.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// When the run was over, outstanding requests and all; it began at [`Time::ZERO`].
    pub ended: Time,
    /// Length of the part that throughput is measured over: from the end of the warmup to the end of
    /// the scenario.
    pub span: Duration,
    /// What the bottleneck delivered in that part, all flows together.
    pub carried: Bytes,
    /// What it could have delivered in that part.
    pub capacity: Bytes,
    /// The flows of the scheme.
    pub own: Vec<FlowMeasurement>,
    /// Those of its competitors.
    pub competing: Vec<FlowMeasurement>,
    /// The course over time.
    pub series: Series,
    /// What the first flow's changes of algorithm cost.
    pub switches: Vec<SwitchRecord>,
    /// What the scheme chose, where it chooses.
    pub selections: Option<SelectionsRecord>,
}

/// What a run measured of one flow.
#[derive(Clone, Debug)]
pub struct FlowMeasurement {
    /// Payload that reached the application in the measured part.
    pub goodput: Bytes,
    /// Packets sent, retransmissions included.
    pub packets: u64,
    /// How many of them were retransmissions.
    pub retransmits: u64,
    /// How many of them were lost on the path.
    pub dropped: u64,
    /// Round-trip times.
    pub rtt: Delays,
    /// Each of these, in µs.
    pub rtts: Sketch,
    /// Waits in the bottleneck's queue.
    pub queue: Delays,
    /// What the application went through.
    pub outcome: Outcome,
}

/// Many delays, in short.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    /// How many.
    pub count: u64,
    /// Their arithmetic mean.
    pub mean: Duration,
    /// Their median.
    pub p50: Duration,
    /// Their 95th percentile.
    pub p95: Duration,
}

impl From<&Histogram> for Delays {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            mean: histogram.mean(),
            p50: histogram.quantile(0.5),
            p95: histogram.quantile(0.95),
        }
    }
}

impl Measurement {
    /// What a flow got over the measured part of the run.
    fn point(&self, flow: &FlowMeasurement) -> FlowPoint {
        FlowPoint {
            throughput: flow.goodput / self.span,
            rtt: flow.rtt.mean,
            retransmitted: share(flow.retransmits, flow.packets),
        }
    }

    /// Every request or chunk of the scheme's users with its experience. Those of the warmup are
    /// left out, unless they never finished: else a user whom the warmup stalls for good would not
    /// show.
    fn units(&self, prepared: &Prepared, job: &Job) -> Vec<UnitRecord> {
        let app = &prepared.apps[job.app];
        let warm = prepared.plan.scenario.warmup.as_millis_f64();
        let of_flow = |(i, flow): (usize, &FlowMeasurement)| {
            let bulk = matches!(flow.outcome, Outcome::Call(_) | Outcome::Endless);
            units(app, &flow.outcome, i as u32, self.point(flow), &flow.rtts, self.ended)
                .into_iter()
                .filter(move |u| u.start_ms >= warm || bulk || !u.finished)
        };
        self.own.iter().enumerate().flat_map(of_flow).collect()
    }

    /// Experience across the scheme's users, of these units.
    fn users(&self, prepared: &Prepared, job: &Job, units: &[UnitRecord]) -> UsersRecord {
        let app = &prepared.apps[job.app];
        let ratio = self.own.iter().all(|flow| is_ratio(app, &flow.outcome));
        UsersRecord::of(&users(units, self.own.len() as u32), ratio)
    }

    /// What the run is judged by, in the unit of the QoE model: more is better.
    pub(crate) fn score(&self, prepared: &Prepared, job: &Job) -> f64 {
        self.users(prepared, job, &self.units(prepared, job)).score()
    }

    /// The rate of each competing flow, in Mbit/s: of one that comes and goes, while it asks for
    /// data. `None` where that is at no time of the measured part.
    fn competing_rates(&self, prepared: &Prepared, job: &Job) -> Vec<Option<f64>> {
        let Scenario { warmup, duration, .. } = prepared.plan.scenario;
        let shares = prepared.plan.competitors(job).iter().flat_map(|c| {
            let comes_and_goes = c.stop.is_some() || c.on.is_some();
            c.turns(duration).into_iter().flat_map(move |turn| {
                let share = match comes_and_goes {
                    true => Competitor::active_share(turn, warmup, duration),
                    false => 1.0,
                };
                std::iter::repeat_n(share, c.flows as usize)
            })
        });
        // A measurement made by hand may have flows that no scenario names.
        let shares = shares.chain(std::iter::repeat(1.0));
        let rate = |(flow, share): (&FlowMeasurement, f64)| {
            (share > 0.0).then(|| (flow.goodput / self.span.mul_f64(share)).mbps())
        };
        self.competing.iter().zip(shares).map(rate).collect()
    }

    /// What the competing flows got, each the mean over flows; `None` where none was active.
    fn rivals(
        &self,
        prepared: &Prepared,
        job: &Job,
        rates: &[Option<f64>],
    ) -> Option<RivalsRecord> {
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let values: Vec<f64> = values.collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let sent = || self.competing.iter().filter(|f| f.packets > 0);
        let mut kinds = prepared.plan.competitors(job).iter().map(|rival| rival.cc.label());
        let cc = kinds.next().filter(|first| kinds.all(|other| other == *first));
        Some(RivalsRecord {
            cc: cc.map(str::to_owned),
            throughput_mbps: mean(&mut rates.iter().flatten().copied())?,
            rtt_ms: mean(&mut sent().map(|f| f.rtt.mean.as_millis_f64())).unwrap_or(0.0),
            loss_ratio: mean(&mut sent().map(|f| share(f.dropped, f.packets))).unwrap_or(0.0),
        })
    }
}

/// The record of a run.
pub fn record(
    prepared: &Prepared,
    job: &Job,
    measured: Measurement,
    recording: Recording,
    datapath: &str,
) -> RunRecord {
    let plan = &prepared.plan;
    let units = measured.units(prepared, job);
    let own: Vec<f64> = measured.own.iter().map(|f| (f.goodput / measured.span).mbps()).collect();
    let rates = measured.competing_rates(prepared, job);
    let outcomes: Vec<&Outcome> = measured.own.iter().map(|f| &f.outcome).collect();
    let is_request = matches!(outcomes[0], Outcome::Requests(_));
    let sum = |f: fn(&FlowMeasurement) -> u64| measured.own.iter().map(f).sum::<u64>();
    let packets = sum(|f| f.packets);
    let rtt = merged(&measured.own, |f| f.rtt);
    let queue = merged(&measured.own, |f| f.queue);
    let video = video(&outcomes, measured.ended);
    let seen = Seen::of(&outcomes);
    let mean_of = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
    let across = measured.users(prepared, job, &units);
    let rivals = measured.rivals(prepared, job, &rates);
    RunRecord {
        cc: plan.scenario.cc[job.scheme].label().to_owned(),
        app: prepared.apps[job.app].settings.label().to_owned(),
        datapath: datapath.to_owned(),
        transport: plan.scenario.transport,
        trace: plan.traces[job.trace].name.clone(),
        seed: job.seed,
        cell: CellRecord {
            rtt_ms: job.cell.rtt.longest().as_millis_f64(),
            rtt_steps: match job.cell.rtt.is_stepped() {
                true => job.cell.rtt.to_string(),
                false => String::new(),
            },
            buffer_bytes: job.cell.buffer_bytes(plan.links[job.trace].mean_rate()).get(),
            loss: job.cell.loss.get(),
            jitter_ms: job.cell.jitter.as_millis_f64(),
            flows: job.cell.flows,
            rivals: job
                .cell
                .rivals
                .map_or(String::new(), |set| plan.scenario.rivals[set].name.clone()),
        },
        qoe: QoeRecord::of(units.iter().map(|u| u.qoe)),
        users: across,
        throughput_mbps: own.iter().sum(),
        utilization: measured.carried.ratio(measured.capacity),
        rtt_ms: RttRecord { mean: rtt.0, p50: rtt.1, p95: rtt.2 },
        queue_delay_ms: DelayRecord { mean: queue.0, p95: queue.2 },
        loss_ratio: share(sum(|f| f.dropped), packets),
        retransmit_ratio: share(sum(|f| f.retransmits), packets),
        requests: outcomes.iter().map(|o| finished(o)).sum(),
        unfinished: outcomes.iter().map(|o| unfinished(o)).sum(),
        rct_ms: is_request.then(|| RctRecord::of(units.iter().map(|u| u.duration_ms))).flatten(),
        bitrate_kbps_mean: video.map(|v| v.bitrate_kbps).or(seen.map(|s| s.bitrate_kbps)),
        stall_ratio: video.map(|v| v.stall_ratio),
        stalls: video.map(|v| v.stalls),
        startup_ms: video.map(|v| v.startup_ms),
        latency_ms: video.and_then(|v| v.latency_ms),
        vmaf: seen.map(|s| s.vmaf),
        frame_delay_ms: seen.map(|s| s.delay),
        target_kbps_mean: seen.map(|s| s.target_kbps),
        freezes: seen.map(|s| s.freezes),
        freeze_ratio: seen.map(|s| s.freeze_ratio),
        drop_ratio: seen.map(|s| s.drop_ratio),
        jain: (own.len() > 1).then(|| jain(&own)).flatten(),
        friendliness: rivals
            .as_ref()
            .and_then(|rivals| friendliness_ratio(mean_of(&own), rivals.throughput_mbps)),
        flow_throughput_mbps: match own.len() + rates.len() {
            1 => Vec::new(),
            _ => own.into_iter().chain(rates.iter().map(|rate| rate.unwrap_or(0.0))).collect(),
        },
        rivals,
        switches: measured.switches,
        selections: measured.selections,
        call: recording.series.then(|| first_call(&outcomes)).flatten(),
        units: if recording.units { units } else { Vec::new() },
        series: recording.series.then_some(measured.series),
    }
}

/// The call of the first flow, without its sound: nothing shows that over time.
fn first_call(outcomes: &[&Outcome]) -> Option<CallRecord> {
    let Outcome::Call(call) = outcomes.first()? else { return None };
    Some(CallRecord { audio: Vec::new(), ..call.clone() })
}

/// Mean, median and 95th percentile of a delay over flows, in milliseconds: means weighted by their
/// count, and so percentiles, as the mean of the flows'.
fn merged(flows: &[FlowMeasurement], of: fn(&FlowMeasurement) -> Delays) -> (f64, f64, f64) {
    let all = || flows.iter().map(of);
    let count: f64 = all().map(|d| d.count as f64).sum();
    let weighted = |value: fn(&Delays) -> Duration| {
        let sum: f64 = all().map(|d| value(&d).as_millis_f64() * d.count as f64).sum();
        if count > 0.0 { sum / count } else { 0.0 }
    };
    (weighted(|d| d.mean), weighted(|d| d.p50), weighted(|d| d.p95))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Requests or chunks that are complete.
fn finished(outcome: &Outcome) -> u64 {
    let n = match outcome {
        Outcome::Requests(r) => r.iter().filter(|r| r.completed_at.is_some()).count(),
        Outcome::Video(v) => v.chunks.iter().filter(|c| c.completed_at.is_some()).count(),
        Outcome::Call(_) | Outcome::Endless => 0,
    };
    n as u64
}

/// Requests that did not finish. Video and calls end with the run: the chunk in download is none.
fn unfinished(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Requests(r) => r.iter().filter(|r| r.completed_at.is_none()).count() as u64,
        Outcome::Video(_) | Outcome::Call(_) | Outcome::Endless => 0,
    }
}

/// What the viewers of a run saw.
#[derive(Clone, Copy, Debug)]
struct Video {
    bitrate_kbps: f64,
    stall_ratio: f64,
    stalls: u64,
    startup_ms: f64,
    /// Live video only.
    latency_ms: Option<f64>,
}

/// Means over the flows; `None` unless they are videos.
fn video(outcomes: &[&Outcome], ended: Time) -> Option<Video> {
    let all: Vec<_> = outcomes
        .iter()
        .filter_map(|o| if let Outcome::Video(v) = o { Some(v) } else { None })
        .collect();
    if all.is_empty() || ended == Time::ZERO {
        return None;
    }
    let viewers = all.len() as f64;
    let rates: Vec<f64> = all
        .iter()
        .flat_map(|v| v.chunks.iter().filter(|c| c.completed_at.is_some()))
        .map(|c| c.bitrate.mbps() * 1000.0)
        .collect();
    let latencies: Vec<f64> = all
        .iter()
        .flat_map(|v| v.chunks.iter().filter_map(|c| c.latency))
        .map(Duration::as_millis_f64)
        .collect();
    let stalled: f64 = all.iter().map(|v| v.stall_time.as_secs_f64()).sum();
    let watched: f64 = all.iter().map(|v| (v.played + v.stall_time).as_secs_f64()).sum();
    Some(Video {
        bitrate_kbps: rates.iter().sum::<f64>() / rates.len().max(1) as f64,
        stall_ratio: if watched > 0.0 { stalled / watched } else { 1.0 },
        stalls: all.iter().map(|v| u64::from(v.stalls)).sum(),
        startup_ms: all.iter().map(|v| v.startup.as_millis_f64()).sum::<f64>() / viewers,
        latency_ms: (!latencies.is_empty())
            .then(|| latencies.iter().sum::<f64>() / latencies.len() as f64),
    })
}

/// What people in the calls of a run saw of each other.
#[derive(Clone, Copy, Debug)]
struct Seen {
    vmaf: f64,
    delay: DelayRecord,
    target_kbps: f64,
    freezes: f64,
    freeze_ratio: f64,
    drop_ratio: f64,
    bitrate_kbps: f64,
}

impl Seen {
    /// Means over the flows; `None` unless they are calls. A call in which nothing was presented has
    /// the delay of its whole length.
    fn of(outcomes: &[&Outcome]) -> Option<Self> {
        let calls: Vec<_> = outcomes
            .iter()
            .filter_map(|o| if let Outcome::Call(call) = o { Some(call) } else { None })
            .collect();
        let mean = |of: &dyn Fn(&CallRecord) -> f64| {
            calls.iter().map(|call| of(call)).sum::<f64>() / calls.len() as f64
        };
        let ms = |call: &CallRecord, delay: Option<Duration>| {
            delay.unwrap_or(call.length()).as_millis_f64()
        };
        (!calls.is_empty()).then(|| Self {
            vmaf: mean(&CallRecord::vmaf),
            delay: DelayRecord {
                mean: mean(&|call| ms(call, call.mean_delay())),
                p95: mean(&|call| ms(call, call.delay_quantile(0.95))),
            },
            target_kbps: mean(&|call| call.asked().mbps() * 1000.0),
            freezes: mean(&|call| f64::from(call.freezes().count)),
            freeze_ratio: mean(&CallRecord::freeze_ratio),
            drop_ratio: mean(&CallRecord::drop_ratio),
            bitrate_kbps: mean(&|call| call.bitrate().mbps() * 1000.0),
        })
    }
}

#[cfg(test)]
mod tests;
