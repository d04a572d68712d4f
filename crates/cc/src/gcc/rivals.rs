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
use crate::{Ack, Config, Loss, Sent};

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
/// A queue that stands and loses so much needs no trial: in a buffer of a few packets GCC's loss
/// part bears what others yield to, and takes all of the link.
const LOSSY: f64 = 0.1;
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
const PATIENCE: Duration = Duration::from_secs(3);
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
    /// The share of the bytes that was lost.
    pub(super) loss: f64,
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
    sent_at: Time,
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

    /// A packet left. Where nothing else is in flight the sender has paused, and so did the clock of
    /// the window (RFC 9438 §5.8).
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        let from = core::mem::replace(&mut self.sent_at, sent.now);
        if sent.inflight <= sent.bytes
            && let Some(rival) = &mut self.rival
        {
            rival.on_pause(from, sent.now);
        }
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
            let trial = Trial::new(seen, throughput, queued);
            if seen.loss > LOSSY && !self.competes {
                self.meet(&trial, seen);
            } else {
                self.trial = Some(trial);
            }
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
#[path = "rivals_tests.rs"]
mod tests;
