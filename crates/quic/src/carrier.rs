//! The seam between the two ends of a flow and what carries their datagrams, in virtual time or over
//! sockets.

use trimtab_units::Time;

use crate::side::Datagram;

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Server,
    Client,
}

/// What carries the datagrams of a flow. Times are by the clock of connections.
pub(crate) trait Carrier {
    /// An end sends a datagram.
    fn send(&mut self, from: End, now: Time, datagram: Datagram);

    /// The next datagram that has reached an end.
    fn take(&mut self, at: End, now: Time) -> Option<Datagram>;

    /// When the next datagram reaches an end, as far as that is known.
    fn next(&self, at: End) -> Time;
}
