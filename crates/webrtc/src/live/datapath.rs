//! WebRTC to a browser as a datapath.

use std::fmt;
use std::sync::{Arc, Mutex};

use trimtab_apps::{Application as _, CallConfig};
use trimtab_emu::{Config as Link, Fidelity, ServerSide, Topology, act_as_kernel};
use trimtab_lab::run::course::{Course, members};
use trimtab_lab::run::datapath::{Datapath, RunError, on_own_thread};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::Measurement;
use trimtab_lab::run::{emulated, stack};
use trimtab_lab::scenario::{Job, Scenario};
use trimtab_rtc::Config;
use trimtab_rtc::units::Time;

use super::browser::Browser;
use super::run::{CallRun, lock};
use super::studio::{Size, Studio};
use super::watch::Watch;
use super::{Live, Scene};
use crate::admission;
use crate::error::WebrtcError;
use crate::rates;

const NAME: &str = "webrtc";
const CLIP: &str = "bunny";

/// The size of the call's largest resolution; the encoder keeps to it.
fn size(call: &CallConfig) -> Size {
    let height = call.ladder.last().map_or(360, |rung| usize::from(rung.height));
    // Even, as the encoder wants it.
    Size { width: height * 16 / 9 / 2 * 2, height }
}

/// Calls from a live encoder to Chromium behind an emulated link, in real time.
pub struct Browsers {
    studio: Studio,
    kernel: String,
    fidelity: Mutex<Fidelity>,
}

impl Browsers {
    /// Checks that the scenario can be run here.
    ///
    /// # Errors
    /// The application is no call, several flows or competitors take part, or ffmpeg, the browser or
    /// the rights are missing: one message that says what to do.
    pub fn new(scenario: &Scenario) -> Result<Self, WebrtcError> {
        admission::check(scenario, NAME)?;
        let studio = Studio::from_env()?;
        // Whether there is a browser, and links can be made, shows before the first run.
        Browser::check()?;
        drop(Topology::new(ServerSide::Private)?);
        let kernel = format!("Linux {}", rustix::system::uname().release().to_string_lossy());
        Ok(Self { studio, kernel, fidelity: Mutex::default() })
    }

    fn run(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, WebrtcError> {
        act_as_kernel();
        let members = members(prepared, job);
        let member = &members[0];
        let call = member.app.call().ok_or(WebrtcError::NoCall { datapath: NAME })?.config();
        let clip = self.studio.clip(CLIP, size(call))?;
        let mut topology = Topology::new(ServerSide::Private)?;
        let begin = (job.seed, std::time::Instant::now());
        let (config, _) = stack::config(member.scheme, member.goal, prepared, begin);
        let config: Config = config;
        let (down, up) = emulated::link(prepared, job);
        let link = Link { down, up, seed: job.seed, log: None };
        let watch = Arc::new(Mutex::new(Watch::default()));
        let eye = watch.clone();
        let observer = Box::new(move |passage: &trimtab_emu::Passage<'_>| lock(&eye).see(passage));
        let live = Live::begin(
            &mut topology,
            Scene { clip: &clip, fps: call.fps.round() as u32 },
            (&config, rates::bitrates(call)),
            job.cell.rtt.first(),
            (&link, observer),
        )?;
        let end = Time::ZERO + prepared.plan.scenario.duration;
        let run = CallRun::new(live, &self.studio, watch, end);
        let measurement = Course::new(prepared, job, run).measure();
        let report = topology.stop()?;
        self.fidelity.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(&report);
        measurement
    }
}

impl fmt::Debug for Browsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browsers").field("fidelity", &self.fidelity).finish_non_exhaustive()
    }
}

impl Datapath for Browsers {
    fn name(&self) -> &'static str {
        NAME
    }

    fn system(&self) -> Option<String> {
        Some(self.kernel.clone())
    }

    /// One: encoder and browser keep a core each busy.
    fn jobs(&self) -> Option<usize> {
        Some(1)
    }

    fn carries_media(&self) -> bool {
        true
    }

    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError> {
        on_own_thread(|| self.run(prepared, job), WebrtcError::Thread)
    }

    fn warnings(&self) -> Vec<String> {
        let fidelity = self.fidelity.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if fidelity.is_good() { Vec::new() } else { vec![fidelity.to_string()] }
    }
}
