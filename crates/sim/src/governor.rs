//! What governs a sender's window: a congestion control algorithm, a sender that sees the link, or
//! somebody outside.

use trimtab_cc::migrate::{Switch, Switcher};
use trimtab_cc::resume::CarefulResume;
use trimtab_cc::{
    Ack, CongestionControl, Controller, Decision, Discarded, Feedback, Idle, Loss, LostPacket,
    Marked, Phase, Sent, Spec, Timeout,
};
use trimtab_steer::{Action, Collector, Driver};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::omniscient::{LinkView, Omniscient};
use crate::outside::{Dial, Outside};

/// What governs the window.
#[derive(Clone, Debug)]
pub enum Governor {
    /// An algorithm, or several that take over from each other, under steering or not.
    Driven(Driver),
    /// A sender that sees the links. The world shows them to it.
    Seeing(Omniscient),
    /// Somebody outside sets window and rate.
    Outside(Outside),
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
        on_established: Duration, on_packet_lost: &LostPacket, on_marked: &Marked,
        on_timeout: &Timeout, on_idle: &Idle, on_spurious_loss: Time, on_timer: Time,
        on_discarded: &Discarded, on_feedback: &Feedback<'_>
    );

    pub(crate) fn on_sent(&mut self, sent: &Sent) {
        match self {
            Self::Driven(driver) => driver.on_sent(sent),
            Self::Seeing(_) => {}
            Self::Outside(outside) => outside.on_sent(sent),
        }
    }

    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        match self {
            Self::Driven(driver) => driver.on_ack(ack),
            Self::Seeing(_) => {}
            Self::Outside(outside) => outside.on_ack(ack),
        }
    }

    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        match self {
            Self::Driven(driver) => driver.on_loss(loss),
            Self::Seeing(_) => {}
            Self::Outside(outside) => outside.on_loss(loss),
        }
    }

    /// Whether the world is to stop until somebody outside has decided.
    #[inline]
    pub(crate) fn awaits(&self) -> bool {
        match self {
            Self::Driven(driver) => driver.algorithm().awaiting().is_some(),
            Self::Seeing(_) => false,
            Self::Outside(outside) => outside.waits(),
        }
    }

    /// The answer. One that is set from outside goes on as it is set.
    pub(crate) fn on_decision(&mut self, decision: Decision) {
        match self {
            Self::Driven(driver) => driver.on_decision(decision),
            Self::Seeing(_) => {}
            Self::Outside(outside) => outside.go_on(),
        }
    }

    /// Sets window and rate. Whether that can be had: only of a flow that is set from outside.
    pub(crate) fn set(&mut self, dial: Dial) -> bool {
        match self {
            Self::Driven(_) | Self::Seeing(_) => false,
            Self::Outside(outside) => {
                outside.set(dial);
                true
            }
        }
    }

    /// The most that may be in flight now.
    #[inline]
    pub(crate) fn window(&self) -> Bytes {
        match self {
            Self::Driven(driver) => driver.window(),
            Self::Seeing(sender) => sender.window(),
            Self::Outside(outside) => outside.dial().window,
        }
    }

    /// The rate to pace at. A sender that sees the links needs none: its window says when to send.
    #[inline]
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        match self {
            Self::Driven(driver) => driver.pacing_rate(),
            Self::Seeing(_) => Some(Rate::MAX),
            Self::Outside(outside) => outside.dial().rate,
        }
    }

    /// When the algorithm or its steering has something to do.
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Driven(driver) => driver.next_timer(),
            Self::Seeing(_) | Self::Outside(_) => None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Driven(driver) => driver.phase(),
            Self::Seeing(_) | Self::Outside(_) => Phase::Steady,
        }
    }

    pub(crate) fn ssthresh(&self) -> Option<Bytes> {
        match self {
            Self::Driven(driver) => driver.ssthresh(),
            Self::Seeing(_) | Self::Outside(_) => None,
        }
    }

    /// Whether the transport leaves the window alone in recovery.
    pub(crate) fn manages_recovery(&self) -> bool {
        match self {
            Self::Driven(driver) => driver.manages_recovery(),
            Self::Seeing(_) | Self::Outside(_) => true,
        }
    }

    /// How often the sender looks at the links; `None` where it does not see them.
    #[inline]
    pub(crate) fn looks_every(&self) -> Option<Duration> {
        match self {
            Self::Driven(_) | Self::Outside(_) => None,
            Self::Seeing(_) => Some(Omniscient::LOOK),
        }
    }

    /// Shows the sender what it sees of the links.
    pub(crate) fn look(&mut self, view: &LinkView<'_>) {
        match self {
            Self::Driven(_) | Self::Outside(_) => {}
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
            Self::Seeing(_) | Self::Outside(_) => None,
        }
    }

    /// What somebody outside sets, where that governs.
    pub fn outside(&self) -> Option<&Outside> {
        match self {
            Self::Driven(_) | Self::Seeing(_) => None,
            Self::Outside(outside) => Some(outside),
        }
    }

    /// The algorithm, if one governs.
    pub fn algorithm(&self) -> Option<&Controller> {
        match self {
            Self::Driven(driver) => Some(driver.algorithm()),
            Self::Seeing(_) | Self::Outside(_) => None,
        }
    }

    /// What switches algorithms, where switching was prepared for.
    pub fn switcher(&self) -> Option<&Switcher> {
        match self {
            Self::Driven(driver) => driver.switcher(),
            Self::Seeing(_) | Self::Outside(_) => None,
        }
    }

    /// How far the connection has resumed, and what it observed; `None` where it does neither.
    pub fn resume(&self) -> Option<&CarefulResume> {
        match self {
            Self::Driven(driver) => driver.resume(),
            Self::Seeing(_) | Self::Outside(_) => None,
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
