//! What a host of connections, such as the agent, needs of a datapath: two traits and plain types.
//!
//! Nothing here names an operating system or a protocol stack. A datapath implements [`Datapath`]
//! and [`Link`]; a host that steers connections takes them. What all hosts do alike is here, too:
//! [`Attention`] says when to look at a connection, [`Responses`] completes its reports, and
//! [`Asked`] switches its algorithm.

mod algorithm;
mod asked;
mod attention;
mod connection;
mod error;
mod responses;
mod towards;

pub use algorithm::Algorithm;
pub use asked::{Asked, can_run};
pub use attention::{Attention, Found, IDLE_FIRST, IDLE_MAX, MEASURE, RESPONSES, until_report};
pub use connection::{Alarm, Event, EventKind, FlowId, Identity, Switching, Totals};
pub use error::Error;
pub use responses::{Responses, remaining};
pub use towards::{By, Towards};

use trimtab_cc::migrate::Switch;
use trimtab_cc::muses::Trees;
use trimtab_qoe::Factors;
use trimtab_steer::Report;
use trimtab_units::Time;

/// Connections that can be steered.
pub trait Datapath {
    /// One of them.
    type Link: Link;

    /// The algorithms that its connections can run.
    const ALGORITHMS: &'static [Algorithm];

    /// All connections that are open.
    fn links(&self) -> Vec<Self::Link>;

    /// The connection in a slot; `None` when the slot is free.
    fn link(&self, slot: u32) -> Option<Self::Link>;

    /// Lets connections ask the trees of a model; returns its number, for their knob `model`.
    ///
    /// # Errors
    /// There is no room for it.
    fn add_trees(&self, trees: &Trees<'_>) -> Result<f64, Error>;

    /// Sets knobs of connections to come by where they go. Knobs that are not named are the defaults.
    ///
    /// # Errors
    /// There is no such algorithm or knob, or no room.
    fn set_towards(&self, towards: &Towards, knobs: &[(String, f64)]) -> Result<(), Error>;

    /// Connections to come that go there begin with the defaults again.
    ///
    /// # Errors
    /// The datapath refuses.
    fn remove_towards(&self, towards: &Towards) -> Result<(), Error>;

    /// The destinations for which there are knobs of connections to come.
    fn towards(&self) -> Vec<Towards>;

    /// What connections to come are distinguished by. A change removes the knobs of all destinations.
    ///
    /// # Errors
    /// The datapath refuses.
    fn tell_apart(&self, by: By) -> Result<(), Error>;

    /// Sets a knob of an algorithm's connections to come; returns the value in force.
    ///
    /// # Errors
    /// There is no such algorithm or knob.
    fn set_default(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error>;
}

/// One connection.
pub trait Link {
    /// Who it is.
    fn identity(&self) -> &Identity;

    /// The algorithm that it runs now.
    fn algorithm(&self) -> Algorithm;

    /// The socket's cookie as of now; `None` where there is none, or nobody asked for it yet.
    fn cookie(&self) -> Option<u64>;

    /// Whether nothing is sent on it any more, though its socket is there.
    fn is_closing(&self) -> bool;

    /// Acknowledgements until now, to see at little cost whether anything happens; `None` when it
    /// has ended.
    fn acks(&self) -> Option<u64>;

    /// Gives up the interval that was begun, and asks for an event ([`EventKind::Active`]), once,
    /// with the next acknowledgement; `false` when the connection has ended or the datapath has no
    /// such events. An acknowledgement at this very moment may bring none: look at
    /// [`acks`](Self::acks) again afterwards.
    fn watch(&mut self) -> bool {
        false
    }

    /// Begins an interval; `false` when it has ended.
    fn begin(&mut self, now: Time) -> bool;

    /// Ends the interval with a report, and begins the next; `None` when it has ended or no interval
    /// was begun.
    fn report(&mut self, now: Time, factors: Factors) -> Option<Report>;

    /// What was measured since it began; `None` when it has ended.
    fn totals(&self) -> Option<Totals>;

    /// Sets a knob; returns the value in force.
    ///
    /// # Errors
    /// There is no such knob, or the connection has ended.
    fn set(&self, knob: &str, value: f64) -> Result<f64, Error>;

    /// Sets a knob of an algorithm that may take over; returns the value in force.
    ///
    /// # Errors
    /// There is no such algorithm or knob, or the connection has ended.
    fn set_of(&self, algorithm: Algorithm, knob: &str, value: f64) -> Result<f64, Error>;

    /// Why the guard of Muses let the fallback take over; `None` where it did not.
    fn alarm(&self) -> Option<Alarm>;

    /// The value of a knob, as last set by anybody.
    ///
    /// # Errors
    /// There is no such knob, or the connection has ended.
    fn knob(&self, knob: &str) -> Result<f64, Error>;

    /// Asks for another algorithm: with these knobs, or with all of them as they were left.
    ///
    /// # Errors
    /// There is no such algorithm or knob, or the connection has ended.
    fn switch(
        &self,
        to: Algorithm,
        knobs: Option<&[(&str, f64)]>,
        how: Switch,
    ) -> Result<(), Error>;

    /// The state of that request; `None` when the connection has ended.
    fn switching(&self) -> Option<Switching>;
}
