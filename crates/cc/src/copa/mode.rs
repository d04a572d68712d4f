//! TCP-competitive mode: what Copa does beside flows that fill the queue.
//!
//! The paper tells such flows by a queue that never empties, since Copa's own oscillation empties it
//! every five round trips. It does where the path holds more packets than 1/delta. Where it holds
//! fewer, the oscillation dies out: the window then weighs more in `window · delta · queueing delay`
//! than the delay that answers to it a round trip later. The queue stands, the minimum round-trip
//! time is forgotten, and the flow takes itself for a stranger. So here a queue that does not empty
//! is drained once, by holding the window below what the path holds for a round trip: if it empties,
//! it was our own.

use trimtab_units::{Duration, Time};

/// A queue whose delay is below this share of its swing is nearly empty. The paper takes a tenth
/// (§2.4), which its own flows do not always reach: two of delta 0.04 alone on a link swing between
/// 17 and 97 packets, four of 0.1 between 10 and 79. They would take each other for strangers, and
/// competing, fill the queue.
///
/// After a loss to others a tenth applies: see [`EMPTY_SHARE_LOST`].
const EMPTY_SHARE: f64 = 0.3;
/// And so is one whose delay is below this. The paper has no such slack; without it a queue of few
/// packets, or a link that sends in whole milliseconds as Mahimahi's do, is never seen empty.
pub(super) const EMPTY_SLACK: Duration = Duration::from_millis(1);
/// A queue of at most the slack may be none at all, if for so many round trips it was never below
/// the slack over [`SMALL_SHARE`]. Copa's oscillation empties it every five.
const SMALL_ROUNDS: u64 = 5;
const SMALL_SHARE: u64 = 10;
/// A queue that was not nearly empty for so many round trips may belong to others (§2.4).
const EMPTY_ROUNDS: u64 = 5;
/// A drain that emptied the queue says who filled it, and one that did not, what a queue of no more
/// than [`EMPTY_SLACK`] is; this long is the next one not asked for.
const ALONE: Duration = Duration::from_secs(1);
/// Competing, 1/delta stays in this range: at the default's 2 (§2.4), and at the knob's range.
const INVERSE_MIN: f64 = 2.0;
const INVERSE_MAX: f64 = 500.0;
/// For [`LOST_ROUNDS`] round trips after a loss to others, competing ends only below this share,
/// the paper's. Each loss halves 1/delta, and the queue then falls below 0.3 of its swing, though
/// the others are still there. Copa would leave, and start again from the delta that is set.
///
/// With this and [`KEPT_ROUNDS`], one `copa:mit` gets 0.52 of one CUBIC's rate, not 0.34
/// (48 Mbit/s, 20 ms, one bandwidth-delay product). At 50 ms it gets 0.41, not 0.25. In four such
/// products of 50 ms and more, CUBIC still starves it (0.09 to 0.19).
const EMPTY_SHARE_LOST: f64 = 0.1;
const LOST_ROUNDS: u32 = 20;
/// A loss is one to others if 1/delta was this much and so many round trips had none. Copa flows
/// in a small buffer lose more often, and at a lesser 1/delta. If every loss counted, four of them
/// in 10 packets would lose 36 % of their packets, not 12 %.
const LOST_INVERSE: f64 = 8.0;
const LOST_GAP: u32 = 5;
/// A flow that competes again within so many round trips keeps its 1/delta. The queue was empty
/// for a moment, and the others stayed.
const KEPT_ROUNDS: u32 = 50;

/// Default or competitive mode.
#[derive(Clone, Debug)]
pub(super) struct Mode {
    /// When the queue was last nearly empty, and when it last showed the minimum.
    empty_at: Time,
    floor_at: Time,
    /// When a drain was last tried.
    drained_at: Time,
    /// Since when a queue stands that is nearly empty, but never empty.
    small_from: Time,
    /// 1/delta by additive increase and multiplicative decrease, in competitive mode.
    inverse: Option<f64>,
    /// Whether this round had a loss.
    lost: bool,
    /// Round trips since a loss, and since one to others.
    lossless: u32,
    since_others: u32,
    /// 1/delta when it last stopped to compete, and round trips since then.
    kept: f64,
    since_kept: u32,
}

/// What the mode detector looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) rtt: Duration,
    /// With an empty queue.
    pub(super) base: Duration,
    /// The least of the last part of a round trip.
    pub(super) standing: Duration,
    /// Of the last four round trips.
    pub(super) rtt_max: Duration,
}

impl Mode {
    pub(super) fn new(now: Time) -> Self {
        Self {
            empty_at: now,
            floor_at: now,
            drained_at: now,
            small_from: now,
            inverse: None,
            lost: false,
            lossless: LOST_GAP,
            since_others: LOST_ROUNDS,
            kept: INVERSE_MIN,
            since_kept: KEPT_ROUNDS,
        }
    }

    /// The delta in force, given the one that is set.
    pub(super) fn delta(&self, set: f64) -> f64 {
        self.inverse.map_or(set, |inverse| set.min(1.0 / inverse))
    }

    /// Takes a round-trip time. Whether it shows the minimum.
    pub(super) fn on_rtt(&mut self, now: Time, sight: &Sight) -> bool {
        let swing = sight.rtt_max - sight.base;
        let queueing = sight.rtt - sight.base;
        if queueing <= swing.mul_f64(EMPTY_SHARE).max(EMPTY_SLACK) {
            self.empty_at = self.empty_at.max(now);
        }
        if queueing <= swing.mul_f64(self.leaves_at()).max(EMPTY_SLACK)
            && let Some(inverse) = self.inverse.take()
        {
            // Nobody fills it.
            self.kept = inverse;
            self.since_kept = 0;
        }
        // Nothing but the minimum itself: what is let pass here is what it drifts by each time that
        // the filter forgets.
        let floor = queueing.is_zero();
        if floor {
            self.floor_at = now;
        }
        if queueing <= EMPTY_SLACK / SMALL_SHARE || sight.standing - sight.base > EMPTY_SLACK {
            self.small_from = self.small_from.max(now);
        }
        floor
    }

    /// The share of the swing below which it stops to compete.
    fn leaves_at(&self) -> f64 {
        if self.since_others < LOST_ROUNDS { EMPTY_SHARE_LOST } else { EMPTY_SHARE }
    }

    /// Whether it is time to drain the queue. To see who fills it: when it was not nearly empty for
    /// five round trips. To see the minimum round-trip time again, or whether those that fill the
    /// queue are still there: after `patience`.
    pub(super) fn wants_drain(
        &self,
        now: Time,
        srtt: Duration,
        patience: Duration,
        competes: bool,
    ) -> bool {
        let stale = self.floor_at.max(self.drained_at);
        let strange = competes && self.inverse.is_none() && self.is_full(now, srtt);
        strange || now.since(stale) > patience.max(srtt * EMPTY_ROUNDS)
    }

    /// Whether the queue was nearly empty for five round trips, but never empty. It may be none: see
    /// [`Copa::base`](super::Copa::base).
    pub(super) fn is_small(&self, now: Time, srtt: Duration) -> bool {
        now.since(self.small_from) > srtt * SMALL_ROUNDS
    }

    /// Whether the queue was not nearly empty for five round trips.
    fn is_full(&self, now: Time, srtt: Duration) -> bool {
        now.since(self.empty_at) > srtt * EMPTY_ROUNDS
    }

    /// A drain that began at `from` ended; `delta` is the one that is set, 0 where it must not
    /// compete. If the queue did not empty, others fill it.
    pub(super) fn on_drained(&mut self, from: Time, now: Time, srtt: Duration, delta: f64) {
        self.drained_at = now;
        self.small_from = now + ALONE;
        if self.empty_at >= from {
            self.empty_at = now + ALONE;
        } else if delta > 0.0 && self.inverse.is_none() && self.is_full(now, srtt) {
            let kept = if self.since_kept < KEPT_ROUNDS { self.kept } else { INVERSE_MIN };
            self.inverse = Some((1.0 / delta).max(kept).clamp(INVERSE_MIN, INVERSE_MAX));
        }
    }

    /// Counts the queue as empty, because nothing was in flight to fill it or see it.
    pub(super) fn assume_empty(&mut self, now: Time) {
        self.empty_at = self.empty_at.max(now);
        self.floor_at = self.floor_at.max(now);
        self.small_from = self.small_from.max(now);
    }

    /// Whatever queued until now was no sign of others.
    pub(super) fn own_queue_from(&mut self, now: Time) {
        self.empty_at = self.empty_at.max(now);
        self.small_from = self.small_from.max(now);
    }

    /// A round ended: one more without a loss.
    pub(super) fn on_round(&mut self) {
        if let (Some(inverse), false) = (&mut self.inverse, self.lost) {
            *inverse = (*inverse + 1.0).min(INVERSE_MAX);
        }
        self.lost = false;
        self.lossless = (self.lossless + 1).min(LOST_GAP);
        self.since_others = (self.since_others + 1).min(LOST_ROUNDS);
        self.since_kept = (self.since_kept + 1).min(KEPT_ROUNDS);
    }

    /// A new loss episode: half.
    pub(super) fn on_loss(&mut self) {
        self.lost = true;
        let to_others =
            self.lossless >= LOST_GAP && self.inverse.is_some_and(|i| i >= LOST_INVERSE);
        self.since_others = if to_others { 0 } else { LOST_ROUNDS };
        self.lossless = 0;
        if let Some(inverse) = &mut self.inverse {
            *inverse = (*inverse / 2.0).max(INVERSE_MIN);
        }
    }

    /// Back to default mode.
    pub(super) fn stop_competing(&mut self) {
        self.inverse = None;
    }

    pub(super) fn is_competitive(&self) -> bool {
        self.inverse.is_some()
    }
}
