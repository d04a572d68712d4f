//! What the agent needs of a datapath: so little that tests bring one of their own.

use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::Trees;
use trimtab_kernel::{
    Alarm, Algorithm, By, Datapath as Kernel, Error, Flow, Identity, Reporter, Switching, Totals,
    Towards,
};
use trimtab_qoe::Factors;
use trimtab_steer::Report;
use trimtab_units::Time;

/// Connections that can be steered.
pub trait Datapath {
    /// One of them.
    type Link: Link;

    /// All that are open.
    fn links(&self) -> Vec<Self::Link>;

    /// The one in a slot.
    fn link(&self, slot: u32) -> Option<Self::Link>;

    /// Lets connections ask the trees of a model; gives its number, for their knob `model`.
    ///
    /// # Errors
    /// There is no room for it.
    fn add_trees(&self, trees: &Trees<'_>) -> Result<f64, Error>;

    /// Sets knobs of connections to come by where they go; those that are not named are the defaults.
    ///
    /// # Errors
    /// There is no such knob, or no room.
    fn set_towards(&self, towards: &Towards, knobs: &[(String, f64)]) -> Result<(), Error>;

    /// Connections to come that go there begin with the defaults again.
    ///
    /// # Errors
    /// The kernel refuses.
    fn remove_towards(&self, towards: &Towards) -> Result<(), Error>;

    /// The destinations for which there are knobs of connections to come.
    fn towards(&self) -> Vec<Towards>;

    /// What connections to come are told apart by; where that changes, what there was is removed.
    ///
    /// # Errors
    /// The kernel refuses.
    fn tell_apart(&self, by: By) -> Result<(), Error>;

    /// Sets a knob of an algorithm's connections to come.
    ///
    /// # Errors
    /// It has no such knob.
    fn set_default(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error>;
}

/// One connection.
pub trait Link {
    /// Who it is.
    fn identity(&self) -> &Identity;

    /// The algorithm that it runs now.
    fn algorithm(&self) -> Algorithm;

    /// The socket's cookie as of now; `None` as long as nobody asked the kernel for it.
    fn cookie(&self) -> Option<u64>;

    /// Whether nothing is sent on it any more, though its socket is there.
    fn is_closing(&self) -> bool;

    /// Acknowledgements until now, to see at little cost whether anything happens; `None` when it has ended.
    fn acks(&self) -> Option<u64>;

    /// Begins an interval; `false` when it has ended.
    fn begin(&mut self, now: Time) -> bool;

    /// Ends the interval with a report, and begins the next; `None` when it has ended or no interval was begun.
    fn report(&mut self, now: Time, factors: Factors) -> Option<Report>;

    /// What was measured since it began; `None` when it has ended.
    fn totals(&self) -> Option<Totals>;

    /// Turns a knob; gives the value in force.
    ///
    /// # Errors
    /// There is no such knob, or the connection has ended.
    fn set(&self, knob: &str, value: f64) -> Result<f64, Error>;

    /// Turns a knob of an algorithm that may take over.
    ///
    /// # Errors
    /// It has no such knob, or the connection has ended.
    fn set_of(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error>;

    /// Why the guard of Muses let what is safe take over; `None` where it did not.
    fn alarm(&self) -> Option<Alarm>;

    /// The value of a knob, as last set by anybody.
    ///
    /// # Errors
    /// There is no such knob, or the connection has ended.
    fn knob(&self, knob: &str) -> Result<f64, Error>;

    /// Asks for another algorithm: with these knobs, or with all of them as they were left.
    ///
    /// # Errors
    /// It has no such knob, or the connection has ended.
    fn switch(
        &self,
        to: Algorithm,
        knobs: Option<&[(&str, f64)]>,
        how: Switch,
    ) -> Result<(), Error>;

    /// How it stands with that; `None` when it has ended.
    fn switching(&self) -> Option<Switching>;
}

/// A connection of the kernel's.
#[derive(Debug)]
pub struct KernelLink {
    flow: Flow,
    reporter: Option<Reporter>,
}

impl KernelLink {
    fn new(flow: Flow) -> Self {
        Self { flow, reporter: None }
    }
}

impl Datapath for Kernel {
    type Link = KernelLink;

    fn links(&self) -> Vec<KernelLink> {
        self.flows().map(KernelLink::new).collect()
    }

    fn link(&self, slot: u32) -> Option<KernelLink> {
        self.flow(slot).map(KernelLink::new)
    }

    fn add_trees(&self, trees: &Trees<'_>) -> Result<f64, Error> {
        Kernel::add_trees(self, trees)
    }

    fn set_default(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error> {
        self.set_default_of(algorithm, knob, value)
    }

    fn set_towards(&self, towards: &Towards, knobs: &[(String, f64)]) -> Result<(), Error> {
        Kernel::set_towards(
            self,
            towards,
            knobs.iter().map(|(knob, value)| (knob.as_str(), *value)),
        )
    }

    fn remove_towards(&self, towards: &Towards) -> Result<(), Error> {
        Kernel::remove_towards(self, towards)
    }

    fn towards(&self) -> Vec<Towards> {
        Kernel::towards(self)
    }

    fn tell_apart(&self, by: By) -> Result<(), Error> {
        Kernel::tell_apart(self, by)
    }
}

impl Link for KernelLink {
    fn identity(&self) -> &Identity {
        self.flow.identity()
    }

    fn algorithm(&self) -> Algorithm {
        self.flow.algorithm()
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

    fn begin(&mut self, now: Time) -> bool {
        self.reporter = Reporter::new(&self.flow, now);
        self.reporter.is_some()
    }

    fn report(&mut self, now: Time, factors: Factors) -> Option<Report> {
        self.reporter.as_mut()?.report(&self.flow, now, factors)
    }

    fn totals(&self) -> Option<Totals> {
        Some(self.flow.sample()?.totals())
    }

    fn set(&self, knob: &str, value: f64) -> Result<f64, Error> {
        self.flow.set(knob, value)
    }

    fn set_of(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error> {
        self.flow.set_of(algorithm, knob, value)
    }

    fn alarm(&self) -> Option<Alarm> {
        self.flow.sample()?.alarm
    }

    fn knob(&self, knob: &str) -> Result<f64, Error> {
        self.flow.knob(knob)
    }

    fn switch(
        &self,
        to: Algorithm,
        knobs: Option<&[(&str, f64)]>,
        how: Switch,
    ) -> Result<(), Error> {
        self.flow.switch(to, knobs, how)
    }

    fn switching(&self) -> Option<Switching> {
        self.flow.switching()
    }
}
