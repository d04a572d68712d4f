//! Sees that somebody else drains the queue, and joins.
//!
//! A flow that holds its window down to see who fills the queue (`mode.rs`) empties its own part of
//! it only. Flows of its kind that fill the rest would each take the others for strangers, and with
//! the window of CUBIC they would be. But the queue dips, by its share and in one round trip. Who
//! sees that, and did not lower its own window, drains too: then the queue empties, and they know.
//!
//! A flow that fills buffers lowers its window as well, when the queue is full. Such a dip begins at
//! the greatest delay, and a flow that competes does not join it.

use trimtab_units::Duration;

/// The queue dips when it falls by this share in a round trip: what one of six flows empties.
const FALL: f64 = 0.15;
/// The sender's own window stands if it is at least this share of what it was.
const STANDS: f64 = 0.97;
/// Round trips of which the delay is kept.
const ROUNDS: usize = 2;

/// Queueing delay and the sender's own window at the end of the last round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct Dips {
    levels: [Option<(Duration, f64)>; ROUNDS],
}

impl Dips {
    /// A round trip ended with this standing queueing delay and this window in bytes.
    pub(super) fn on_round(&mut self, queueing: Duration, window: f64) {
        self.levels.rotate_left(1);
        self.levels[ROUNDS - 1] = Some((queueing, window));
    }

    /// What the queue does next is the sender's own doing.
    pub(super) fn forget(&mut self) {
        self.levels = [None; ROUNDS];
    }

    /// The delay from which the queue dips to this one by more than `slack`, while the sender's own
    /// window stands; `None` if it does not.
    pub(super) fn dips_from(
        &self,
        queueing: Duration,
        window: f64,
        slack: Duration,
    ) -> Option<Duration> {
        let mut most = Duration::ZERO;
        for level in self.levels {
            let (before, own) = level?;
            if window < own * STANDS {
                return None;
            }
            most = most.max(before);
        }
        let falls = most - queueing;
        (falls > slack && falls > most.mul_f64(crate::x("X_FALL", FALL))).then_some(most)
    }
}
