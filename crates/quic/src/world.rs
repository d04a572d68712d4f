//! The seam between a run and its world: a clock, a network, and the flows that live by them.

use trimtab_sim::Histogram;
use trimtab_units::{Bytes, Time};

use crate::carrier::Carrier;
use crate::error::QuicError;
use crate::flow::Flow;

/// What the link did with a flow's packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crossed {
    /// Those that it dropped.
    pub(crate) dropped: u64,
    /// How long the others waited in the queue.
    pub(crate) queue: Histogram,
}

/// A clock, a network, and the flows that live by them.
pub(crate) trait World {
    /// What carries the datagrams of a flow.
    type Carrier: Carrier;

    /// The time of the run.
    fn now(&self) -> Time;

    /// Goes on up to and including `until`, in the time of the run.
    ///
    /// # Errors
    /// A connection ended, or the user asked to stop.
    fn run_until(&mut self, until: Time) -> Result<(), QuicError>;

    /// The flows.
    fn flows(&self) -> &[Flow<Self::Carrier>];

    /// The first flow, to read noq's figures.
    fn first(&mut self) -> &mut Flow<Self::Carrier>;

    /// What the link did with a flow's packets.
    fn crossed(&self, flow: usize) -> Crossed;

    /// Bytes that have left the link towards the clients.
    fn carried(&self) -> Bytes;

    /// How long packets wait in the link's queue lately, in milliseconds; NaN when none did.
    fn queue_delay_ms(&mut self) -> f64;
}
