//! One connection: who it is, what was measured on it, and what happens to it.

use std::fmt;
use std::net::SocketAddr;

use trimtab_cc::muses;
use trimtab_units::{Bytes, Duration, Time};

use crate::Algorithm;

/// Number of a connection, unique as long as the datapath is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// Who a connection is; fixed while it lives, but for algorithm and cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of the connection.
    pub id: FlowId,
    /// The algorithm that it ran when it was looked up, by its name in [`trimtab_cc::ALGORITHMS`];
    /// [`Link::algorithm`](crate::Link::algorithm) looks again.
    pub algorithm: &'static str,
    /// The socket's cookie (`SO_COOKIE`); `None` until anybody asked the kernel for it, and
    /// measurements were published after that.
    pub cookie: Option<u64>,
    /// Cookie of its network namespace (`SO_NETNS_COOKIE`); 0 where there is none.
    pub netns_cookie: u64,
    /// The cgroup that made the socket (its inode in the cgroup file system); `None` when unknown.
    pub cgroup: Option<u64>,
    /// The local address and port.
    pub local: SocketAddr,
    /// The remote address and port.
    pub remote: SocketAddr,
    /// Index of the device that it is bound to; `None` when to none.
    pub device: Option<u32>,
    /// When the algorithm got the connection, on `CLOCK_MONOTONIC`.
    pub opened: Time,
    /// Whether the connection was open before that.
    pub adopted: bool,
    /// Whether it began with the knobs of its destination
    /// ([`Datapath::set_towards`](crate::Datapath::set_towards)).
    pub towards: bool,
}

/// Sums since a connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes sent, retransmissions included.
    pub sent: Bytes,
    /// Bytes acknowledged.
    pub acked: Bytes,
    /// Bytes declared lost.
    pub lost: Bytes,
    /// Time in which the application did not hold the sender back.
    pub busy: Duration,
    /// Sum of all round-trip samples.
    pub rtt_sum: Duration,
    /// Their number.
    pub rtt_count: u64,
    /// Of the last acknowledgement that is in them, on `CLOCK_MONOTONIC`.
    pub last: Time,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It got the algorithm: it was established, or was given it while open.
    Open,
    /// Something happens on it again, since somebody watches it ([`Link::watch`](crate::Link::watch)).
    Active,
    /// It ended, or was given another algorithm. Its slot is free already.
    Close(Totals),
}

/// An event of the datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which connection.
    pub id: FlowId,
    /// Its slot, for [`Datapath::link`](crate::Datapath::link).
    pub slot: u32,
    /// When, on `CLOCK_MONOTONIC`.
    pub at: Time,
    /// What.
    pub kind: EventKind,
}

/// The state of a connection's changes of algorithm ([`Link::switch`](crate::Link::switch)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switching {
    /// What is to take over.
    pub pending: Option<Algorithm>,
    /// How often another algorithm took over.
    pub switches: u32,
    /// What the last time took; zero before the first.
    pub took: Duration,
    /// The datapath refused the last request, with this error number (`errno`).
    pub refused: Option<i32>,
}

/// Why the fallback took over from Muses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// Its states left the range of those that the model learnt from, and it left the path idle.
    Unknown,
    /// The window grew far beyond what the path carries.
    RunAway,
    /// It had no model.
    NoModel,
    /// Others filled the queue and left it hardly any of the path.
    Starved,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => muses::Alarm::Unknown.fmt(f),
            Self::RunAway => muses::Alarm::RunAway.fmt(f),
            Self::Starved => muses::Alarm::Starved.fmt(f),
            Self::NoModel => f.write_str("there is no model"),
        }
    }
}
