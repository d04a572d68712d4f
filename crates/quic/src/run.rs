//! A run: who takes part, over which link, and what is measured.

use trimtab_apps::{Application, Outcome};
use trimtab_lab::result::{SelectionsRecord, Series, SwitchRecord};
use trimtab_lab::run::course::{self, Member};
use trimtab_lab::run::datapath::{Run, Sample, Totals};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::Delays;
use trimtab_lab::run::selection;
use trimtab_lab::run::switches::{self, Glance, Watch};
use trimtab_lab::scenario::Job;
use trimtab_net::Capacity;
use trimtab_noq::Handle;
use trimtab_steer::Insight;
use trimtab_units::{Bytes, Duration, Time};

use crate::admission;
use crate::clock::Clock;
use crate::error::QuicError;
use crate::flow::{Flow, FlowConfig};
use crate::identity::Identity;
use crate::world::World;

/// A run of noq in virtual time.
#[derive(Debug)]
pub(crate) struct VirtualRun {
    world: World,
    capacity: Capacity,
    /// The end of the run, after which outstanding requests may finish.
    end: Time,
    /// Whether the first flow may switch algorithms, and its watch once it has a path.
    watches: bool,
    watch: Option<Watch>,
}

impl VirtualRun {
    /// A run of which nothing has happened.
    pub(crate) fn new(identity: &Identity, prepared: &Prepared, job: &Job) -> Self {
        let scenario = &prepared.plan.scenario;
        let end = Time::ZERO + scenario.duration;
        let clock = Clock::new(lead(job));
        let (there, back) = job.cell.rtt.halves();
        let flow = |(number, member): (usize, Member<'_>)| {
            let seed = job.seed ^ ((number as u64) << 32);
            let config = FlowConfig {
                governor: admission::governor(member.scheme, member.goal, prepared, seed),
                app: member.app,
                active: (Time::ZERO + member.start, end),
                forward_delay: there.clone(),
                reverse_delay: back.clone(),
                jitter: course::jitter(job),
                seed,
            };
            Flow::new(number, config, identity, clock)
        };
        let flows = course::members(prepared, job).into_iter().enumerate().map(flow).collect();
        let capacity = course::capacity(prepared, job);
        let link = course::bottleneck(prepared, job, capacity.clone());
        let world = World::new(clock, &link, job.seed, flows);
        let watches = admission::switches(&scenario.cc[job.scheme]);
        Self { world, capacity, end, watches, watch: None }
    }

    fn first(&self) -> &Flow {
        &self.world.flows()[0]
    }

    /// Looks whether the first flow has switched.
    fn look(&mut self) {
        let Some(metrics) = self.first().handle().and_then(Handle::metrics) else {
            return;
        };
        let glance = Glance {
            algorithm: metrics.algorithm,
            pending: metrics.pending,
            switches: metrics.switches,
            sent: self.first().sent(),
            dropped: self.first().dropped,
        };
        let now = self.world.now();
        self.watch.get_or_insert_with(|| Watch::new(&glance)).look(now, &glance);
    }
}

/// How long before a flow's part of the run its handshake begins: two round trips, until the client
/// knows that the server knows that all is well (RFC 9001 §4.1.2).
fn lead(job: &Job) -> Duration {
    (job.cell.rtt.longest() + job.cell.jitter) * 2 + Duration::from_millis(1)
}

impl Run for VirtualRun {
    type Error = QuicError;

    fn now(&self) -> Time {
        self.world.now()
    }

    fn advance(&mut self, until: Time) -> Result<(), QuicError> {
        while self.watches && self.world.now() < until.min(self.end) {
            self.world.run_until(until.min(self.world.now() + switches::STEP))?;
            self.look();
        }
        self.world.run_until(until)
    }

    fn goodput(&self, flow: usize) -> Bytes {
        self.world.flows()[flow].goodput()
    }

    fn carried(&self) -> Bytes {
        self.world.link_stats().departures.bytes
    }

    fn outcome(&self, flow: usize, now: Time) -> Outcome {
        self.world.flows()[flow].app().outcome(now)
    }

    fn sample(&mut self) -> Sample {
        // How long what waits now will take, as in the simulator.
        let wait = course::drain_time(&self.capacity, self.world.now(), self.world.queue());
        let metrics = self.first().handle().and_then(Handle::metrics);
        let path = self.world.flow_mut(0).path();
        Sample {
            queue_delay_ms: wait.as_millis_f64(),
            rtt_ms: path.as_ref().map_or(f64::NAN, |path| path.rtt.as_secs_f64() * 1e3),
            cwnd_bytes: path.as_ref().map_or(f64::NAN, |path| path.cwnd as f64),
            delta: metrics.as_ref().and_then(|m| m.knobs.get("delta")).unwrap_or(f64::NAN),
            insight: metrics.map(|metrics| metrics.insight).unwrap_or_default(),
        }
    }

    fn totals(&self) -> Vec<Totals> {
        let totals = |flow: &Flow| {
            let seen = flow.seen();
            Totals {
                packets: flow.sent(),
                retransmits: seen.lost,
                dropped: flow.dropped,
                rtt: Delays::from(&seen.rtt),
                rtts: seen.rtt.micros().clone(),
                queue: Delays::from(&flow.queue_delay),
            }
        };
        self.world.flows().iter().map(totals).collect()
    }

    fn switches(&self, series: &Series, endless: bool) -> Vec<SwitchRecord> {
        self.watch.as_ref().map_or_else(Vec::new, |watch| watch.records(series, endless))
    }

    fn selections(&self, own: usize) -> Option<SelectionsRecord> {
        let insight = |flow: &Flow| -> Option<Insight> { Some(flow.handle()?.metrics()?.insight) };
        selection::record(self.world.flows()[..own].iter().filter_map(insight))
    }
}
