//! PCC Vivace: tries rates, sees what each was worth by a utility function, and climbs its gradient.
//!
//! Read first: Dong et al., "PCC Vivace: online-learning congestion control", NSDI 2018 (the preset
//! `plain`), and the PCC customization paper, §2.1 and §5, whose deployed modifications are the
//! default here; section numbers are of the latter. The crate's `interval.rs` has the monitor
//! intervals, `utility.rs` what they are worth, `climb.rs` the steps, `knobs.rs` what can be
//! configured.
//!
//! Where the papers are silent:
//! * An interval lasts one smoothed round-trip time, and is known one later: the two round trips of §5.2.
//! * A utility below zero means down, whatever the secant says: it is concave and 0 at rate 0
//!   (`utility::most_gradient`).
//! * Slow start doubles in every interval and ends early by delay or losses (§2.1 names both
//!   thresholds and gives none); it leaves at half the rate of the interval that showed them. The
//!   published one waits for the utility of each rate.
//! * A configured first rate is that of the first round trip: the handshake says how long that is,
//!   and so how much may leave before anything came back (Careful Resume,
//!   draft-ietf-tsvwg-careful-resume, has the same for what an earlier connection knew: paced over
//!   a round trip, and given up at the first sign of trouble). It is a monitor interval as any
//!   other, so what it shows ends slow start. A timeout before anything arrived leaves the initial
//!   window of every connection (RFC 6928).
//! * A step that did not pay is undone as a whole, however large it was.
//! * Congestion marks (ECN) bound the rate to what `ceiling.rs` allows in a round trip. The utility knows losses alone.
//! * A timeout halves the rate and forgets the utilities. Another before anything arrives means
//!   that the path is not what it was (RFC 9002 §7.6, persistent congestion): slow start, from the
//!   rate of the initial window where that is less.

mod climb;
mod knobs;
mod losses;
mod migrate;
#[cfg(test)]
mod tests;
mod utility;

use trimtab_units::{Bytes, Duration, Rate, Time};

use self::climb::Climb;
use self::knobs::Values;
use self::losses::Losses;
use crate::ceiling::Ceiling;
use crate::filter::WindowedMin;
use crate::interval::{Interval, Intervals, Purpose, Seen};
use crate::knob::knob_methods;
use crate::{
    Ack, Algorithm, Config, CongestionControl, Knob, Loss, LostPacket, Marked, Phase, Preset, Sent,
    Timeout,
};

/// No rate is lower, in Mbit/s: a packet of 1500 bytes in an eighth of a second.
const RATE_MIN: f64 = 0.1;
/// Nor higher.
const RATE_MAX: f64 = 400_000.0;
/// The window lets so many round trips of packets be in flight: it must not bind before the rate
/// does (migration.md §5).
const WINDOW_ROUNDS: f64 = 2.0;
/// For how long a minimum round-trip time counts.
const RTT_MIN_WINDOW: Duration = Duration::from_secs(10);
/// What congestion marks leave grows while a third of it is used: the brakes halve.
const CEILING_USED: f64 = 3.0;
/// Acknowledgements of an interval after which the rate may fall early (§5.2: "e.g. 50").
const EARLY_SAMPLES: u32 = 50;
/// The brakes other than that for losses (§5.3 gives no thresholds for these): the round-trip time
/// over its minimum and the least excess; the share of sent data that arrives.
const BRAKE_RTT: u64 = 3;
const BRAKE_RTT_MORE: Duration = Duration::from_millis(200);
const BRAKE_ARRIVED: f64 = 0.5;
/// Of so many intervals in a row: a link that sends in bursts is slow for one.
const BRAKE_STUCK: u32 = 2;
/// A share of so few acknowledgements is none.
const BRAKE_SAMPLES: u32 = 10;
/// Slow start ends by so many samples in a row that are late, and late means by this much at least: one is jitter.
const EXIT_SAMPLES: u32 = 8;
const EXIT_RTT_MORE: Duration = Duration::from_millis(4);

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "vivace",
    about: "PCC Vivace as deployed, not as published (vivace:plain): climbs the gradient of a \
            utility of rate, loss and delay growth",
    source: "Dong et al., NSDI 2018; PCC customization section 5",
    knobs: Vivace::KNOBS,
    presets: Vivace::PRESETS,
    build: |config| Vivace::new(config).into(),
};

/// The Vivace state machine.
///
/// ```text
///              utility falls, delay, losses
///   Starting ───────────────────────────────▶ Online: send, see, step ──┐
///   doubles every interval                      ▲   ▲                   │
///                                  brakes: half │   └─────── one step ──┘
/// ```
#[derive(Clone, Debug)]
pub struct Vivace {
    config: Config,
    values: Values,
    starting: bool,
    /// Whether a configured first rate is being sent, and nothing arrived yet.
    opening: bool,
    /// The rate that decisions are about, in Mbit/s; 0 before the first round-trip time.
    rate: f64,
    /// The rate of the running interval.
    sending: f64,
    intervals: Intervals,
    /// Whether the next packet begins an interval, however long the running one is.
    renew: bool,
    /// Whether an interval that the next decision needs is under way.
    awaiting: bool,
    /// In slow start no more is in flight than what arrived so far clocks out, as with any window:
    /// the rate alone would put two round trips of twice the capacity on the path before the first
    /// late packet tells.
    start_window: Bytes,
    /// Utility of the last interval of slow start.
    start_utility: f64,
    losses: Losses,
    climb: Climb,
    /// The probes of a pair: which goes first, how many were sent, what came back.
    pair: Pair,
    srtt: Duration,
    rtt_min: WindowedMin,
    /// Late samples in a row, in slow start.
    late: u32,
    /// Since when the round-trip time is excessive.
    excessive_since: Option<Time>,
    /// Intervals in a row of which too little arrived.
    stuck: u32,
    /// No brake before: the last one has to show its effect.
    calm_at: Time,
    /// The rate before a timeout, in Mbit/s, when nothing arrived since; 0 otherwise. Of a
    /// configured first rate nothing arrived, either: that of the initial window.
    timed_out: f64,
    /// What congestion marks leave.
    ceiling: Ceiling,
}

/// Two probes around a rate.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// Turned for every pair, so that no trend of the path favours one side.
    down_first: bool,
    sent: u8,
    up: Option<(f64, f64)>,
    down: Option<(f64, f64)>,
}

impl Vivace {
    /// What can be configured.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;
    /// The published form.
    pub const PRESETS: &'static [Preset] = knobs::PRESETS;

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            values: Values::default(),
            starting: true,
            opening: false,
            rate: 0.0,
            sending: 0.0,
            intervals: Intervals::new(),
            renew: false,
            awaiting: false,
            start_window: config.initial_window,
            start_utility: f64::NEG_INFINITY,
            losses: Losses::default(),
            climb: Climb::default(),
            pair: Pair { down_first: config.seed % 2 == 1, ..Pair::default() },
            srtt: Duration::ZERO,
            rtt_min: WindowedMin::new(),
            late: 0,
            excessive_since: None,
            stuck: 0,
            calm_at: Time::ZERO,
            timed_out: 0.0,
            ceiling: Ceiling::default(),
        }
    }

    /// Goes on at a rate, from the next packet on.
    fn go(&mut self, rate: f64) {
        self.rate = rate.clamp(RATE_MIN, RATE_MAX).min(self.ceiling_rate());
        self.sending = self.rate;
        self.renew = true;
        self.awaiting = false;
        self.pair = Pair { down_first: !self.pair.down_first, ..Pair::default() };
    }

    /// Goes on at a rate without what was seen before; what is under way was sent at another.
    fn forget(&mut self, rate: f64) {
        self.intervals.disregard();
        self.climb = Climb::default();
        self.late = 0;
        self.go(rate);
    }

    /// What the interval is for that begins now, and its rate.
    fn plan(&mut self) -> (Purpose, f64) {
        let unified = self.values.unified;
        if self.starting && unified {
            // A rate that the application left unused is not known to be good.
            let used = self.intervals.running().filter(|i| !i.app_limited && !self.renew);
            if used.is_some_and(|i| i.purpose == Purpose::Start) {
                self.rate = self.doubled();
            }
            return (Purpose::Start, self.rate);
        }
        if self.starting || unified {
            if self.awaiting {
                return (Purpose::Wait, self.rate);
            }
            self.awaiting = true;
            return (if self.starting { Purpose::Start } else { Purpose::Step }, self.rate);
        }
        let explore = self.values.explore;
        let up = (self.pair.sent == 0) != self.pair.down_first;
        self.pair.sent = (self.pair.sent + 1).min(3);
        match (self.pair.sent, up) {
            (3, _) => (Purpose::Wait, self.rate),
            (_, true) => (Purpose::Up, self.rate * (1.0 + explore)),
            (_, false) => (Purpose::Down, self.rate * (1.0 - explore)),
        }
    }

    /// All is known of an interval.
    fn conclude(&mut self, interval: &Interval, now: Time) {
        let seen = interval.seen();
        // §5.4: what the application left unused says nothing of the path.
        if interval.app_limited {
            match interval.purpose {
                Purpose::Up | Purpose::Down => {
                    self.pair = Pair { down_first: self.pair.down_first, ..Pair::default() };
                }
                Purpose::Start | Purpose::Step => self.awaiting = false,
                Purpose::Wait => {}
            }
            return;
        }
        self.losses.add(&seen);
        if self.brake_by(interval, &seen, now) {
            return;
        }
        let worth = utility::utility(&self.values, &self.losses.smoothed(&self.values, seen));
        match interval.purpose {
            Purpose::Wait => {}
            Purpose::Start => self.conclude_start(interval.asked, &seen, worth),
            Purpose::Step => {
                let gradient = self.climb.gradient(&seen, &self.losses, &self.values);
                self.step(gradient, &seen);
            }
            Purpose::Up => self.pair.up = Some((seen.rate, worth)),
            Purpose::Down => self.pair.down = Some((seen.rate, worth)),
        }
        if let (Some(up), Some(down)) = (self.pair.up, self.pair.down) {
            let gradient = utility::secant(down, up).unwrap_or(0.0);
            let rate = self.climb.step(self.rate, gradient, self.packet(), &self.values);
            self.go(rate);
        }
    }

    fn conclude_start(&mut self, asked: f64, seen: &Seen, worth: f64) {
        if worth < self.start_utility || seen.loss > self.values.startup_exit_loss {
            self.leave_start(asked / 2.0);
            return;
        }
        self.start_utility = worth;
        if !self.values.unified {
            self.go(self.doubled());
        }
    }

    fn leave_start(&mut self, rate: f64) {
        self.starting = false;
        self.forget(rate);
    }

    /// A step of exploring and using at once.
    fn step(&mut self, gradient: f64, seen: &Seen) {
        self.climb.remember(seen);
        let next = self.climb.step(self.rate, gradient, self.packet(), &self.values);
        self.go(next);
    }

    /// Decides before all of the interval is known, if that is down (§5.2).
    fn step_early(&mut self) {
        let Some(interval) = self.intervals.find(Purpose::Step) else { return };
        if interval.app_limited {
            return;
        }
        let seen = interval.seen();
        let gradient = self.climb.gradient(&seen, &self.losses, &self.values);
        if gradient < 0.0 {
            interval.purpose = Purpose::Wait;
            self.step(gradient, &seen);
        }
    }

    /// The brakes that one interval shows a reason for (§5.3).
    fn brake_by(&mut self, interval: &Interval, seen: &Seen, now: Time) -> bool {
        let arrived = seen.arrived.filter(|_| interval.samples >= BRAKE_SAMPLES);
        let stuck = arrived.filter(|arrived| *arrived < BRAKE_ARRIVED * seen.rate);
        self.stuck = if stuck.is_some() { self.stuck + 1 } else { 0 };
        let stuck = stuck.filter(|_| self.stuck >= BRAKE_STUCK);
        let lossy = self.losses.are_excessive();
        (lossy || stuck.is_some()) && self.brake(arrived.unwrap_or(RATE_MAX), now)
    }

    /// Halves the rate, or falls to what arrives where that is less; to a quarter at once, as what
    /// arrives may be a pause.
    fn brake(&mut self, arrived: f64, now: Time) -> bool {
        if !self.values.brakes || now < self.calm_at {
            return false;
        }
        self.starting = false;
        self.calm_at = now + self.srtt * 2;
        self.excessive_since = None;
        self.losses.begin_anew();
        self.forget(arrived.clamp(self.rate / 4.0, self.rate / 2.0));
        true
    }

    /// Excessive latency for a round trip (§5.3).
    fn watch_latency(&mut self, rtt: Duration, ack: &Ack) {
        let (Some(least), now) = (self.rtt_min.get(), ack.now) else { return };
        if rtt <= (least * BRAKE_RTT).max(least + BRAKE_RTT_MORE) {
            self.excessive_since = None;
            return;
        }
        let since = *self.excessive_since.get_or_insert(now);
        if now.since(since) >= least {
            self.brake(ack.rate.map_or(RATE_MAX, |sample| sample.rate().mbps()), now);
        }
    }

    /// Whether the round-trip time ends slow start.
    fn is_late(&mut self, rtt: Duration) -> bool {
        let Some(least) = self.rtt_min.get() else { return false };
        let share = self.values.startup_exit_latency;
        let late = rtt > least + least.mul_f64(share).max(EXIT_RTT_MORE);
        self.late = if late { self.late + 1 } else { 0 };
        self.late >= EXIT_SAMPLES
    }

    /// The initial window in each round trip, in Mbit/s.
    fn initial_window_rate(&self) -> f64 {
        let window = self.config.initial_window.bits() * 1e-6;
        window / self.srtt.as_secs_f64().max(1e-6)
    }

    /// A utility by other weights is no measure for the next one. The climb goes on: it has what
    /// was seen, and weighs it anew.
    fn on_knob(&mut self, _place: usize) {
        self.start_utility = f64::NEG_INFINITY;
    }

    /// That, or what is configured where it is more, in Mbit/s.
    fn initial_rate(&self) -> f64 {
        self.initial_window_rate().max(self.values.initial_rate)
    }

    fn doubled(&self) -> f64 {
        (2.0 * self.rate).min(self.values.startup_rate_max).min(self.ceiling_rate())
    }

    /// What congestion marks leave, in Mbit/s.
    fn ceiling_rate(&self) -> f64 {
        let rate = self.ceiling.get().bits() * 1e-6 / self.srtt.as_secs_f64().max(1e-6);
        rate.max(RATE_MIN)
    }

    /// A packet in each round trip, in Mbit/s.
    fn packet(&self) -> f64 {
        self.config.mss.bits() * 1e-6 / self.srtt.as_secs_f64().max(1e-6)
    }

    /// A packet that was sent just before an interval's end may be declared lost so much after the first one after it
    /// arrives (RACK's reordering window, RFC 8985 §6.2).
    fn grace(&self) -> Duration {
        self.srtt / 4
    }
}

impl CongestionControl for Vivace {
    fn on_established(&mut self, rtt: Duration) {
        let most = self.values.startup_rate_max;
        let first = self.values.initial_rate.min(most);
        let window = Rate::from_mbps(first) * rtt;
        if window <= self.config.initial_window {
            return;
        }
        self.srtt = rtt;
        self.opening = true;
        self.start_window = window;
        self.timed_out = self.initial_window_rate();
        self.go(first);
    }

    fn on_sent(&mut self, sent: &Sent) {
        if self.rate > 0.0 {
            let packets = self.values.min_packets;
            let due = |i: &Interval| i.is_due(sent.now, self.srtt, packets);
            let over = self.renew || self.intervals.running().is_none_or(due);
            if over && !self.intervals.is_full() {
                let (purpose, asked) = self.plan();
                self.intervals.begin(sent.now, purpose, asked);
                (self.sending, self.renew) = (asked, false);
            }
        }
        self.intervals.on_sent(sent.bytes, sent.app_limited);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        self.start_window += ack.acked;
        self.timed_out = 0.0;
        if let Some(rtt) = ack.rtt {
            self.rtt_min.update(ack.now, RTT_MIN_WINDOW, rtt);
        }
        let limits = CEILING_USED * self.rate >= self.ceiling_rate();
        self.ceiling.on_ack(ack, limits, self.config.mss);
        if self.rate == 0.0 {
            // The initial window was the first interval: the next is twice that.
            let most = self.values.startup_rate_max;
            self.go((2.0 * self.initial_rate()).min(most));
            return;
        }
        if core::mem::take(&mut self.opening) && self.values.unified {
            // That was the first interval; the published form waits for what it was worth.
            self.go(self.doubled());
        }
        let of = self.intervals.on_ack(ack.now, ack.newest_sent_at, ack.acked, ack.rtt);
        let asked = of.map(|interval| interval.asked);
        // Not after each one more: who looks often enough sees a fall in any noise.
        let look = ack.rtt.is_some()
            && of.is_some_and(|i| i.purpose == Purpose::Step && i.samples % EARLY_SAMPLES == 0);
        if let Some(rtt) = ack.rtt {
            if !self.starting {
                self.watch_latency(rtt, ack);
            } else if let Some(asked) = asked
                && self.is_late(rtt)
            {
                self.leave_start(asked / 2.0);
            }
        }
        while let Some(interval) = self.intervals.take_resolved(ack.newest_sent_at, self.grace()) {
            self.conclude(&interval, ack.now);
        }
        if look && self.values.early {
            self.step_early();
        }
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.intervals.on_lost(lost.sent_at, lost.bytes, lost.new_range);
    }

    /// Losses count by packet, in the interval that each was sent in.
    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_marked(&mut self, marked: &Marked) {
        // Its own window is a bound of two round trips: of what is in flight (RFC 9438 §4.6).
        let mss = self.config.mss;
        if self.ceiling.on_marked(marked, marked.prior_inflight, mss) && self.rate > 0.0 {
            self.leave_start(self.rate);
        }
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.intervals.clear();
        if self.rate == 0.0 {
            return;
        }
        if self.timed_out == 0.0 {
            self.timed_out = self.rate;
            self.leave_start(self.rate / 2.0);
            return;
        }
        self.starting = true;
        self.opening = false;
        self.start_window = self.config.initial_window;
        self.start_utility = f64::NEG_INFINITY;
        self.forget(self.timed_out.min(self.initial_rate()));
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.config = Config { seed: self.config.seed, ..*limits };
        self.ceiling.on_mtu(limits.mss);
    }

    fn window(&self) -> Bytes {
        if self.rate == 0.0 {
            return self.config.initial_window;
        }
        let bytes = WINDOW_ROUNDS * self.sending * 125_000.0 * self.srtt.as_secs_f64();
        let clocked = if self.starting { self.start_window } else { Bytes::MAX };
        let least = Bytes::from_f64(bytes).min(clocked).max(self.config.min_window * 2);
        least.min(self.ceiling.get())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let initial = self.values.initial_rate;
        let mbps = if self.rate > 0.0 { self.sending } else { initial };
        (mbps > 0.0).then(|| Rate::from_mbps(mbps))
    }

    fn phase(&self) -> Phase {
        if self.starting { Phase::SlowStart } else { Phase::Steady }
    }

    /// It has no recovery: a loss is part of what an interval was worth.
    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}
