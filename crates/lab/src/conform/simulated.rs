//! Trimtab's algorithms in the simulator.

use trimtab_cc::{CongestionControl, Spec, SpecError};
use trimtab_sim::{Control, FlowConfig, Transport, World, WorldConfig};
use trimtab_units::{Bytes, Duration, Time};

use super::check::By;
use super::subject::{Family, Look, Scene, Subject, Trial};
use crate::run::datapath::RunError;

/// An algorithm of Trimtab on the simulator's QUIC.
#[derive(Clone, Debug)]
pub struct Simulated {
    name: String,
    spec: Spec,
}

impl Simulated {
    /// What its name begins with.
    pub const PREFIX: &str = "sim:";

    /// An algorithm by its text, e.g. `cubic`.
    ///
    /// # Errors
    /// There is no such algorithm.
    pub fn new(text: &str) -> Result<Self, SpecError> {
        Ok(Self { name: format!("{}{text}", Self::PREFIX), spec: text.parse()? })
    }
}

impl Subject for Simulated {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> Family {
        Family::named(self.spec.algorithm().name)
    }

    fn is_ours(&self, _: By) -> bool {
        true
    }

    fn packet(&self) -> Bytes {
        Transport::quic().packet
    }

    fn begin(&self, scene: &Scene) -> Result<Box<dyn Trial>, RunError> {
        let control = Control::Algorithm { spec: self.spec, steerer: None };
        let half = |delay: Duration| delay / 2;
        let mut flow =
            FlowConfig::new(control, Transport::quic(), scene.app.clone(), Duration::ZERO);
        flow.forward_delay = scene.rtt.map(half);
        flow.reverse_delay = scene.rtt.map(half);
        flow.seed = scene.seed;
        let links = vec![(scene.link.clone(), scene.seed)];
        Ok(Box::new(World::new(&WorldConfig { links, flows: vec![flow] })))
    }
}

impl Trial for World {
    fn run_until(&mut self, until: Time) -> Result<(), RunError> {
        Self::run_until(self, until);
        Ok(())
    }

    fn look(&mut self) -> Look {
        let flow = &self.flows()[0];
        Look {
            at: self.now(),
            window: flow.window(),
            inflight: flow.inflight(),
            sent: flow.sent().packets,
            lost: flow.sent().lost,
            goodput: flow.received().goodput,
            srtt: flow.srtt(),
            pacing: flow.governor().algorithm().and_then(CongestionControl::pacing_rate),
        }
    }
}
