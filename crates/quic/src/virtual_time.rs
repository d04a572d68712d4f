//! noq in virtual time as a datapath.

use std::fmt;

use trimtab_lab::run::course::Course;
use trimtab_lab::run::datapath::{Datapath, RunError};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::Measurement;
use trimtab_lab::scenario::{Job, Scenario};
use trimtab_noq::Qlog;

use crate::admission;
use crate::error::QuicError;
use crate::identity::Identity;
use crate::logs::{self, RunLogs};
use crate::run::QuicRun;
use crate::virtual_world::VirtualWorld;

const NAME: &str = "quic-virtual";

/// noq in virtual time. Any number of runs can be made at once.
pub struct Virtual {
    identity: Identity,
    /// What cannot be repeated.
    unseeded: Vec<String>,
    qlog: Option<Qlog>,
}

impl Virtual {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// It asks for TCP, a scheme needs the simulator, or the folder `QLOGDIR` cannot be made.
    pub fn new(scenario: &Scenario) -> Result<Self, QuicError> {
        admission::check(scenario, NAME)?;
        let (identity, unseeded) = (Identity::new()?, admission::unseeded(scenario));
        Ok(Self { identity, unseeded, qlog: logs::from_env()? })
    }

    /// Logs each flow of each run there, and not where `QLOGDIR` says. Default: there, if it is set.
    #[must_use]
    pub fn with_qlog(self, qlog: impl Into<Option<Qlog>>) -> Self {
        Self { qlog: qlog.into(), ..self }
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

    fn measure(&self, prepared: &Prepared, job: &Job) -> Result<Measurement, RunError> {
        let logs = RunLogs::new(self.qlog.as_ref(), prepared, job);
        let world = VirtualWorld::new(&self.identity, prepared, job, logs);
        let measurement = Course::new(prepared, job, QuicRun::new(world, prepared, job)).measure();
        logs.flush();
        Ok(measurement?)
    }

    fn warnings(&self) -> Vec<String> {
        self.unseeded.clone()
    }
}
