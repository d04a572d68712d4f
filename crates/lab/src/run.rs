//! One run: a world from a job, its course, and its record.

use trimtab_apps::{App, Application, Outcome};
use trimtab_cc::get_knob;
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_sim::{Control, Flow, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::{Mortise, MortiseConfig, Steerer};
use trimtab_units::{Bytes, Duration, Time};

use crate::contender::{ContenderKind, MortiseSettings};
use crate::oracle;
use crate::prepare::{Prepared, PreparedApp};
use crate::result::{CellRecord, DelayRecord, QoeRecord, RctRecord, RttRecord, RunRecord, Series};
use crate::scenario::{AppKind, Buffer, Cell, Job};
use crate::score::{FlowPoint, units};
use crate::stats::{friendliness_ratio, jain};

/// Length of a bin of the series.
const BIN: Duration = Duration::from_millis(100);
/// How long requests that are outstanding at the end may take to finish, so that slow contenders do
/// not look better for losing their slowest requests.
const GRACE: Duration = Duration::from_secs(60);

/// What a record keeps besides its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Every request or chunk.
    pub units: bool,
    /// The course over time.
    pub series: bool,
}

/// Runs a job. The same job gives the same record, always.
pub fn run(prepared: &Prepared, job: &Job, recording: Recording) -> RunRecord {
    let contender = &prepared.plan.scenario.cc[job.contender];
    match contender.kind() {
        ContenderKind::Oracle(spec) => oracle::constant(prepared, job, spec, recording),
        ContenderKind::OracleDynamic(spec) => oracle::dynamic(prepared, job, spec, recording),
        kind => {
            let mut course = Course::new(prepared, job, &control(kind, &prepared.apps[job.app]));
            course.finish();
            course.record(recording)
        }
    }
}

/// What governs the flows of a contender.
fn control(kind: &ContenderKind, app: &PreparedApp) -> Control {
    match kind {
        ContenderKind::Rule(spec)
        | ContenderKind::Oracle(spec)
        | ContenderKind::OracleDynamic(spec) => Control::Algorithm { spec: *spec, steerer: None },
        ContenderKind::Mortise(settings) => mortise(*settings, false, app),
        ContenderKind::MortiseDisc(settings) => mortise(*settings, true, app),
        ContenderKind::Omniscient => Control::Omniscient,
    }
}

/// Copa, steered.
fn mortise(settings: MortiseSettings, discrete: bool, app: &PreparedApp) -> Control {
    let mut config = MortiseConfig::new(app.model.clone());
    config.factors = app.factors;
    config.sigma = settings.sigma;
    config.change_points = settings.change_point_detection;
    config.discrete = discrete;
    let steerer = Some(Steerer::Mortise(Mortise::new(config)));
    Control::Algorithm { spec: Mortise::algorithm(), steerer }
}

/// A run in progress. It is `Clone`: a copy goes on as the original would.
#[derive(Clone, Debug)]
pub(crate) struct Course<'a> {
    prepared: &'a Prepared,
    job: &'a Job,
    pub(crate) world: World,
    capacity: Capacity,
    /// Flows of the contender; those of competitors come after them.
    pub(crate) own_flows: usize,
    /// What each flow had delivered and the link had carried when the warmup ended.
    from: Option<Mark>,
    /// The same at the end of the run, before outstanding requests were allowed to finish.
    to: Option<Mark>,
    series: Series,
    /// Sums of the bin before: delivered bytes.
    delivered_before: Bytes,
}

/// What was delivered by a point in time.
#[derive(Clone, Debug)]
struct Mark {
    at: Time,
    goodput: Vec<Bytes>,
    carried: Bytes,
}

impl<'a> Course<'a> {
    /// A world at time zero in which `control` governs the flows of the contender.
    pub(crate) fn new(prepared: &'a Prepared, job: &'a Job, control: &Control) -> Self {
        let scenario = &prepared.plan.scenario;
        let app = &prepared.apps[job.app];
        let capacity = shifted(&prepared.plan.links[job.trace], job.seed);
        let end = Time::ZERO + scenario.duration;
        let flow = |control: Control, app: App, start: Duration, number: u64| FlowConfig {
            control,
            transport: Transport::quic(),
            app,
            start: Time::ZERO + start,
            stop: end,
            forward: vec![0],
            reverse: Vec::new(),
            forward_delay: job.cell.rtt.mul_f64(0.5),
            reverse_delay: job.cell.rtt - job.cell.rtt.mul_f64(0.5),
            jitter: trimtab_net::JitterConfig::None,
            seed: job.seed ^ (number << 32),
        };
        // Checked when the application was prepared: only the seed differs.
        let client = |kind: AppKind, number: u64| {
            app.app(kind, scenario.duration, job.seed + (number << 20))
                .unwrap_or_else(|_| App::bulk(&trimtab_apps::BulkConfig::default()))
        };
        let mut flows: Vec<FlowConfig> = (0..u64::from(job.cell.flows))
            .map(|i| {
                let start = Duration::from_nanos(scenario.stagger.as_nanos().saturating_mul(i));
                flow(control.clone(), client(app.settings.kind, i), start, i)
            })
            .collect();
        let own_flows = flows.len();
        for competitor in &scenario.competitor {
            for _ in 0..competitor.flows {
                let number = flows.len() as u64;
                let governor = self::control(competitor.cc.kind(), app);
                let client = client(competitor.app, number);
                flows.push(flow(governor, client, competitor.start, number));
            }
        }
        let loss = job.cell.loss.get();
        let link = LinkConfig::new(capacity.clone())
            .queue(queue(job.cell, &capacity))
            .loss(if loss > 0.0 { LossConfig::Independent(loss) } else { LossConfig::None });
        let world = World::new(&WorldConfig { links: vec![(link, job.seed)], flows });
        let series = Series { bin_ms: BIN.as_millis_f64(), ..Series::default() };
        Self {
            prepared,
            job,
            world,
            capacity,
            own_flows,
            from: None,
            to: None,
            series,
            delivered_before: Bytes::ZERO,
        }
    }

    /// The end of the run.
    pub(crate) fn end(&self) -> Time {
        Time::ZERO + self.prepared.plan.scenario.duration
    }

    /// The application of the contender.
    pub(crate) fn app(&self) -> &'a PreparedApp {
        &self.prepared.apps[self.job.app]
    }

    /// Runs to the end of the scenario and lets outstanding requests finish.
    pub(crate) fn finish(&mut self) {
        self.advance(self.end());
        let last = self.end() + GRACE;
        while !self.is_answered() && self.world.now() < last {
            self.world.run_until(self.world.now() + BIN);
        }
    }

    /// Runs up to `until`, bin by bin.
    pub(crate) fn advance(&mut self, until: Time) {
        let warm = Time::ZERO + self.prepared.plan.scenario.warmup;
        while self.world.now() < until {
            if self.from.is_none() && self.world.now() >= warm {
                self.from = Some(self.mark());
            }
            let next = until.min(self.world.now() + BIN);
            self.bin(next);
        }
        if until >= self.end() && self.to.is_none() {
            self.to = Some(self.mark());
        }
    }

    /// Whether no request of the contender is outstanding. Video and bulk data end with the run.
    fn is_answered(&self) -> bool {
        self.own().iter().all(|flow| match flow.app().outcome(self.world.now()) {
            Outcome::Download(r) | Outcome::Web(r) => r.iter().all(|r| r.completed_at.is_some()),
            Outcome::Vod(_) | Outcome::Bulk => true,
        })
    }

    /// The flows of the contender.
    pub(crate) fn own(&self) -> &[Flow] {
        &self.world.flows()[..self.own_flows]
    }

    fn mark(&self) -> Mark {
        Mark {
            at: self.world.now(),
            goodput: self.world.flows().iter().map(|f| f.received().goodput).collect(),
            carried: self.world.link_stats(0).departures.bytes,
        }
    }

    /// Simulates one bin and notes what happened in it.
    fn bin(&mut self, until: Time) {
        let from = self.world.now();
        self.world.run_until(until);
        let span = until.since(from);
        let delivered: Bytes = self.own().iter().map(|f| f.received().goodput).sum();
        let rate = (delivered - self.delivered_before) / span;
        let capacity = self.capacity.bytes_between(from, until) / span;
        let queue = self.world.queue(0);
        // How long what waits now will take: the wait of a packet that arrives at the end of the bin.
        let wait = drain_time(&self.capacity, until, queue);
        let first = &self.world.flows()[0];
        let knob = |name| first.governor().algorithm().and_then(|cca| get_knob(cca, name));
        let (delta, window, srtt) = (knob("delta"), first.window(), first.srtt());
        self.delivered_before = delivered;
        let s = &mut self.series;
        s.capacity_mbps.push(capacity.mbps());
        s.throughput_mbps.push(rate.mbps());
        s.queue_delay_ms.push(wait.as_millis_f64());
        s.rtt_ms.push(if srtt.is_zero() { f64::NAN } else { srtt.as_millis_f64() });
        s.cwnd_bytes.push(window.as_f64());
        s.delta.push(delta.unwrap_or(f64::NAN));
        let (lambda, tau) = match first.steerer() {
            Some(Steerer::Mortise(m)) => (m.hints().lambda, m.tradeoff()),
            None => (f64::NAN, f64::NAN),
        };
        s.lambda.push(lambda);
        s.tau.push(tau);
    }

    /// What a flow got over the measured part of the run.
    fn point(&self, flow: usize) -> FlowPoint {
        let (from, to) = self.span();
        let sent = self.world.flows()[flow].sent();
        let goodput = to.goodput[flow] - from.goodput[flow];
        FlowPoint {
            throughput: goodput / to.at.since(from.at),
            rtt: sent.rtt.mean(),
            retransmitted: share(sent.retransmits, sent.packets),
        }
    }

    /// Beginning and end of the measured part.
    fn span(&self) -> (Mark, Mark) {
        let now = self.mark();
        (self.from.clone().unwrap_or_else(|| now.clone()), self.to.clone().unwrap_or(now))
    }

    /// The record of a finished run.
    pub(crate) fn record(self, recording: Recording) -> RunRecord {
        let scenario = &self.prepared.plan.scenario;
        let (from, to) = self.span();
        let time = to.at.since(from.at);
        let now = self.world.now();
        let rates: Vec<f64> = (0..self.world.flows().len())
            .map(|i| ((to.goodput[i] - from.goodput[i]) / time).mbps())
            .collect();
        let (own, competing) = rates.split_at(self.own_flows);
        let outcomes: Vec<Outcome> = self.own().iter().map(|f| f.app().outcome(now)).collect();
        let warm = scenario.warmup.as_millis_f64();
        let all: Vec<_> = outcomes
            .iter()
            .enumerate()
            .flat_map(|(i, o)| units(self.app(), o, i as u32, self.point(i), now))
            .filter(|u| u.start_ms >= warm || matches!(outcomes[0], Outcome::Bulk))
            .collect();
        let sum = |f: &dyn Fn(&Flow) -> u64| self.own().iter().map(f).sum::<u64>();
        let packets = sum(&|f| f.sent().packets);
        let is_request = matches!(outcomes[0], Outcome::Download(_) | Outcome::Web(_));
        let finished = outcomes.iter().map(finished).sum();
        let several = rates.len() > 1;
        let mean_of = |v: &[f64]| v.iter().sum::<f64>() / v.len().max(1) as f64;
        let rtt = merged(&self, |f| &f.sent().rtt);
        let queue = merged(&self, |f| &f.received().queue_delay);
        let video = video(&outcomes, now);
        RunRecord {
            cc: scenario.cc[self.job.contender].label().to_owned(),
            app: self.app().settings.label().to_owned(),
            trace: self.prepared.plan.traces[self.job.trace].name.clone(),
            seed: self.job.seed,
            cell: CellRecord {
                rtt_ms: self.job.cell.rtt.as_millis_f64(),
                buffer_bytes: buffer_bytes(self.job.cell, &self.capacity).get(),
                loss: self.job.cell.loss.get(),
                flows: self.job.cell.flows,
            },
            qoe: QoeRecord::of(all.iter().map(|u| u.qoe)),
            throughput_mbps: own.iter().sum(),
            utilization: (to.carried - from.carried)
                .ratio(self.capacity.bytes_between(from.at, to.at)),
            rtt_ms: RttRecord { mean: rtt.0, p50: rtt.1, p95: rtt.2 },
            queue_delay_ms: DelayRecord { mean: queue.0, p95: queue.2 },
            loss_ratio: share(sum(&|f| f.received().dropped), packets),
            retransmit_ratio: share(sum(&|f| f.sent().retransmits), packets),
            requests: finished,
            rct_ms: is_request.then(|| RctRecord::of(all.iter().map(|u| u.duration_ms))).flatten(),
            bitrate_kbps_mean: video.map(|v| v.bitrate_kbps),
            stall_ratio: video.map(|v| v.stall_ratio),
            stalls: video.map(|v| v.stalls),
            startup_ms: video.map(|v| v.startup_ms),
            jain: (own.len() > 1).then(|| jain(own)).flatten(),
            friendliness: (!competing.is_empty())
                .then(|| friendliness_ratio(mean_of(own), mean_of(competing)))
                .flatten(),
            flow_throughput_mbps: if several { rates.clone() } else { Vec::new() },
            units: if recording.units { all } else { Vec::new() },
            series: recording.series.then_some(self.series),
        }
    }
}

/// The capacity as a run with this seed sees it: seed 0 from the start of the trace, others from
/// points that spread over it (multiples of the golden ratio), so that seeds differ in more than
/// their losses.
fn shifted(capacity: &Capacity, seed: u64) -> Capacity {
    match capacity {
        Capacity::Trace { trace, opportunity, .. } => {
            let golden = 0.618_033_988_749_894_9 * seed as f64;
            let share = golden - libm::floor(golden);
            let ms = (share * trace.period().as_millis_f64()) as u64;
            Capacity::Trace {
                trace: trace.clone(),
                offset: Duration::from_millis(ms),
                opportunity: *opportunity,
            }
        }
        other => other.clone(),
    }
}

/// The buffer of a cell in bytes; a packet counts 1500 bytes where it is given in packets.
fn buffer_bytes(cell: Cell, capacity: &Capacity) -> Bytes {
    match cell.buffer {
        Buffer::Bytes(bytes) => bytes,
        Buffer::Packets(n) => Bytes::new(1500) * n,
        // At least two packets: with less, nothing that sends in bursts gets through.
        Buffer::Bdp(k) => (capacity.mean_rate() * cell.rtt).mul_f64(k).max(Bytes::new(3000)),
    }
}

fn queue(cell: Cell, capacity: &Capacity) -> QueueConfig {
    match cell.buffer {
        Buffer::Packets(n) => QueueConfig::drop_tail_packets(u32::try_from(n).unwrap_or(u32::MAX)),
        _ => QueueConfig::drop_tail_bytes(buffer_bytes(cell, capacity)),
    }
}

/// How long the link takes from `now` for `bytes`; at most ten seconds.
fn drain_time(capacity: &Capacity, now: Time, bytes: Bytes) -> Duration {
    let (mut lo, mut hi) = (Duration::ZERO, Duration::from_secs(10));
    if bytes.is_zero() {
        return lo;
    }
    // To a tenth of a millisecond.
    for _ in 0..17 {
        let mid = Duration::from_nanos((lo.as_nanos() + hi.as_nanos()) / 2);
        if capacity.bytes_between(now, now + mid) >= bytes { hi = mid } else { lo = mid }
    }
    hi
}

/// Mean, median and 95th percentile of a quantity over the contender's flows, in milliseconds:
/// means weighted by packets, percentiles the mean of the flows'.
fn merged(course: &Course<'_>, of: fn(&Flow) -> &trimtab_sim::Histogram) -> (f64, f64, f64) {
    let all: Vec<_> = course.own().iter().map(of).filter(|h| h.count() > 0).collect();
    let count: f64 = all.iter().map(|h| h.count() as f64).sum();
    let weighted = |value: &dyn Fn(&trimtab_sim::Histogram) -> Duration| {
        let sum: f64 = all.iter().map(|h| value(h).as_millis_f64() * h.count() as f64).sum();
        if count > 0.0 { sum / count } else { 0.0 }
    };
    (weighted(&|h| h.mean()), weighted(&|h| h.quantile(0.5)), weighted(&|h| h.quantile(0.95)))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Requests or chunks that are complete.
fn finished(outcome: &Outcome) -> u64 {
    let n = match outcome {
        Outcome::Download(r) | Outcome::Web(r) => {
            r.iter().filter(|r| r.completed_at.is_some()).count()
        }
        Outcome::Vod(v) => v.chunks.iter().filter(|c| c.completed_at.is_some()).count(),
        Outcome::Bulk => 0,
    };
    n as u64
}

/// What the viewers of a run saw.
#[derive(Clone, Copy, Debug)]
struct Video {
    bitrate_kbps: f64,
    stall_ratio: f64,
    stalls: u64,
    startup_ms: f64,
}

/// Means over the flows; `None` unless they are videos.
fn video(outcomes: &[Outcome], now: Time) -> Option<Video> {
    let all: Vec<_> = outcomes
        .iter()
        .filter_map(|o| if let Outcome::Vod(v) = o { Some(v) } else { None })
        .collect();
    if all.is_empty() || now == Time::ZERO {
        return None;
    }
    let viewers = all.len() as f64;
    let rates: Vec<f64> = all
        .iter()
        .flat_map(|v| v.chunks.iter().filter(|c| c.completed_at.is_some()))
        .map(|c| c.bitrate.mbps() * 1000.0)
        .collect();
    let stalled: f64 = all.iter().map(|v| v.stall_time.as_secs_f64()).sum();
    let watched: f64 = all.iter().map(|v| (v.played + v.stall_time).as_secs_f64()).sum();
    Some(Video {
        bitrate_kbps: rates.iter().sum::<f64>() / rates.len().max(1) as f64,
        stall_ratio: if watched > 0.0 { stalled / watched } else { 1.0 },
        stalls: all.iter().map(|v| u64::from(v.stalls)).sum(),
        startup_ms: all.iter().map(|v| v.startup.as_millis_f64()).sum::<f64>() / viewers,
    })
}
