//! A run: what is measured of a world, in virtual time or over sockets.

use trimtab_apps::{Application, Outcome};
use trimtab_lab::result::{SelectionsRecord, Series, SwitchRecord};
use trimtab_lab::run::datapath::{Run, Sample, Totals};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::Delays;
use trimtab_lab::run::selection;
use trimtab_lab::run::switches::{self, Glance, Watch};
use trimtab_lab::scenario::Job;
use trimtab_noq::Handle;
use trimtab_steer::Insight;
use trimtab_units::{Bytes, Time};

use crate::admission;
use crate::error::QuicError;
use crate::flow::Flow;
use crate::world::World;

/// A run of noq.
#[derive(Debug)]
pub(crate) struct QuicRun<W> {
    world: W,
    /// The end of the run, after which outstanding requests may finish.
    end: Time,
    /// Whether the first flow may switch algorithms, and its watch once it has a path.
    watches: bool,
    watch: Option<Watch>,
}

impl<W: World> QuicRun<W> {
    /// A run of which nothing has happened.
    pub(crate) fn new(world: W, prepared: &Prepared, job: &Job) -> Self {
        let scenario = &prepared.plan.scenario;
        let end = Time::ZERO + scenario.duration;
        let watches = admission::switches(&scenario.cc[job.scheme]);
        Self { world, end, watches, watch: None }
    }

    fn first(&self) -> &Flow<W::Carrier> {
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
            dropped: self.world.crossed(0).dropped,
        };
        let now = self.world.now();
        self.watch.get_or_insert_with(|| Watch::new(&glance)).look(now, &glance);
    }
}

impl<W: World> Run for QuicRun<W> {
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
        self.world.carried()
    }

    fn outcome(&self, flow: usize, now: Time) -> Outcome {
        self.world.flows()[flow].app().outcome(now)
    }

    fn sample(&mut self) -> Sample {
        let metrics = self.first().handle().and_then(Handle::metrics);
        let path = self.world.first().path();
        Sample {
            queue_delay_ms: self.world.queue_delay_ms(),
            rtt_ms: path.as_ref().map_or(f64::NAN, |path| path.rtt.as_secs_f64() * 1e3),
            cwnd_bytes: path.as_ref().map_or(f64::NAN, |path| path.cwnd as f64),
            delta: metrics.as_ref().and_then(|m| m.knobs.get("delta")).unwrap_or(f64::NAN),
            insight: metrics.map(|metrics| metrics.insight).unwrap_or_default(),
        }
    }

    fn totals(&self) -> Vec<Totals> {
        let totals = |(number, flow): (usize, &Flow<W::Carrier>)| {
            let (seen, crossed) = (flow.seen(), self.world.crossed(number));
            Totals {
                packets: flow.sent(),
                retransmits: seen.lost,
                dropped: crossed.dropped,
                rtt: Delays::from(&seen.rtt),
                rtts: seen.rtt.micros().clone(),
                queue: Delays::from(&crossed.queue),
            }
        };
        self.world.flows().iter().enumerate().map(totals).collect()
    }

    fn switches(&self, series: &Series, endless: bool) -> Vec<SwitchRecord> {
        self.watch.as_ref().map_or_else(Vec::new, |watch| watch.records(series, endless))
    }

    fn selections(&self, own: usize) -> Option<SelectionsRecord> {
        let insight = |flow: &Flow<W::Carrier>| -> Option<Insight> {
            Some(flow.handle()?.metrics()?.insight)
        };
        selection::record(self.world.flows()[..own].iter().filter_map(insight))
    }
}
