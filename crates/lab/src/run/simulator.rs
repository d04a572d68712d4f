//! The simulator as a datapath: virtual time, and the same record from the same job, always.

use std::convert::Infallible;

use trimtab_apps::{Application, Outcome};
use trimtab_cc::get_knob;
use trimtab_cc::resume::Resumption;
use trimtab_net::Capacity;
use trimtab_sim::{Control, Flow, FlowConfig, Transport, World, WorldConfig};
use trimtab_steer::Steer;
use trimtab_steer::scheme::{Scheme, SchemeKind};
use trimtab_units::{Bytes, Rate, Time};

use crate::bound;
use crate::result::{SelectionsRecord, Series, SwitchRecord};
use crate::run::course::{self, Course, Member};
use crate::run::datapath::{Datapath, Run, RunError, Sample, Totals};
use crate::run::prepare::{Prepared, PreparedApp};
use crate::run::record::{Delays, Measurement};
use crate::run::selection;
use crate::run::switches::{self, Glance, Watch};
use crate::scenario::{Job, TransportKind};

/// The simulator. Only here are there upper bounds, which try each alternative on a copy of the world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Datapath for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn carries_media(&self) -> bool {
        true
    }

    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError> {
        let of_stack = |scheme: &&Scheme| matches!(scheme.kind(), SchemeKind::Stack(_));
        match prepared.plan.scenario.schemes().find(of_stack) {
            Some(scheme) => Err(format!(
                "{scheme}: it is a QUIC stack's own, which the simulator does not have: take \
                 --datapath quic-virtual or quic"
            )
            .into()),
            None => Ok(measure(prepared, job)),
        }
    }
}

/// Carries out a job in the simulator.
///
/// # Panics
/// A scheme is a QUIC stack's own.
pub fn measure(prepared: &Prepared, job: &Job) -> Measurement {
    match prepared.plan.scenario.cc[job.scheme].kind() {
        SchemeKind::Oracle(spec) => bound::setting::constant(prepared, job, spec),
        SchemeKind::OracleDynamic(spec) => bound::setting::dynamic(prepared, job, spec),
        SchemeKind::StaticBest(bound) => bound::selection::single(prepared, job, bound),
        SchemeKind::OracleSelect(bound) => bound::selection::course(prepared, job, bound),
        kind => finish(begin(prepared, job, &control(kind, prepared, &prepared.apps[job.app]))),
    }
}

/// A run at time zero in which `own` governs the flows of the scheme.
pub(crate) fn begin<'a>(
    prepared: &'a Prepared,
    job: &Job,
    own: &Control,
) -> Course<'a, SimulatedRun> {
    let world = World::new(&world(prepared, job, own));
    let watch = glance(&world.flows()[0]).as_ref().map(Watch::new);
    let (capacity, end) =
        (course::capacity(prepared, job), Time::ZERO + prepared.plan.scenario.duration);
    Course::new(prepared, job, SimulatedRun { world, capacity, end, watch })
}

/// The world of a job, in which `own` governs the flows of the scheme: they come before those of its
/// competitors. The bottleneck is link 0.
pub fn world(prepared: &Prepared, job: &Job, own: &Control) -> WorldConfig {
    let scenario = &prepared.plan.scenario;
    let transport = match scenario.transport {
        TransportKind::Quic => Transport::quic(),
        TransportKind::Noq => Transport::noq(),
        TransportKind::Tcp => Transport::linux_tcp(),
    };
    let end = Time::ZERO + scenario.duration;
    let (there, back) = job.cell.rtt.halves();
    let flow = |(number, member): (usize, Member<'_>)| FlowConfig {
        control: match number < job.cell.flows as usize {
            true => own.clone(),
            false => control(member.scheme.kind(), prepared, member.goal),
        },
        resume: resumption(member.scheme.kind(), Time::ZERO + member.start),
        transport,
        app: member.app,
        start: Time::ZERO + member.start,
        stop: end,
        forward: vec![0],
        reverse: Vec::new(),
        forward_delay: there.clone(),
        reverse_delay: back.clone(),
        jitter: course::jitter(job),
        seed: job.seed ^ ((number as u64) << 32),
    };
    let flows = course::members(prepared, job).into_iter().enumerate().map(flow).collect();
    let capacity = course::capacity(prepared, job);
    let links = vec![(course::bottleneck(prepared, job, capacity), job.seed)];
    WorldConfig { links, flows }
}

/// Runs to the end, and what it measured.
pub(crate) fn finish(course: Course<'_, SimulatedRun>) -> Measurement {
    let Ok(measurement) = course.measure();
    measurement
}

/// Goes on until `until`.
pub(crate) fn advance(course: &mut Course<'_, SimulatedRun>, until: Time) {
    let Ok(()) = course.advance(until);
}

/// What governs the flows of a scheme in the simulator, for the users of an application.
fn control(kind: &SchemeKind, prepared: &Prepared, app: &PreparedApp) -> Control {
    match kind.governing() {
        SchemeKind::Muses(settings) => {
            Control::Muses { policy: prepared.policy(settings).clone(), safe: settings.safe }
        }
        SchemeKind::Rival(settings) => Control::Rival(prepared.rival(settings).clone()),
        SchemeKind::Omniscient => Control::Omniscient,
        kind => {
            let (spec, steerer) = prepared.steering(kind, app);
            Control::Algorithm { spec, steerer }
        }
    }
}

/// How a connection of a scheme that begins then resumes.
fn resumption(kind: &SchemeKind, start: Time) -> Option<Resumption> {
    match kind {
        SchemeKind::Resume(resuming) => Some(resuming.resumption(start)),
        _ => None,
    }
}

/// A run in the simulator. A copy goes on as the original would.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedRun {
    pub(crate) world: World,
    capacity: Capacity,
    /// The end of the run, after which outstanding requests may finish.
    end: Time,
    /// Where the first flow switches algorithms.
    watch: Option<Watch>,
}

impl Run for SimulatedRun {
    type Error = Infallible;

    fn now(&self) -> Time {
        self.world.now()
    }

    fn advance(&mut self, until: Time) -> Result<(), Infallible> {
        if let Some(watch) = self.watch.as_mut().filter(|_| self.world.now() < self.end) {
            while self.world.now() < until {
                self.world.run_until(until.min(self.world.now() + switches::STEP));
                if let Some(glance) = glance(&self.world.flows()[0]) {
                    watch.look(self.world.now(), &glance);
                }
            }
        }
        self.world.run_until(until);
        Ok(())
    }

    fn goodput(&self, flow: usize) -> Bytes {
        self.world.flows()[flow].received().goodput
    }

    fn carried(&self) -> Bytes {
        self.world.link_stats(0).departures.bytes
    }

    fn outcome(&self, flow: usize, now: Time) -> Outcome {
        self.world.flows()[flow].app().outcome(now)
    }

    fn sample(&mut self) -> Sample {
        // How long what waits now will take: the wait of a packet that arrives at the end of the bin.
        let wait = course::drain_time(&self.capacity, self.world.now(), self.world.queue(0));
        let first = &self.world.flows()[0];
        let srtt = first.srtt();
        let delta = first.governor().algorithm().and_then(|cca| get_knob(cca, "delta"));
        Sample {
            queue_delay_ms: wait.as_millis_f64(),
            rtt_ms: if srtt.is_zero() { f64::NAN } else { srtt.as_millis_f64() },
            cwnd_bytes: first.window().as_f64(),
            delta: delta.unwrap_or(f64::NAN),
            insight: first.steerer().map(Steer::insight).unwrap_or_default(),
        }
    }

    fn target(&self) -> Option<Rate> {
        self.world.flows()[0].media_rate()
    }

    fn totals(&self) -> Vec<Totals> {
        let totals = |flow: &Flow| Totals {
            packets: flow.sent().packets,
            retransmits: flow.sent().retransmits,
            dropped: flow.received().dropped,
            rtt: Delays::from(&flow.sent().rtt),
            rtts: flow.sent().rtt.micros().clone(),
            queue: Delays::from(&flow.received().queue_delay),
        };
        self.world.flows().iter().map(totals).collect()
    }

    fn switches(&self, series: &Series, endless: bool) -> Vec<SwitchRecord> {
        self.watch.as_ref().map_or_else(Vec::new, |watch| watch.records(series, endless))
    }

    fn selections(&self, own: usize) -> Option<SelectionsRecord> {
        let steerers = self.world.flows()[..own].iter().filter_map(Flow::steerer);
        selection::record(steerers.map(Steer::insight))
    }
}

/// A flow that can switch; of others there is nothing to see.
fn glance(flow: &Flow) -> Option<Glance> {
    let switcher = flow.governor().switcher()?;
    Some(Glance {
        algorithm: switcher.spec().algorithm().name,
        pending: switcher.pending().map(|spec| spec.algorithm().name),
        switches: switcher.switches(),
        sent: flow.sent().packets,
        dropped: flow.received().dropped,
    })
}
