//! The course of a run in the simulator: a world from a job, simulated bin by bin, and what it measured.

use trimtab_apps::{App, Application, Outcome};
use trimtab_cc::get_knob;
use trimtab_net::{Capacity, JitterConfig, LinkConfig, LossConfig, MarkConfig};
use trimtab_sim::{Control, Flow, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::Steer;
use trimtab_units::{Bytes, Duration, Time};

use crate::result::Series;
use crate::run::control;
use crate::run::links;
use crate::run::prepare::Prepared;
use crate::run::record::{Delays, FlowMeasurement, Measurement};
use crate::run::selection;
use crate::run::switches::{self, Watch};
use crate::scenario::{AppKind, Job, TransportKind};

/// Length of a bin of the series.
pub const BIN: Duration = Duration::from_millis(100);
/// How long requests that are outstanding at the end may take to finish, so that slow contenders do
/// not look better for losing their slowest requests.
pub const GRACE: Duration = Duration::from_secs(60);

/// A run in progress. It is `Clone`: a copy goes on as the original would.
#[derive(Clone, Debug)]
pub(crate) struct Course<'a> {
    prepared: &'a Prepared,
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
    /// Where the first flow switches algorithms.
    watch: Option<Watch>,
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
        let capacity = links::at_seed(&prepared.plan.links[job.trace], job.seed);
        let end = Time::ZERO + scenario.duration;
        let transport = match scenario.transport {
            TransportKind::Quic => Transport::quic(),
            TransportKind::Tcp => Transport::linux_tcp(),
        };
        let flow = |control: Control, app: App, start: Duration, number: u64| FlowConfig {
            control,
            transport,
            app,
            start: Time::ZERO + start,
            stop: end,
            forward: vec![0],
            reverse: Vec::new(),
            forward_delay: job.cell.rtt.mul_f64(0.5),
            reverse_delay: job.cell.rtt - job.cell.rtt.mul_f64(0.5),
            jitter: match job.cell.jitter {
                Duration::ZERO => JitterConfig::None,
                max => JitterConfig::Uniform { max },
            },
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
                let governor = self::control(competitor.cc.kind(), prepared, job);
                let client = client(competitor.app, number);
                flows.push(flow(governor, client, competitor.start, number));
            }
        }
        let loss = job.cell.loss.get();
        let rate = capacity.mean_rate();
        let link = LinkConfig::new(capacity.clone())
            .mark(scenario.mark.map_or(MarkConfig::None, |mark| mark.on(rate, job.cell.rtt)))
            .queue(job.cell.queue(rate))
            .loss(if loss > 0.0 { LossConfig::Independent(loss) } else { LossConfig::None });
        let world = World::new(&WorldConfig { links: vec![(link, job.seed)], flows });
        let watch = Watch::of(&world.flows()[0]);
        let series = Series { bin_ms: BIN.as_millis_f64(), ..Series::default() };
        Self {
            prepared,
            world,
            capacity,
            own_flows,
            from: None,
            to: None,
            series,
            delivered_before: Bytes::ZERO,
            watch,
        }
    }

    /// The end of the run.
    pub(crate) fn end(&self) -> Time {
        Time::ZERO + self.prepared.plan.scenario.duration
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
        self.own().iter().all(|flow| is_answered(&flow.app().outcome(self.world.now())))
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
        if let Some(watch) = &mut self.watch {
            while self.world.now() < until {
                self.world.run_until(until.min(self.world.now() + switches::STEP));
                watch.look(self.world.now(), &self.world.flows()[0]);
            }
        }
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
        let insight = first.steerer().map(Steer::insight).unwrap_or_default();
        s.lambda.push(insight.preference.map_or(f64::NAN, |hints| hints.lambda));
        s.tau.push(insight.tradeoff.unwrap_or(f64::NAN));
    }

    /// Beginning and end of the measured part.
    fn span(&self) -> (Mark, Mark) {
        let now = self.mark();
        (self.from.clone().unwrap_or_else(|| now.clone()), self.to.clone().unwrap_or(now))
    }

    /// Runs to the end, and what it measured.
    pub(crate) fn measure(mut self) -> Measurement {
        self.finish();
        let (from, to) = self.span();
        let ended = self.world.now();
        let flow = |(i, flow): (usize, &Flow)| FlowMeasurement {
            goodput: to.goodput[i] - from.goodput[i],
            packets: flow.sent().packets,
            retransmits: flow.sent().retransmits,
            dropped: flow.received().dropped,
            rtt: Delays::from(&flow.sent().rtt),
            queue: Delays::from(&flow.received().queue_delay),
            outcome: flow.app().outcome(ended),
        };
        let mut own: Vec<FlowMeasurement> =
            self.world.flows().iter().enumerate().map(flow).collect();
        let competing = own.split_off(self.own_flows);
        let endless = matches!(own[0].outcome, Outcome::Bulk);
        let selections = selection::record(self.own());
        let switches = self.watch.map(|watch| watch.records(&self.series, endless));
        Measurement {
            ended,
            span: to.at.since(from.at),
            carried: to.carried - from.carried,
            capacity: self.capacity.bytes_between(from.at, to.at),
            own,
            competing,
            series: self.series,
            switches: switches.unwrap_or_default(),
            selections,
        }
    }
}

/// Whether no request is outstanding. Video and bulk data end with the run.
pub fn is_answered(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Download(r) | Outcome::Web(r) => r.iter().all(|r| r.completed_at.is_some()),
        Outcome::Vod(_) | Outcome::Bulk => true,
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
