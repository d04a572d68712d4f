//! What governs a sender's window: a congestion control algorithm, or a sender that sees the link.

use trimtab_cc::migrate::{Switch, Switcher};
use trimtab_cc::resume::CarefulResume;
use trimtab_cc::{
    Ack, Controller, Decision, Discarded, Feedback, Idle, Loss, LostPacket, Marked, Phase, Sent,
    Spec, Timeout,
};
use trimtab_steer::{Action, Collector, Driver};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::omniscient::{LinkView, Omniscient};

/// What governs the window.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one a flow, and nearly all are algorithms")]
pub enum Governor {
    /// An algorithm, or several that take over from each other, under steering or not.
    Driven(Driver),
    /// A sender that sees the links. The world shows them to it.
    Seeing(Omniscient),
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
        on_spurious_loss: Time, on_timer: Time, on_discarded: &Discarded, on_decision: Decision,
        on_feedback: &Feedback<'_>
    );

    /// The most that may be in flight now.
    #[inline]
    pub(crate) fn window(&self) -> Bytes {
        match self {
            Self::Driven(driver) => driver.window(),
            Self::Seeing(sender) => sender.window(),
        }
    }

    /// The rate to pace at. A sender that sees the links needs none: its window says when to send.
    #[inline]
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Driven(driver) => driver.pacing_rate(),
            Self::Seeing(_) => Some(Rate::MAX),
        }
    }

    /// When the algorithm or its steering has something to do.
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Driven(driver) => driver.next_timer(),
            Self::Seeing(_) => None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Driven(driver) => driver.phase(),
            Self::Seeing(_) => Phase::Steady,
        }
    }

    pub(crate) fn ssthresh(&self) -> Option<Bytes> {
        match self {
            Self::Driven(driver) => driver.ssthresh(),
            Self::Seeing(_) => None,
        }
    }

    /// Whether the transport leaves the window alone in recovery.
    pub(crate) fn manages_recovery(&self) -> bool {
        match self {
            Self::Driven(driver) => driver.manages_recovery(),
            Self::Seeing(_) => true,
        }
    }

    /// How often the sender looks at the links; `None` where it does not see them.
    #[inline]
    pub(crate) fn looks_every(&self) -> Option<Duration> {
        match self {
            Self::Driven(_) => None,
            Self::Seeing(_) => Some(Omniscient::LOOK),
        }
    }

    /// Shows the sender what it sees of the links.
    pub(crate) fn look(&mut self, view: &LinkView<'_>) {
        match self {
            Self::Driven(_) => {}
            Self::Seeing(sender) => sender.look(view),
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
            Self::Seeing(_) => None,
        }
    }

    /// The algorithm, if one governs.
    pub fn algorithm(&self) -> Option<&Controller> {
        match self {
            Self::Driven(driver) => Some(driver.algorithm()),
            Self::Seeing(_) => None,
        }
    }

    /// What switches algorithms, where switching was prepared for.
    pub fn switcher(&self) -> Option<&Switcher> {
        match self {
            Self::Driven(driver) => driver.switcher(),
            Self::Seeing(_) => None,
        }
    }

    /// How far the connection has resumed, and what it observed; `None` where it does neither.
    pub fn resume(&self) -> Option<&CarefulResume> {
        match self {
            Self::Driven(driver) => driver.resume(),
            Self::Seeing(_) => None,
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
