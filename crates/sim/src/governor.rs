//! What governs a sender's window: a congestion control algorithm, or a sender that sees the link.

use trimtab_cc::migrate::{Switch, Switcher};
use trimtab_cc::{
    Ack, Controller, Discarded, Idle, Loss, LostPacket, Marked, Phase, Sent, Spec, Timeout,
};
use trimtab_steer::{Action, Collector, Driver};
use trimtab_units::{Bytes, Duration, Rate, Time};

/// What governs the window.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one a flow, and nearly all are algorithms")]
pub enum Governor {
    /// An algorithm, or several that take over from each other, under steering or not.
    Driven(Driver),
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
            if let Self::Driven(driver) = self {
                driver.$event(event);
            }
        })*
    };
}

impl Governor {
    forward!(
        on_established: Duration, on_sent: &Sent, on_ack: &Ack, on_packet_lost: &LostPacket,
        on_loss: &Loss, on_marked: &Marked, on_timeout: &Timeout, on_idle: &Idle,
        on_spurious_loss: Time, on_timer: Time, on_discarded: &Discarded
    );

    /// The most that may be in flight now.
    #[inline]
    pub(crate) fn window(&self) -> Bytes {
        match self {
            Self::Driven(driver) => driver.window(),
            Self::Omniscient { window } => *window,
        }
    }

    /// The rate to pace at. An omniscient sender needs none: its window says when to send.
    #[inline]
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Driven(driver) => driver.pacing_rate(),
            Self::Omniscient { .. } => Some(Rate::MAX),
        }
    }

    /// When the algorithm or its steering has something to do.
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Driven(driver) => driver.next_timer(),
            Self::Omniscient { .. } => None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Driven(driver) => driver.phase(),
            Self::Omniscient { .. } => Phase::Steady,
        }
    }

    pub(crate) fn ssthresh(&self) -> Option<Bytes> {
        match self {
            Self::Driven(driver) => driver.ssthresh(),
            Self::Omniscient { .. } => None,
        }
    }

    /// Whether the transport leaves the window alone in recovery.
    pub(crate) fn manages_recovery(&self) -> bool {
        match self {
            Self::Driven(driver) => driver.manages_recovery(),
            Self::Omniscient { .. } => true,
        }
    }

    /// What collects the reports, where a steering wants them.
    #[inline]
    pub(crate) fn collector_mut(&mut self) -> Option<&mut Collector> {
        self.driver_mut()?.collector_mut()
    }

    /// The algorithm under its steering, if one governs.
    #[inline]
    pub(crate) fn driver_mut(&mut self) -> Option<&mut Driver> {
        match self {
            Self::Driven(driver) => Some(driver),
            Self::Omniscient { .. } => None,
        }
    }

    /// The algorithm, if one governs.
    pub fn algorithm(&self) -> Option<&Controller> {
        match self {
            Self::Driven(driver) => Some(driver.algorithm()),
            Self::Omniscient { .. } => None,
        }
    }

    /// What switches algorithms, where switching was prepared for.
    pub fn switcher(&self) -> Option<&Switcher> {
        match self {
            Self::Driven(driver) => driver.switcher(),
            Self::Omniscient { .. } => None,
        }
    }

    /// Asks for another algorithm. Whether that can be had: only where switching was prepared for.
    pub fn request(&mut self, to: Spec, how: Switch, now: Time) -> bool {
        let action = Action::Switch { to, how };
        self.driver_mut().is_some_and(|driver| driver.act(now, &action).is_ok())
    }

    /// The algorithm, if one governs.
    pub fn algorithm_mut(&mut self) -> Option<&mut Controller> {
        self.driver_mut().map(Driver::algorithm_mut)
    }
}
