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

    /// The reduction was for nothing (RFC 9438 §4.9): takes it back, and recovery ends. Whether
    /// there was one to take back.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::testing::{acked, lost};
    use proptest::prelude::*;
    use trimtab_units::{Bytes, Duration};

    const MSS: Bytes = Bytes::new(1500);

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// An acknowledgement that arrives at `now` of a packet that left at `sent`, in ms.
    fn ack(now: u64, sent: u64) -> Ack {
        acked(at(now), at(sent), MSS, Duration::from_millis(now - sent))
    }

    /// RFC 9002 §7.3.2: losses of packets that were sent before the reduction belong to it, and so
    /// does one sent in the same instant.
    #[test]
    fn one_reduction_for_what_was_in_flight() {
        let mut episode = Episode::default();
        assert!(!episode.recovering());
        assert!(episode.on_loss(&lost(at(100), at(50))));
        assert!(episode.recovering());
        for sent in [0, 99, 100] {
            assert!(!episode.on_loss(&lost(at(130), at(sent))), "sent at {sent} ms");
        }
        assert!(episode.on_loss(&lost(at(160), at(101))), "sent after the reduction");
        assert!(!episode.on_loss(&lost(at(170), at(160))), "that reduction counts now");
    }

    /// RFC 9002 §7.3.2 ends recovery with a packet that was sent after it began; RFC 6675 §5 with
    /// all that was outstanding then, which the transport knows.
    #[test]
    fn recovery_ends_with_what_was_sent_after_it_began() {
        let mut episode = Episode::default();
        episode.on_loss(&lost(at(100), at(50)));
        assert!(episode.on_ack(&ack(120, 99)));
        assert!(episode.on_ack(&ack(150, 100)), "sent in the instant of the reduction");
        let holes = Ack { in_recovery: true, ..ack(151, 101) };
        assert!(episode.on_ack(&holes), "the transport still fills holes");
        assert!(!episode.on_ack(&ack(152, 101)));
        assert!(!episode.recovering());
    }

    /// RFC 5681 §3.1: the threshold is lowered by the first timeout, and held by those after it.
    #[test]
    fn a_timeout_opens_an_episode_unless_one_is_open() {
        let mut episode = Episode::default();
        assert!(episode.on_timeout(at(300)));
        assert!(!episode.recovering(), "slow start follows, in which the window grows");
        assert!(!episode.on_timeout(at(900)), "nothing was acknowledged between them");
        assert!(!episode.on_ack(&ack(950, 900)));
        assert!(episode.on_timeout(at(1500)), "something was");
        let mut losing = Episode::default();
        losing.on_loss(&lost(at(100), at(50)));
        assert!(!losing.on_timeout(at(400)), "the loss has lowered the threshold");
        assert!(!losing.on_loss(&lost(at(410), at(400))), "and it wrote off what had been sent");
        assert!(losing.on_loss(&lost(at(500), at(401))));
    }

    #[test]
    fn stuck_is_before_anything_newer_arrived() {
        let mut episode = Episode::default();
        assert!(!episode.is_stuck(&ack(90, 10)), "no loss yet");
        episode.on_loss(&lost(at(100), at(50)));
        assert!(episode.is_stuck(&ack(120, 99)));
        assert!(!episode.is_stuck(&ack(120, 100)));
        episode.on_ack(&ack(130, 101));
        assert!(!episode.is_stuck(&ack(131, 99)), "recovery is over");
    }

    /// RFC 9438 §4.9: the window comes back and recovery ends; a timeout that follows is a new one.
    #[test]
    fn a_spurious_loss_ends_recovery_if_there_was_a_reduction() {
        let mut window = Window::new(&Config::with_mss(MSS, 0));
        let mut episode = Episode::default();
        assert!(!episode.undo(&mut window));
        episode.on_loss(&lost(at(100), at(50)));
        assert!(!episode.undo(&mut window), "nothing was taken");
        assert!(episode.recovering());
        window.reduce(MSS * 5);
        assert!(episode.undo(&mut window));
        assert_eq!((window.size, episode.recovering()), (MSS * 10, false));
        episode.on_timeout(at(300));
        window.collapse(Some(MSS * 5));
        assert!(episode.undo(&mut window));
        assert!(episode.on_timeout(at(900)), "the timeout before it was none");
    }

    proptest! {
        /// However losses come, between two reductions lies at least one packet sent after the
        /// first (RFC 9002 §7.3.2): of losses of one flight, one reduces.
        #[test]
        fn two_reductions_never_answer_one_flight(
            gaps in prop::collection::vec((1u64..50, 0u64..200), 1..60),
        ) {
            let mut episode = Episode::default();
            let (mut now, mut last) = (1000, None);
            for (gap, age) in gaps {
                now += gap;
                let sent = now - age.min(now);
                if episode.on_loss(&lost(at(now), at(sent))) {
                    prop_assert!(last.is_none_or(|reduced| sent > reduced));
                    last = Some(now);
                } else {
                    prop_assert!(last.is_some_and(|reduced| sent <= reduced));
                }
            }
        }
    }
}
