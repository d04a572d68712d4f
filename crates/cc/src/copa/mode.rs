//! TCP-competitive mode: what Copa does next to flows that fill the queue.
//!
//! The paper tells such flows by a queue that never empties, since Copa's own oscillation empties it
//! every five round trips. It does where the path holds more packets than 1/delta. Where it holds
//! fewer, the oscillation dies out: the window then weighs more in `window · delta · queueing delay`
//! than the delay that answers to it a round trip later. The queue stands, the minimum round-trip
//! time is forgotten, and the flow takes itself for a stranger. So here a queue that does not empty
//! is drained once, by holding the window below what the path holds for a round trip: if it empties,
//! it was our own.

use trimtab_units::{Duration, Time};

use super::ticks::Ticks;

/// A queue whose delay is below this share of its swing is nearly empty. The paper takes a tenth
/// (§2.4), which its own flows do not always reach: two of delta 0.04 alone on a link swing between
/// 17 and 97 packets, four of 0.1 between 10 and 79. They would take each other for strangers, and
/// competing, fill the queue.
///
/// After a loss to others, and with the window of CUBIC, a tenth applies: [`EMPTY_SHARE_LOST`].
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
/// At a tick, a flow with the window of CUBIC at hand drains a queue that was not for so many.
const HELP_ROUNDS: u64 = 3;
/// There are so many round trips at least from tick to tick.
const TICK_ROUNDS: u64 = 10;
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
/// With CUBIC's window (`../rival.rs`), it looks whether the others are still there at ticks so far
/// apart, and at every second and every fourth of them once they were. A drain costs a flow of long
/// round trips its share for seconds, so there are so many round trips at least from tick to tick,
/// as they are with an empty queue.
const CONFIRM: Duration = Duration::from_secs(16);
const CONFIRM_ROUNDS: u64 = 60;
/// A tick this part of that time after the last drain is too soon.
const CONFIRM_SOONEST: u64 = 4;
/// The second doubling reaches the most.
const CONFIRMED_MAX: u32 = 2;

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
    /// Drains since it competes that did not empty the queue.
    confirmed: u32,
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
    /// Whether it would compete with the window of CUBIC.
    pub(super) keeps_rival: bool,
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
            confirmed: 0,
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
        if queueing <= swing.mul_f64(self.leaves_at(sight.keeps_rival)).max(EMPTY_SLACK)
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
    fn leaves_at(&self, keeps_rival: bool) -> f64 {
        let stays = keeps_rival || self.since_others < LOST_ROUNDS;
        if stays { EMPTY_SHARE_LOST } else { EMPTY_SHARE }
    }

    /// With the window of CUBIC, the time from one tick to the next at which it looks whether the
    /// others are still there.
    fn confirms_each(&self, base: Duration) -> Duration {
        CONFIRM.max(base * CONFIRM_ROUNDS) * (1 << self.confirmed)
    }

    /// Whether it is time to drain the queue, for one that would compete with the window of CUBIC:
    /// at ticks, with flows of its kind. To see who fills it, when it was not nearly empty for three
    /// round trips; those that may not know it yet help those that ask after five. To see whether
    /// others still do. To see the minimum round-trip time again, after `patience`.
    pub(super) fn wants_joint_drain(
        &self,
        now: Time,
        srtt: Duration,
        base: Duration,
        patience: Duration,
        ticks: Ticks,
    ) -> bool {
        if self.is_competitive() {
            let each = self.confirms_each(base);
            return ticks.come(each) && now.since(self.drained_at) > each / CONFIRM_SOONEST;
        }
        let helps = now.since(self.empty_at) > srtt * HELP_ROUNDS;
        helps && ticks.come(srtt * TICK_ROUNDS) || self.is_stale(now, srtt, patience)
    }

    /// Whether it is time to drain the queue. To see who fills it: when it was not nearly empty for
    /// five round trips. To see the minimum round-trip time again: after `patience`.
    pub(super) fn wants_drain(
        &self,
        now: Time,
        srtt: Duration,
        patience: Duration,
        competes: bool,
    ) -> bool {
        let strange = competes && self.inverse.is_none() && self.is_full(now, srtt);
        strange || self.is_stale(now, srtt, patience)
    }

    /// Whether the minimum round-trip time was not seen for so long.
    fn is_stale(&self, now: Time, srtt: Duration, patience: Duration) -> bool {
        let seen = self.floor_at.max(self.drained_at);
        now.since(seen) > patience.max(srtt * EMPTY_ROUNDS)
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
            self.confirmed = 0;
        } else if self.inverse.is_some() {
            self.confirmed = (self.confirmed + 1).min(CONFIRMED_MAX);
        } else if delta > 0.0 && self.is_full(now, srtt) {
            let again = self.since_kept < KEPT_ROUNDS;
            let kept = if again { self.kept } else { INVERSE_MIN };
            self.confirmed = if again { self.confirmed } else { 0 };
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

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A sample with so much queueing delay in us, on a path of 100 ms whose queue swings by 100
    /// ms.
    fn sight(queueing: u64) -> Sight {
        let rtt = RTT + Duration::from_micros(queueing);
        Sight { rtt, base: RTT, standing: rtt, rtt_max: RTT * 2, keeps_rival: false }
    }

    /// One that competes with 1/delta of 2 since 1 s.
    fn competing() -> Mode {
        let mut mode = Mode::new(Time::ZERO);
        mode.on_rtt(at(900), &sight(50_000));
        mode.on_drained(at(700), at(1000), RTT, 0.5);
        assert!(mode.is_competitive());
        mode
    }

    /// Copa §2.4: the queue is nearly empty below a share of its swing; ours is 0.3, or 1 ms.
    #[test]
    fn a_queue_that_is_not_nearly_empty_for_five_round_trips_is_full() {
        let mut mode = Mode::new(Time::ZERO);
        assert!(!mode.is_full(at(500), RTT) && mode.is_full(at(501), RTT));
        mode.on_rtt(at(600), &sight(30_001));
        assert!(mode.is_full(at(600), RTT), "just above 0.3 of the swing");
        mode.on_rtt(at(600), &sight(30_000));
        assert!(!mode.is_full(at(1100), RTT) && mode.is_full(at(1101), RTT));
        let still = Sight { rtt_max: RTT, ..sight(1000) };
        mode.on_rtt(at(2000), &still);
        assert!(!mode.is_full(at(2000), RTT), "1 ms, where nothing swings");
        mode.on_rtt(at(3000), &Sight { rtt_max: RTT, ..sight(1001) });
        assert!(mode.is_full(at(3000), RTT));
    }

    /// Only the minimum itself shows the minimum.
    #[test]
    fn the_floor_is_the_minimum_and_nothing_more() {
        let mut mode = Mode::new(Time::ZERO);
        assert!(mode.on_rtt(at(1), &sight(0)));
        assert!(!mode.on_rtt(at(2), &sight(1)));
        // It is stale after five seconds of patience, unless a drain was tried since.
        let patience = Duration::from_secs(5);
        let wants = |mode: &Mode, ms| mode.wants_drain(at(ms), RTT, patience, false);
        assert!(!wants(&mode, 5001) && wants(&mode, 5002));
        mode.on_drained(at(5002), at(5100), RTT, 0.0);
        assert!(!wants(&mode, 10_100) && wants(&mode, 10_101));
        // Five round trips at least, where those are longer.
        let long = Duration::from_secs(2);
        assert!(!mode.wants_drain(at(15_100), long, patience, false));
        assert!(mode.wants_drain(at(15_101), long, patience, false));
    }

    /// A full queue asks for a drain where it may compete; the drain tells whether to.
    #[test]
    fn a_drain_that_does_not_empty_the_queue_means_others_fill_it() {
        let patience = Duration::from_secs(5);
        let mut mode = Mode::new(Time::ZERO);
        mode.on_rtt(at(500), &sight(50_000));
        assert!(mode.wants_drain(at(501), RTT, patience, true));
        assert!(!mode.wants_drain(at(501), RTT, patience, false), "it must not compete");
        let drained = |from, delta| {
            let mut mode = mode.clone();
            mode.on_rtt(at(650), &sight(20_000));
            mode.on_drained(at(from), at(1200), RTT, delta);
            mode.is_competitive()
        };
        assert!(!drained(650, 0.5), "it emptied in the drain, so it was our own");
        assert!(drained(651, 0.5), "what it showed before does not count");
        assert!(!drained(651, 0.0), "it must not compete");
    }

    /// Copa §2.4: 1/delta rises by one in a round trip without a loss, and halves with one.
    #[test]
    fn competing_is_additive_increase_and_multiplicative_decrease() {
        let mut mode = competing();
        assert_eq!(mode.delta(0.5), 0.5, "from the default's");
        for want in [3.0, 4.0, 5.0, 6.0] {
            mode.on_round();
            assert!((mode.delta(0.5) - 1.0 / want).abs() < 1e-12);
        }
        mode.on_loss();
        assert!((mode.delta(0.5) - 1.0 / 3.0).abs() < 1e-12);
        mode.on_round();
        assert!((mode.delta(0.5) - 1.0 / 3.0).abs() < 1e-12, "a round with a loss");
        mode.on_round();
        assert!((mode.delta(0.5) - 0.25).abs() < 1e-12);
        assert_eq!(mode.delta(0.04), 0.04, "never above the one that is set");
        for _ in 0..600 {
            mode.on_round();
        }
        assert_eq!(mode.delta(0.5), 1.0 / 500.0, "the knob's least");
        for _ in 0..20 {
            mode.on_loss();
        }
        assert_eq!(mode.delta(1.0), 0.5, "the default's 2 is the least");
        mode.stop_competing();
        assert_eq!((mode.is_competitive(), mode.delta(1.0)), (false, 1.0));
    }

    /// A delta that is set below the default's begins there.
    #[test]
    fn competing_begins_with_the_delta_that_is_set() {
        let begins = |delta: f64| {
            let mut mode = Mode::new(Time::ZERO);
            mode.on_drained(at(700), at(1000), RTT, delta);
            mode.delta(2.0)
        };
        assert_eq!((begins(0.5), begins(0.04), begins(2.0)), (0.5, 0.04, 0.5));
        assert_eq!(begins(0.001), 1.0 / 500.0);
    }

    /// What stops to compete and must again within 50 round trips goes on with its 1/delta.
    #[test]
    fn who_competes_again_soon_keeps_its_delta() {
        let again = |rounds: u32| {
            let mut mode = competing();
            for _ in 0..8 {
                mode.on_round();
            }
            mode.on_rtt(at(1100), &sight(30_000));
            assert!(!mode.is_competitive(), "nobody fills it");
            for _ in 0..rounds {
                mode.on_round();
            }
            mode.on_drained(at(9000), at(9900), RTT, 0.5);
            1.0 / mode.delta(0.5)
        };
        assert_eq!((again(49), again(50)), (10.0, 2.0));
    }

    /// After a loss to others it stops only below a tenth of the swing, for 20 round trips.
    #[test]
    fn after_a_loss_to_others_a_tenth_applies() {
        let mut mode = competing();
        for _ in 0..6 {
            mode.on_round();
        }
        let leaves = |mode: &Mode, queueing| {
            let mut mode = mode.clone();
            mode.on_rtt(at(1200), &sight(queueing));
            !mode.is_competitive()
        };
        assert!(leaves(&mode, 30_000));
        mode.on_loss();
        assert!(!leaves(&mode, 10_001) && leaves(&mode, 10_000), "1/delta was 8");
        for _ in 0..20 {
            assert!(!leaves(&mode, 30_000));
            mode.on_round();
        }
        assert!(leaves(&mode, 30_000));
        // Losses close to each other are those of a small buffer.
        let mut small = competing();
        for _ in 0..6 {
            small.on_round();
        }
        small.on_loss();
        for _ in 0..4 {
            small.on_round();
        }
        small.on_loss();
        assert!(leaves(&small, 30_000));
    }

    /// With CUBIC's window it stops only below a tenth, whatever was lost.
    #[test]
    fn with_the_window_of_cubic_a_tenth_applies() {
        let leaves = |queueing| {
            let mut mode = competing();
            mode.on_rtt(at(1200), &Sight { keeps_rival: true, ..sight(queueing) });
            !mode.is_competitive()
        };
        assert!(!leaves(10_001) && leaves(10_000));
    }

    /// Each drain that finds the others doubles the time to the next, up to four times.
    #[test]
    fn it_looks_for_the_others_ever_less_often() {
        let mut mode = competing();
        let waits = |mode: &Mode| mode.confirms_each(RTT);
        let seconds = Duration::from_secs;
        for (drain, want) in [(1, 16), (2, 32), (3, 64), (4, 64)] {
            assert_eq!(waits(&mode), seconds(want));
            let from = at(1000 + 1000 * drain);
            mode.on_drained(from, from + RTT, RTT, 0.5);
        }
        // It stops to compete, and must again within 50 round trips.
        let again = |rounds: u32| {
            let mut mode = mode.clone();
            mode.on_rtt(at(9000), &sight(0));
            for _ in 0..rounds {
                mode.on_round();
            }
            mode.on_drained(at(19_000), at(19_900), RTT, 0.5);
            assert!(mode.is_competitive());
            waits(&mode)
        };
        assert_eq!((again(49), again(50)), (seconds(64), seconds(16)));
        mode.on_rtt(at(9000), &sight(0));
        mode.on_drained(at(9000), at(9100), RTT, 0.5);
        assert_eq!(waits(&mode), seconds(16), "the queue emptied: they are gone");
        assert_eq!(mode.confirms_each(RTT * 5), seconds(30), "60 round trips at least");
    }

    /// With the window of CUBIC at hand it drains at ticks, with all others of its kind.
    #[test]
    fn flows_of_a_kind_drain_the_queue_at_ticks() {
        let patience = Duration::from_secs(15);
        let wants = |mode: &Mode, before, now| {
            let ticks = Ticks::between(at(before), at(now), Duration::ZERO);
            mode.wants_joint_drain(at(now), RTT, RTT, patience, ticks)
        };
        // Ten round trips are a second: so are the ticks.
        let mut mode = Mode::new(Time::ZERO);
        mode.on_rtt(at(2600), &sight(0));
        mode.on_rtt(at(2700), &sight(30_000));
        assert!(!wants(&mode, 2999, 3000), "it was nearly empty three round trips ago");
        mode.empty_at = at(2699);
        assert!(wants(&mode, 2999, 3000) && !wants(&mode, 3000, 3001));
        // Without a tick, only the minimum that was not seen for long.
        mode.floor_at = at(1000);
        assert!(!wants(&mode, 15_998, 15_999) && wants(&mode, 16_001, 16_002));

        // Competing since 1 s, it looks for the others each 16 s; not within four of them.
        let mut mode = competing();
        assert!(wants(&mode, 15_999, 16_000) && !wants(&mode, 16_000, 31_999));
        mode.drained_at = at(12_000);
        assert!(!wants(&mode, 15_999, 16_000) && wants(&mode, 31_999, 32_000));
        mode.on_drained(at(31_000), at(31_100), RTT, 0.5);
        assert!(!wants(&mode, 47_999, 48_000), "they were there: each 32 s");
        assert!(wants(&mode, 63_999, 64_000));
    }

    /// A queue of at most 1 ms that is never below a tenth of that may be none.
    #[test]
    fn a_small_queue_that_never_empties_may_be_none() {
        let mut mode = Mode::new(Time::ZERO);
        let see = |mode: &mut Mode, ms, queueing| {
            mode.on_rtt(at(ms), &Sight { rtt_max: RTT, ..sight(queueing) });
        };
        see(&mut mode, 400, 101);
        see(&mut mode, 400, 1000);
        assert!(!mode.is_small(at(500), RTT) && mode.is_small(at(501), RTT));
        see(&mut mode, 600, 100);
        assert!(!mode.is_small(at(1100), RTT) && mode.is_small(at(1101), RTT), "it was empty");
        see(&mut mode, 1200, 1001);
        assert!(!mode.is_small(at(1700), RTT), "more than 1 ms stood");
        mode.own_queue_from(at(2000));
        assert!(!mode.is_small(at(2500), RTT) && mode.is_small(at(2501), RTT));
        mode.on_drained(at(2501), at(2600), RTT, 0.0);
        assert!(!mode.is_small(at(4100), RTT) && mode.is_small(at(4101), RTT), "a second of peace");
        mode.assume_empty(at(5000));
        assert!(!mode.is_small(at(5500), RTT) && !mode.is_full(at(5500), RTT));
    }
}
