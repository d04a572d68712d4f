//! The interceptors in virtual time as a datapath.

use std::convert::Infallible;
use std::fmt;
use std::time::Instant;

use trimtab_apps::{App, Application as _, Call, Outcome};
use trimtab_lab::run::course::{Course, members};
use trimtab_lab::run::datapath::{Datapath, Run, RunError, Sample, Totals};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::{Delays, Measurement};
use trimtab_lab::run::{emulated, stack};
use trimtab_lab::scenario::{Job, Scenario};
use trimtab_rtc::units::{Bytes, Duration, Rate, Time};
use trimtab_sim::Histogram;

use crate::admission;
use crate::error::WebrtcError;
use crate::virtual_world::{Calling, VirtualWorld};

const NAME: &str = "webrtc-virtual";

/// Calls over the interceptors of `rtc-interceptor` in virtual time. Any number of runs can be made
/// at once, and equal configurations give equal runs.
pub struct Virtual(());

impl Virtual {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// An application is no call, a scheme needs the simulator, or flows share the link.
    pub fn new(scenario: &Scenario) -> Result<Self, WebrtcError> {
        admission::check(scenario, NAME)?;
        Ok(Self(()))
    }
}

impl fmt::Debug for Virtual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Virtual")
    }
}

impl Datapath for Virtual {
    fn name(&self) -> &'static str {
        NAME
    }

    fn carries_media(&self) -> bool {
        true
    }

    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError> {
        let Some(member) = members(prepared, job).into_iter().next() else {
            return Err(WebrtcError::NoCall { datapath: NAME }.into());
        };
        let epoch = Instant::now();
        let begin = (job.seed, epoch);
        let (config, _) = stack::config(member.scheme, member.goal, prepared, begin);
        let (down, up) = emulated::link(prepared, job);
        let call = OfApp::new(member.app).ok_or(WebrtcError::NoCall { datapath: NAME })?;
        let world = VirtualWorld::new(&config, epoch, Box::new(call), (&down, &up), job.seed);
        let run = VirtualRun { world, rtt: Histogram::default() };
        let measured: Result<_, Infallible> = Course::new(prepared, job, run).measure();
        Ok(measured?)
    }
}

/// The call of an application, which has one.
struct OfApp(App);

impl OfApp {
    fn new(app: App) -> Option<Self> {
        app.call().is_some().then_some(Self(app))
    }
}

impl Calling for OfApp {
    fn call(&self) -> &Call {
        self.0.call().unwrap_or_else(|| unreachable!("it was checked"))
    }

    fn call_mut(&mut self) -> &mut Call {
        self.0.call_mut().unwrap_or_else(|| unreachable!("it was checked"))
    }
}

struct VirtualRun {
    world: VirtualWorld,
    rtt: Histogram,
}

impl Run for VirtualRun {
    type Error = Infallible;

    fn now(&self) -> Time {
        self.world.now()
    }

    fn advance(&mut self, until: Time) -> Result<(), Infallible> {
        self.world.run_until(until);
        Ok(())
    }

    /// What the receiver has reported as arrived.
    fn goodput(&self, _: usize) -> Bytes {
        self.world.handle.metrics().map_or(Bytes::ZERO, |metrics| metrics.delivered)
    }

    fn carried(&self) -> Bytes {
        self.world.carried()
    }

    fn outcome(&self, _: usize, now: Time) -> Outcome {
        Outcome::Call(self.world.call().record(now))
    }

    fn sample(&mut self) -> Sample {
        let queue_delay_ms = self.world.queue_delay_ms();
        sample(self.world.handle.metrics(), queue_delay_ms, &mut self.rtt)
    }

    fn target(&self) -> Option<Rate> {
        self.world.handle.metrics()?.target
    }

    fn totals(&self) -> Vec<Totals> {
        vec![Totals {
            packets: self.world.packets,
            retransmits: self.world.retransmits,
            dropped: self.world.dropped,
            rtt: Delays::from(&self.rtt),
            rtts: self.rtt.micros().clone(),
            queue: Delays::from(&self.world.queue),
        }]
    }
}

/// A point of a run's series, whose smoothed round-trip time is noted as well.
pub(crate) fn sample(
    metrics: Option<trimtab_rtc::Metrics>,
    queue_delay_ms: f64,
    rtt: &mut Histogram,
) -> Sample {
    let srtt = metrics.as_ref().and_then(|metrics| metrics.srtt);
    if let Some(srtt) = srtt {
        rtt.record(srtt);
    }
    Sample {
        queue_delay_ms,
        rtt_ms: srtt.map_or(f64::NAN, Duration::as_millis_f64),
        cwnd_bytes: metrics.as_ref().map_or(f64::NAN, |metrics| metrics.window.as_f64()),
        delta: metrics.as_ref().and_then(|m| m.knobs.get("delta")).unwrap_or(f64::NAN),
        insight: metrics.map(|metrics| metrics.insight).unwrap_or_default(),
    }
}
