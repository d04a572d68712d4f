//! Packets as somebody at the side of the link sees them.

use trimtab_units::Time;

/// The way that a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

impl Direction {
    pub(crate) const BOTH: [Self; 2] = [Self::Down, Self::Up];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

/// What happens to a packet at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It came to the link. Its fate follows later, if only a moment.
    Arrived,
    /// The far end's kernel has it.
    Delivered {
        /// Since when.
        at: Time,
        /// When it left the queue; what remained was the propagation delay.
        departed: Time,
    },
    /// The link dropped it.
    Dropped {
        /// When.
        at: Time,
    },
}

/// A packet that passes.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    /// Where it goes.
    pub direction: Direction,
    /// The packet, from its IP header on.
    pub packet: &'a [u8],
    /// When it came to the link.
    pub arrived: Time,
    /// What happens to it.
    pub fate: Fate,
}

/// Observes every packet. Times count from the start of the link. It runs on the thread that carries the packets, so
/// it must be quick: what it takes, all packets are late by.
pub type Observer = Box<dyn FnMut(&Passage<'_>) + Send>;
