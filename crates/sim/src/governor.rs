//! What governs a sender's window: a congestion control algorithm, or a sender that sees the link.

use trimtab_cc::migrate::{Switch, Switcher};
use trimtab_cc::{
    Ack, CongestionControl, Controller, Discarded, Idle, Loss, LostPacket, Marked, Phase, Sent,
    Spec, Timeout,
};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// What governs the window.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one a flow, and nearly all are algorithms")]
pub enum Governor {
    /// An algorithm.
    Algorithm(Controller),
    /// Algorithms that take over from each other.
    Switching(Box<Switcher>),
    /// A bound that no real sender can reach: it sees the link's future capacity and its queue, and
    /// sends exactly what keeps a queue of a few packets (the in-flight of Muses Eq. 1: what the link
    /// will deliver in a round trip, and a little more). The world sets its window.
    Omniscient {
        /// What may be in flight now.
        window: Bytes,
    },
}

macro_rules! forward {
    ($($event:ident: $type:ty),*) => {
        $(pub(crate) fn $event(&mut self, event: $type) {
            match self {
                Self::Algorithm(cca) => cca.$event(event),
                Self::Switching(cca) => cca.$event(event),
                Self::Omniscient { .. } => {}
            }
        })*
    };
}

impl Governor {
    forward!(
        on_established: Duration, on_sent: &Sent, on_ack: &Ack, on_packet_lost: &LostPacket, on_loss: &Loss,
        on_marked: &Marked, on_timeout: &Timeout, on_idle: &Idle, on_spurious_loss: Time, on_timer: Time,
        on_discarded: &Discarded
    );

    /// The most that may be in flight now.
    pub(crate) fn window(&self) -> Bytes {
        match self {
            Self::Algorithm(cca) => cca.window(),
            Self::Switching(cca) => cca.window(),
            Self::Omniscient { window } => *window,
        }
    }

    /// The rate to pace at. An omniscient sender needs none: its window says when to send.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Algorithm(cca) => cca.pacing_rate(),
            Self::Switching(cca) => cca.pacing_rate(),
            Self::Omniscient { .. } => Some(Rate::MAX),
        }
    }

    pub(crate) fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Algorithm(cca) => cca.next_timer(),
            Self::Switching(cca) => cca.next_timer(),
            Self::Omniscient { .. } => None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Algorithm(cca) => cca.phase(),
            Self::Switching(cca) => cca.phase(),
            Self::Omniscient { .. } => Phase::Steady,
        }
    }

    pub(crate) fn ssthresh(&self) -> Option<Bytes> {
        match self {
            Self::Algorithm(cca) => cca.ssthresh(),
            Self::Switching(cca) => cca.ssthresh(),
            Self::Omniscient { .. } => None,
        }
    }

    /// Whether the transport leaves the window alone in recovery.
    pub(crate) fn manages_recovery(&self) -> bool {
        match self {
            Self::Algorithm(cca) => cca.manages_recovery(),
            Self::Switching(cca) => cca.manages_recovery(),
            Self::Omniscient { .. } => true,
        }
    }

    /// The name of the algorithm that runs; empty where none governs.
    pub(crate) fn name(&self) -> &'static str {
        self.algorithm().map_or("", Controller::name)
    }

    /// The algorithm, if one governs.
    pub fn algorithm(&self) -> Option<&Controller> {
        match self {
            Self::Algorithm(cca) => Some(cca),
            Self::Switching(cca) => Some(cca.controller()),
            Self::Omniscient { .. } => None,
        }
    }

    /// Asks for another algorithm. Whether that can be had: only where switching was prepared for.
    pub fn request(&mut self, to: Spec, how: Switch, now: Time) -> bool {
        match self {
            Self::Switching(cca) => {
                cca.request(to, how, now);
                true
            }
            Self::Algorithm(_) | Self::Omniscient { .. } => false,
        }
    }

    /// The algorithm, if one governs.
    pub fn algorithm_mut(&mut self) -> Option<&mut Controller> {
        match self {
            Self::Algorithm(cca) => Some(cca),
            Self::Switching(cca) => Some(cca.controller_mut()),
            Self::Omniscient { .. } => None,
        }
    }
}
