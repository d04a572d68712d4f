//! s2n-quic in virtual time as a datapath: runs with one flow.

use std::fmt;
use std::sync::Arc;

use trimtab_apps::{Application, Concurrency, Outcome};
use trimtab_lab::run::course::{self, Course, Member};
use trimtab_lab::run::datapath::{Datapath, Run, RunError, Sample, Totals};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::{Delays, Measurement};
use trimtab_lab::scenario::{Job, Scenario};
use trimtab_net::Capacity;
use trimtab_steer::scheme::SchemeKind;
use trimtab_units::{Bytes, Time};

use super::world::{ACK_DELAY, Governor, S2nWorld, lead};
use crate::admission;
use crate::clock::Clock;
use crate::error::QuicError;
use crate::virtual_world::Propagation;

const NAME: &str = "s2n-virtual";

/// s2n-quic in virtual time. Any number of runs can be made at once.
pub struct S2nVirtual;

impl S2nVirtual {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// It asks for TCP, or a scheme needs the simulator.
    pub fn new(scenario: &Scenario) -> Result<Self, QuicError> {
        admission::check(scenario, NAME)?;
        Ok(Self)
    }
}

impl fmt::Debug for S2nVirtual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("S2nVirtual")
    }
}

impl Datapath for S2nVirtual {
    fn name(&self) -> &'static str {
        NAME
    }

    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError> {
        let [member] = <[Member<'_>; 1]>::try_from(course::members(prepared, job)).map_err(|_| {
            "--datapath s2n-virtual runs one flow; take quic-virtual for several, or competitors"
        })?;
        if member.app.concurrency() != Concurrency::InOrder {
            return Err(
                "--datapath s2n-virtual runs bulk data and downloads, on one stream; take \
                        quic-virtual for other applications"
                    .into(),
            );
        }
        let clock = Clock::new(lead(job.cell.rtt.longest() + job.cell.jitter));
        let scheme = member.scheme;
        if let SchemeKind::Stack(_) = scheme.kind().governing() {
            return Err(format!("{scheme}: it is of another stack than s2n-quic").into());
        }
        let (config, wants_factors) =
            admission::config(scheme, member.goal, prepared, (job.seed, clock));
        let governor = Governor::Ours(Arc::new(config));
        let link = course::bottleneck(prepared, job, course::capacity(prepared, job));
        let propagation =
            Propagation { halves: job.cell.rtt.halves(), jitter: course::jitter(job) };
        let (seeded, client) = ((&link, job.seed), (member.app, ACK_DELAY));
        let world = S2nWorld::new(clock, seeded, &propagation, governor, client, wants_factors)?;
        let run = S2nRun { world, capacity: link.capacity.clone() };
        Course::new(prepared, job, run).measure()
    }

    fn warnings(&self) -> Vec<String> {
        vec![
            "s2n-quic draws its keys from the system: the same seed gives other results each time"
                .to_owned(),
        ]
    }
}

/// A run.
struct S2nRun {
    world: S2nWorld,
    capacity: Capacity,
}

impl Run for S2nRun {
    type Error = RunError;

    fn now(&self) -> Time {
        self.world.now()
    }

    fn advance(&mut self, until: Time) -> Result<(), RunError> {
        self.world.run_until(until)
    }

    fn goodput(&self, _: usize) -> Bytes {
        self.world.goodput()
    }

    fn carried(&self) -> Bytes {
        self.world.carried().0
    }

    fn outcome(&self, _: usize, now: Time) -> Outcome {
        self.world.with_app(|app| app.outcome(now))
    }

    fn sample(&mut self) -> Sample {
        let metrics = self.world.handle().and_then(|handle| handle.metrics());
        let (seen, (_, waits)) = (self.world.seen(), self.world.carried());
        Sample {
            queue_delay_ms: course::drain_time(&self.capacity, self.now(), waits).as_millis_f64(),
            rtt_ms: seen.srtt.as_millis_f64(),
            cwnd_bytes: seen.window.into(),
            delta: metrics.as_ref().and_then(|m| m.knobs.get("delta")).unwrap_or(f64::NAN),
            insight: metrics.map(|metrics| metrics.insight).unwrap_or_default(),
        }
    }

    fn totals(&self) -> Vec<Totals> {
        let (seen, (packets, crossed)) = (self.world.seen(), self.world.crossed());
        vec![Totals {
            packets,
            retransmits: seen.lost,
            dropped: crossed.dropped,
            rtt: Delays::from(&seen.rtt),
            rtts: seen.rtt.micros().clone(),
            queue: Delays::from(&crossed.queue),
        }]
    }
}
