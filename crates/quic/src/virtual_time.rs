//! noq in virtual time as a datapath.

use std::fmt;

use trimtab_lab::run::course::Course;
use trimtab_lab::run::datapath::{Datapath, RunError};
use trimtab_lab::run::prepare::Prepared;
use trimtab_lab::run::record::Measurement;
use trimtab_lab::scenario::{Job, Scenario};

use crate::admission;
use crate::error::QuicError;
use crate::identity::Identity;
use crate::run::QuicRun;
use crate::virtual_world::VirtualWorld;

const NAME: &str = "quic-virtual";

/// noq in virtual time. Any number of runs can be made at once.
pub struct Virtual {
    identity: Identity,
    /// What cannot be repeated.
    unseeded: Vec<String>,
}

impl Virtual {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// It asks for TCP, or a scheme needs the simulator.
    pub fn new(scenario: &Scenario) -> Result<Self, QuicError> {
        admission::check(scenario, NAME)?;
        Ok(Self { identity: Identity::new()?, unseeded: admission::unseeded(scenario) })
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
        let world = VirtualWorld::new(&self.identity, prepared, job);
        Ok(Course::new(prepared, job, QuicRun::new(world, prepared, job)).measure()?)
    }

    fn warnings(&self) -> Vec<String> {
        self.unseeded.clone()
    }
}
