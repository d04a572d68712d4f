//! Implements `trimtab-datapath` for the kernel's TCP.

use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::Trees;
use trimtab_datapath::{
    Alarm, Algorithm as Neutral, By, Error, Identity, Link, Switching, Totals, Towards,
};
use trimtab_qoe::Factors;
use trimtab_steer::Report;
use trimtab_units::Time;

use crate::algorithm::Algorithm;
use crate::datapath::Datapath;
use crate::flow::Flow;
use crate::reporter::Reporter;

/// [`Algorithm::ALL`] in the types of `trimtab-datapath`.
const NEUTRAL: [Neutral; Algorithm::ALL.len()] = {
    let mut all = [Algorithm::ALL[0].neutral(); Algorithm::ALL.len()];
    let mut i = 1;
    while i < all.len() {
        all[i] = Algorithm::ALL[i].neutral();
        i += 1;
    }
    all
};

/// A connection of the kernel's TCP.
#[derive(Debug)]
pub struct KernelLink {
    flow: Flow,
    /// Boxed, since who is idle has none.
    reporter: Option<Box<Reporter>>,
}

impl From<Flow> for KernelLink {
    fn from(flow: Flow) -> Self {
        Self { flow, reporter: None }
    }
}

impl trimtab_datapath::Datapath for Datapath {
    type Link = KernelLink;

    const ALGORITHMS: &'static [Neutral] = &NEUTRAL;

    fn links(&self) -> Vec<KernelLink> {
        self.flows().map(KernelLink::from).collect()
    }

    fn link(&self, slot: u32) -> Option<KernelLink> {
        self.flow(slot).map(KernelLink::from)
    }

    fn add_trees(&self, trees: &Trees<'_>) -> Result<f64, Error> {
        Ok(Datapath::add_trees(self, trees)?)
    }

    fn set_default(&self, algorithm: Neutral, knob: &str, value: f64) -> Result<f64, Error> {
        Ok(self.set_default_of(Algorithm::of(algorithm)?, knob, value)?)
    }

    fn set_towards(&self, towards: &Towards, knobs: &[(String, f64)]) -> Result<(), Error> {
        let knobs = knobs.iter().map(|(knob, value)| (knob.as_str(), *value));
        Ok(Datapath::set_towards(self, towards, knobs)?)
    }

    fn remove_towards(&self, towards: &Towards) -> Result<(), Error> {
        Ok(Datapath::remove_towards(self, towards)?)
    }

    fn towards(&self) -> Vec<Towards> {
        Datapath::towards(self)
    }

    fn tell_apart(&self, by: By) -> Result<(), Error> {
        Ok(Datapath::tell_apart(self, by)?)
    }
}

impl Link for KernelLink {
    fn identity(&self) -> &Identity {
        self.flow.identity()
    }

    fn algorithm(&self) -> Neutral {
        self.flow.algorithm().neutral()
    }

    fn cookie(&self) -> Option<u64> {
        self.flow.cookie()
    }

    fn is_closing(&self) -> bool {
        self.flow.is_closing()
    }

    fn acks(&self) -> Option<u64> {
        self.flow.acks()
    }

    fn watch(&mut self) -> bool {
        self.reporter = None;
        self.flow.watch()
    }

    fn begin(&mut self, now: Time) -> bool {
        self.reporter = Reporter::new(&self.flow, now).map(Box::new);
        self.reporter.is_some()
    }

    fn report(&mut self, now: Time, factors: Factors) -> Option<Report> {
        self.reporter.as_mut()?.report(&self.flow, now, factors)
    }

    fn totals(&self) -> Option<Totals> {
        Some(self.flow.sample()?.totals)
    }

    fn set(&self, knob: &str, value: f64) -> Result<f64, Error> {
        Ok(self.flow.set(knob, value)?)
    }

    fn set_of(&self, algorithm: Neutral, knob: &str, value: f64) -> Result<f64, Error> {
        Ok(self.flow.set_of(Algorithm::of(algorithm)?, knob, value)?)
    }

    fn alarm(&self) -> Option<Alarm> {
        self.flow.sample()?.alarm
    }

    fn knob(&self, knob: &str) -> Result<f64, Error> {
        Ok(self.flow.knob(knob)?)
    }

    fn switch(&self, to: Neutral, knobs: Option<&[(&str, f64)]>, how: Switch) -> Result<(), Error> {
        Ok(self.flow.switch(Algorithm::of(to)?, knobs, how)?)
    }

    fn switching(&self) -> Option<Switching> {
        self.flow.switching()
    }
}
