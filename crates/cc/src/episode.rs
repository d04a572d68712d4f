//! Loss episodes: one window reduction per round trip, however many packets it cost.

use trimtab_units::Time;

use crate::window::Window;
use crate::{Ack, Loss};

/// Which losses and acknowledgements belong to the reduction that was made last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Episode {
    /// When the last reduction was made; what was sent until then belongs to it.
    start: Option<Time>,
    /// In recovery: the window does not grow.
    recovering: bool,
    /// A timeout, and nothing acknowledged since.
    stalled: bool,
}

impl Episode {
    /// Whether these losses open a new episode, which then starts now. Losses of packets that were
    /// sent before the last reduction do not (RFC 9002 §7.3.2).
    pub(crate) fn on_loss(&mut self, loss: &Loss) -> bool {
        self.opens(loss.now, loss.newest_sent_at)
    }

    /// The same for what happened `now` to packets of which the newest was sent then.
    pub(crate) fn opens(&mut self, now: Time, newest_sent_at: Time) -> bool {
        if self.start.is_some_and(|start| newest_sent_at <= start) {
            return false;
        }
        self.start = Some(now);
        self.recovering = true;
        true
    }

    /// Whether this timeout opens a new episode. A timeout during recovery, or one that follows
    /// another without an acknowledgement between them, does not: the slow start threshold was
    /// lowered already and is held (RFC 5681 §3.1).
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        let new = !self.recovering && !self.stalled;
        self.start = Some(now);
        // What follows is slow start, in which the window grows from the first acknowledgement on.
        self.recovering = false;
        self.stalled = true;
        new
    }

    /// Whether recovery goes on after this acknowledgement. It ends once a packet sent after the
    /// reduction is acknowledged (RFC 9002 §7.3.2) and the transport has no more holes to fill
    /// (for TCP: everything outstanding at the reduction is acknowledged, RFC 6675 §5).
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> bool {
        self.stalled = false;
        if self.recovering
            && !ack.in_recovery
            && self.start.is_none_or(|start| ack.newest_sent_at > start)
        {
            self.recovering = false;
        }
        self.recovering
    }

    /// Whether nothing that was sent since the reduction has arrived by this acknowledgement: on TCP
    /// the first hole is still open then, because what fills it is what left first.
    pub(crate) fn is_stuck(&self, ack: &Ack) -> bool {
        self.recovering && self.start.is_some_and(|start| ack.newest_sent_at < start)
    }

    /// The reduction was for nothing (RFC 9438 §4.9): takes it back, and recovery ends. Whether there
    /// was one to take back.
    pub(crate) fn undo(&mut self, window: &mut Window) -> bool {
        let undone = window.undo();
        if undone {
            self.recovering = false;
            self.stalled = false;
        }
        undone
    }

    /// Whether the window is held because a reduction was just made.
    pub(crate) fn recovering(&self) -> bool {
        self.recovering
    }
}
