//! Others that fill the queue, and the share that one takes next to them.
//!
//! Next to a CUBIC flow GCC starves: each time that flow's window grows, the delay does, and GCC
//! leaves it 15% of its rate. The adaptive threshold (draft-ietf-rmcat-gcc-02 §5.4) does not help
//! where the queue grows for seconds. With the knob `competitive` GCC looks for such flows, and
//! next to them sends what CUBIC's window lets pass (`../rival.rs`), as Copa does (Arun and
//! Balakrishnan, NSDI 2018, §2.4).
//!
//! A queue that stands for seconds may be that of others. Then the rate is cut for a moment. Where
//! the queue was our own it falls by what we send less than before. Where others send at a rate of
//! their own it falls more slowly, for as long as the cut lasts, and GCC can empty it. Where they
//! are elastic they take what was left to them, and keep it. Nimbus tells them by the same response
//! (Goyal et al., SIGCOMM 2022).

use trimtab_units::{Duration, Rate, Time};

use crate::episode::Episode;
use crate::one_way::OneWay;
use crate::rival::Rival;
use crate::{Ack, Config, Loss};

/// The least queueing delay of each of so many slots is kept.
const SLOT: Duration = Duration::from_millis(250);
const SLOTS: usize = 16;
/// A queue stands if it was empty in so few of them: those who fill it empty a short one now and
/// then. They are gone once it was empty in each of the last so many.
const EMPTY_MOST: usize = 3;
const GONE_SLOTS: usize = 8;
/// A queue is empty below this share of the longest of late (Copa §2.4), or below this. The second
/// is what jitter takes.
const EMPTY_SHARE: f64 = 0.1;
const EMPTY_SLACK: Duration = Duration::from_millis(5);
/// What is sent in a trial, as a share of what arrived before it.
const TRIAL: f64 = 0.7;
/// A queue is our own if it falls by this share of what it would if it were.
const OWN: f64 = 0.6;
/// … and those who share it are not elastic if in the second half of a trial it falls by this share:
/// where we have a tenth of what the link carries, or more.
const INELASTIC: f64 = 0.1;
/// One that falls by more than this share fell for another reason: others have lost packets.
const TOO_FAST: f64 = 1.3;
/// How long a trial lasts beyond a round trip: as long as it takes to empty the queue, but this at
/// least and at most.
const TRIAL_TIME: (Duration, Duration) = (Duration::from_millis(1000), Duration::from_millis(2500));
/// After a trial that found the queue to be our own there is none for so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Next to others there is a trial after this, and after twice as long each time that they are
/// still there, up to so many doublings. As in Copa's mode switching (`copa/mode.rs`).
const CONFIRM: Duration = Duration::from_secs(16);
const CONFIRMED_MAX: u32 = 2;
/// The window limits where so much of its rate arrives.
const LIMITS: f64 = 0.75;

/// What a feedback shows besides delays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Time,
    pub(super) srtt: Duration,
    /// GCC's own.
    pub(super) target: Rate,
    pub(super) throughput: Option<Rate>,
    pub(super) limits: Config,
}

/// A cut of the rate, to see whose the queue is.
#[derive(Clone, Copy, Debug)]
struct Trial {
    from: Time,
    /// What arrived, and the queueing delay, when it began.
    throughput: Rate,
    queued: Duration,
    /// How long it takes from when it shows, and what was seen after half of that.
    lasts: Duration,
    middle: Option<(Time, Duration)>,
}

impl Trial {
    fn new(seen: &Seen, throughput: Rate, queued: Duration) -> Self {
        let lasts = queued.mul_f64(1.0 / (1.0 - TRIAL)).clamp(TRIAL_TIME.0, TRIAL_TIME.1);
        Self { from: seen.now + seen.srtt, throughput, queued, lasts, middle: None }
    }

    /// Whose the queue is, of this length at the end.
    fn finding(&self, queued: Duration, now: Time) -> Finding {
        let fell = |since: Time, before: Duration| {
            let own = before.min(now.since(since).mul_f64(1.0 - TRIAL));
            (before - queued).ratio(own)
        };
        let (since, before) = self.middle.unwrap_or((self.from, self.queued));
        let (all, late) = (fell(self.from, self.queued), fell(since, before));
        if all > TOO_FAST || late > TOO_FAST {
            Finding::Unclear
        } else if all >= OWN || late >= INELASTIC {
            Finding::Alone
        } else {
            Finding::Rivals
        }
    }
}

/// Whose a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    /// Our own, or also of those who send at a rate of their own.
    Alone,
    Rivals,
    Unclear,
}

/// Queueing delays of late, and what follows from them.
///
/// ```text
///           queue stands                  not our own
///   alone ────────────────▶ trial ──────────────────────▶ next to others
///     ▲                       │                              │      ▲
///     ├─────── our own ───────┘             after 16 to 64 s ▼      │ not our own
///     └──────── our own, or the queue is empty ──────────── trial ──┘
/// ```
#[derive(Clone, Debug, Default)]
pub(super) struct Rivals {
    way: OneWay,
    /// The least of each slot, in a ring, and the running one; `None` where nothing arrived.
    slots: [Option<Duration>; SLOTS],
    place: u8,
    running: Option<Duration>,
    began_at: Time,
    trial: Option<Trial>,
    /// The earliest time of the next trial.
    next_trial: Time,
    /// Kept when others have gone, since they may come back.
    rival: Option<Rival>,
    competes: bool,
    confirmed: u32,
    episode: Episode,
}

impl Rivals {
    /// Whether others fill the queue, and CUBIC's window is the sender's.
    pub(super) fn compete(&self) -> bool {
        self.competes
    }

    /// Whether nothing speaks for others.
    pub(super) fn are_gone(&self) -> bool {
        !self.competes && self.trial.is_none()
    }

    /// The rate to send at, where GCC's own would be `target`.
    pub(super) fn rate(&self, target: Rate, srtt: Duration) -> Rate {
        let window = self.rival.as_ref().filter(|_| self.competes && !srtt.is_zero());
        let rate = window.map_or(target, |rival| rival.window() / srtt);
        self.trial.map_or(rate, |trial| rate.min(trial.throughput.mul_f64(TRIAL)))
    }

    /// A packet arrived.
    pub(super) fn on_arrival(&mut self, sent: Time, arrived: Time, now: Time) {
        let queued = self.way.queued(sent, arrived, now);
        self.running = Some(self.running.map_or(queued, |least| least.min(queued)));
    }

    /// The window grows by what arrives, where it is used.
    pub(super) fn on_ack(&mut self, ack: &Ack, throughput: Option<Rate>) {
        if !self.competes {
            return;
        }
        let recovering = self.episode.on_ack(ack);
        let Some(rival) = &mut self.rival else { return };
        rival.is_needed(ack.now);
        let limits =
            throughput.is_some_and(|rate| rate >= (rival.window() / ack.srtt).mul_f64(LIMITS));
        if limits && !recovering && self.trial.is_none() {
            rival.grow(ack.acked, ack.now);
        }
    }

    /// Packets were lost.
    pub(super) fn on_loss(&mut self, loss: &Loss) {
        if self.competes
            && self.episode.on_loss(loss)
            && let Some(rival) = &mut self.rival
        {
            rival.on_loss(rival.window());
        }
    }

    pub(super) fn on_mtu(&mut self, limits: &Config) {
        if let Some(rival) = &mut self.rival {
            rival.on_mtu(limits);
        }
    }

    /// After the arrivals of a feedback. Whether others were there and are gone.
    pub(super) fn look(&mut self, seen: &Seen) -> bool {
        if seen.now.since(self.began_at) >= SLOT {
            self.began_at = seen.now;
            self.place = (self.place + 1) % SLOTS as u8;
            self.slots[usize::from(self.place)] = self.running.take();
        }
        let Some(queued) = self.slots[usize::from(self.place)] else { return false };
        let most = self.slots.iter().flatten().fold(queued, |most, &slot| most.max(slot));
        let empty = most.mul_f64(EMPTY_SHARE).max(EMPTY_SLACK);
        let is_empty = |slot: &Option<Duration>| slot.is_none_or(|least| least <= empty);
        if let Some(trial) = self.trial {
            return self.judge(trial, queued, empty, seen);
        }
        let newest = (0..GONE_SLOTS).map(|age| (usize::from(self.place) + SLOTS - age) % SLOTS);
        if self.competes && newest.into_iter().all(|place| is_empty(&self.slots[place])) {
            self.next_trial = seen.now;
            return self.leave();
        }
        let stands = self.slots.iter().filter(|slot| is_empty(slot)).count() <= EMPTY_MOST;
        if seen.now >= self.next_trial
            && (stands || self.competes)
            && let Some(throughput) = seen.throughput
        {
            self.trial = Some(Trial::new(seen, throughput, queued));
        }
        false
    }

    /// Ends a trial that is over. Whether others were there and are gone.
    fn judge(&mut self, mut trial: Trial, queued: Duration, empty: Duration, seen: &Seen) -> bool {
        let lasted = seen.now.since(trial.from);
        if queued > empty && lasted < trial.lasts {
            if trial.middle.is_none() && lasted >= trial.lasts / 2 {
                trial.middle = Some((seen.now, queued));
            }
            self.trial = Some(trial);
            return false;
        }
        self.trial = None;
        self.next_trial = seen.now + PATIENCE;
        match trial.finding(queued, seen.now) {
            _ if queued <= empty => self.leave(),
            Finding::Alone => self.leave(),
            Finding::Rivals => {
                self.meet(&trial, seen);
                false
            }
            Finding::Unclear => false,
        }
    }

    /// Others fill the queue.
    fn meet(&mut self, trial: &Trial, seen: &Seen) {
        if self.competes {
            self.confirmed = (self.confirmed + 1).min(CONFIRMED_MAX);
        } else {
            let own = seen.target.max(trial.throughput) * seen.srtt;
            let new = || Rival::new(&seen.limits, own, seen.srtt, seen.now);
            if self.rival.as_ref().is_some_and(|rival| rival.is_past(seen.now, seen.srtt * 10)) {
                self.rival = None;
            }
            self.rival.get_or_insert_with(new).meet(own);
            (self.competes, self.confirmed, self.episode) = (true, 0, Episode::default());
        }
        self.next_trial = seen.now + CONFIRM * (1 << self.confirmed);
    }

    /// Nobody else fills the queue. Whether somebody did.
    fn leave(&mut self) -> bool {
        core::mem::take(&mut self.competes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::link::MSS;
    use trimtab_units::Bytes;

    const RTT: Duration = Duration::from_millis(100);

    /// Feedback every 50 ms from `from` to `to`, in ms, over a path of 50 ms each way on which
    /// packets are queued for so long. What arrives is what is sent. Whether others went.
    fn play(
        rivals: &mut Rivals,
        from: u64,
        to: u64,
        mut queued: impl FnMut(u64, Rate) -> f64,
    ) -> bool {
        let (target, mut went) = (Rate::from_mbps(1.0), false);
        for ms in (from..to).step_by(50) {
            let now = Time::from_millis(ms);
            let rate = rivals.rate(target, RTT);
            let queued = Duration::from_millis_f64(queued(ms, rate));
            rivals.on_arrival(now - RTT - queued, now - RTT / 2, now);
            let limits = Config::with_mss(MSS, 0);
            went |= rivals.look(&Seen { now, srtt: RTT, target, throughput: Some(rate), limits });
        }
        went
    }

    /// One that has seen the path empty for a second, and then others that keep 200 ms for ten.
    fn met() -> Rivals {
        let mut rivals = Rivals::default();
        play(&mut rivals, 1000, 2000, |_, _| 0.0);
        play(&mut rivals, 2000, 12_000, |_, _| 200.0);
        assert!(rivals.compete());
        rivals
    }

    /// Alone on a link of 1 Mbit/s, what is sent less than that empties it.
    #[test]
    fn a_queue_that_falls_with_the_rate_is_our_own() {
        let (mut rivals, mut queue, mut cut) = (Rivals::default(), 0.0, 0);
        play(&mut rivals, 1000, 60_000, |ms, rate| {
            // It fills by itself every ten seconds.
            if ms % 10_000 == 0 {
                queue = 200.0;
            }
            cut += u64::from(rate < Rate::from_mbps(0.9));
            queue = f64::max(queue - 50.0 * (1.0 - rate.mbps()), 0.0);
            queue
        });
        assert!(!rivals.compete());
        assert!(cut > 0, "there was no trial");
    }

    #[test]
    fn a_queue_that_stays_is_that_of_others() {
        let mut rivals = Rivals::default();
        play(&mut rivals, 1000, 5000, |_, _| 0.0);
        play(&mut rivals, 5000, 8000, |_, _| 200.0);
        assert!(rivals.are_gone(), "three seconds are too few");
        play(&mut rivals, 8000, 13_000, |_, _| 200.0);
        assert!(rivals.compete());
        // The window that it had: 1 Mbit/s of 100 ms.
        assert_eq!(rivals.rate(Rate::from_mbps(0.1), RTT), Rate::from_mbps(1.0));
    }

    /// Two thirds of the link are taken at a constant rate: the queue falls by a third of the cut,
    /// and stands without one.
    #[test]
    fn others_at_a_rate_of_their_own_are_left_to_gcc() {
        let (mut rivals, mut queue, mut cut) = (Rivals::default(), 0.0, 0);
        play(&mut rivals, 1000, 2000, |_, _| 0.0);
        play(&mut rivals, 2000, 60_000, |ms, rate| {
            if ms % 10_000 == 2000 {
                queue = 300.0;
            }
            cut += u64::from(rate < Rate::from_mbps(0.9));
            queue -= 50.0 / 3.0 * (1.0 - rate.mbps());
            queue
        });
        assert!(!rivals.compete());
        assert!(cut > 0, "there was no trial");
    }

    /// Others that lose packets in a trial prove nothing, and there is another one soon.
    #[test]
    fn a_queue_that_falls_too_fast_proves_nothing() {
        let mut rivals = Rivals::default();
        play(&mut rivals, 1000, 2000, |_, _| 0.0);
        let mut tried = None;
        play(&mut rivals, 2000, 16_000, |ms, rate| {
            if rate < Rate::from_mbps(0.9) {
                tried = tried.or(Some(ms));
            }
            // Half of the queue at once, 800 ms after the first trial began.
            if tried.is_some_and(|at| (at + 800..at + 3000).contains(&ms)) { 150.0 } else { 300.0 }
        });
        assert!(rivals.compete(), "the second trial");
        assert!(rivals.next_trial > Time::from_secs(25), "{:?}", rivals.next_trial);
    }

    /// An overflow empties a queue for a moment; who fills it is gone when it stays so.
    #[test]
    fn others_are_gone_when_the_queue_stays_empty() {
        let mut rivals = met();
        let dips = |ms: u64, _: Rate| if ms % 3000 < 1000 { 0.0 } else { 200.0 };
        assert!(!play(&mut rivals, 12_000, 18_000, dips));
        assert!(!play(&mut rivals, 18_000, 19_500, |_, _| 1.0));
        assert!(play(&mut rivals, 19_500, 21_000, |_, _| 1.0));
        assert!(rivals.are_gone());
    }

    /// Our own window keeps a queue as others do, so that it is tried again: after 16 s.
    #[test]
    fn it_is_tried_whether_others_are_still_there() {
        let mut rivals = met();
        let mut queue = 200.0;
        let went = play(&mut rivals, 12_000, 40_000, |_, rate| {
            queue = f64::clamp(queue + 50.0 * (rate.mbps() - 1.0), 0.0, 200.0);
            queue
        });
        assert!(went);
    }

    /// A loss takes 30% as of a CUBIC flow's window, once in a round trip; acknowledgements give
    /// it back.
    #[test]
    fn the_window_is_that_of_a_cubic_flow() {
        let mut rivals = met();
        let rate = |rivals: &Rivals| rivals.rate(Rate::ZERO, RTT).mbps();
        let before = rate(&rivals);
        for ms in [12_000, 12_020] {
            rivals.on_loss(&crate::testing::lost(Time::from_millis(ms), Time::from_millis(11_990)));
        }
        let after = rate(&rivals);
        assert!((0.6..0.71).contains(&(after / before)), "{before} to {after}");
        for ms in (12_200..20_000).step_by(10) {
            let now = Time::from_millis(ms);
            let ack = crate::testing::acked(now, now - RTT, Bytes::new(1250), RTT);
            rivals.on_ack(&ack, Some(Rate::from_mbps(1.0)));
        }
        assert!(rate(&rivals) > before, "{}", rate(&rivals));
    }
}
