//! PCC Allegro: tries a higher and a lower rate in randomised controlled trials, and moves to the
//! one whose utility was higher both times.
//!
//! Read first: Dong et al., "PCC: Re-architecting Congestion Control for Consistent High
//! Performance", NSDI 2015, §2.2 (utility) and §3.1 (control). The crate's `interval.rs` has the
//! monitor intervals, which Vivace has, too; `migrate.rs` how it takes over.
//!
//! Where the paper is silent, or this differs:
//!
//! * The initial window of every connection (RFC 6928) is the first interval. The paper begins with
//!   two packets per round trip.
//! * The transport's window lets two round trips of packets be in flight, as in the authors' kernel
//!   module. The paper's sender has none.
//! * What the application left unused says nothing of the path: such an interval is tried again.
//! * Congestion marks (ECN) bound the rate to what `ceiling.rs` allows in a round trip. The utility
//!   knows losses alone.
//! * A timeout halves the rate. Another before anything arrives means that the path is not what it
//!   was (RFC 9002 §7.6): the starting phase begins again.

mod migrate;
#[cfg(test)]
mod tests;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use trimtab_units::{Bytes, Duration, Rate};

use crate::ceiling::Ceiling;
use crate::interval::{Interval, Intervals, Purpose, Seen};
use crate::knob::{knob_methods, knobs};
use crate::{
    Ack, Algorithm, Config, CongestionControl, Knob, Loss, LostPacket, Marked, Phase, Sent, Timeout,
};

/// No rate is lower, in Mbit/s: a packet of 1500 bytes in an eighth of a second.
const RATE_MIN: f64 = 0.1;
/// Nor higher.
const RATE_MAX: f64 = 400_000.0;
/// The window lets so many round trips of packets be in flight (the authors' `pcc_set_cwnd()`).
const WINDOW_ROUNDS: f64 = 2.0;
/// An interval lasts a random time between so many round trips, and so many packets at least (§3.1,
/// "Monitor": T_m is the larger of 10 packets' time and 1.7 to 2.2 RTT).
const INTERVAL_ROUNDS: core::ops::Range<f64> = 1.7..2.2;
const INTERVAL_PACKETS: f64 = 10.0;
/// Trials of a decision: two pairs (§3.1, "Decision Making State").
const TRIALS: u8 = 4;
/// What congestion marks leave grows while a half of it is used: the window is two round trips.
const CEILING_USED: f64 = 2.0;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "allegro",
    about: "PCC Allegro: randomised trials of a higher and a lower rate by a utility of \
            throughput and loss, which bears 5% of random loss",
    source: "Dong et al., NSDI 2015",
    knobs: Allegro::KNOBS,
    presets: &[],
    build: |config| Allegro::new(config).into(),
};

knobs! {
    /// The values of its knobs. Defaults: §2.2 and §3.1.
    struct Values {
        loss_margin: f64 = 0.05, 0.0..=0.5, "1",
            "share of lost packets at which the utility collapses; more bears more random loss, \
             and loses more in shared buffers";
        steepness: f64 = 100.0, 1.0..=1000.0, "1",
            "how sharply it collapses there (the sigmoid's alpha)";
        epsilon_min: f64 = 0.01, 0.001..=0.05, "1",
            "the least difference of a trial's rates, as a share, and the step of the rate; more \
             follows the path sooner and wanders more";
        epsilon_max: f64 = 0.05, 0.01..=0.2, "1",
            "the greatest difference of a trial's rates, as a share";
    }
}

/// u = T · sigmoid(L - 0.05) - x · L with the throughput T = x (1 - L) and
/// sigmoid(y) = 1 / (1 + e^(α y)) (§2.2), for the rate x in Mbit/s and the share L that was lost.
fn utility(values: &Values, seen: &Seen) -> f64 {
    let excess = values.steepness * (seen.loss - values.loss_margin);
    let sigmoid = 1.0 / (1.0 + libm::exp(excess));
    seen.rate * ((1.0 - seen.loss) * sigmoid - seen.loss)
}

/// What it is about.
///
/// ```text
///            utility falls             both pairs agree
///  Starting ──────────────▶ Deciding ──────────────────▶ Adjusting
///  doubles                  ▲     │ ▲                        │
///                 disagree: └─────┘ └──── utility falls ─────┘
///                 ε grows
/// ```
#[derive(Clone, Copy, Debug)]
enum State {
    /// §3.1, "Starting State": the rate doubles in each interval. Utility of the last.
    Starting { utility: f64 },
    /// §3.1, "Decision Making State".
    Deciding(Trials),
    /// §3.1, "Rate Adjusting State": steps of n ε in one direction. What the rate before was worth.
    Adjusting { up: bool, step: u32, before: (f64, f64) },
}

/// Two pairs of trials, each of a higher and a lower rate in random order.
#[derive(Clone, Copy, Debug)]
struct Trials {
    /// How far their rates are from the present one, as a share.
    epsilon: f64,
    /// Whether the first of each pair is the higher rate.
    up_first: [bool; 2],
    sent: u8,
    seen: u8,
    /// Utilities of the pair that is being seen: lower, higher rate.
    pair: (f64, f64),
    /// How many pairs had more utility at the higher rate, and what each rate was worth in sum.
    up_won: u8,
    worth: (f64, f64),
}

impl Trials {
    fn new(epsilon: f64, rng: &mut Pcg32) -> Self {
        let up_first = [rng.random(), rng.random()];
        let none = (0.0, 0.0);
        Self { epsilon, up_first, sent: 0, seen: 0, pair: none, up_won: 0, worth: none }
    }

    /// The next trial to send: whether it is the higher rate.
    fn next(&mut self) -> Option<bool> {
        if self.sent == TRIALS {
            return None;
        }
        let (pair, first) = (usize::from(self.sent / 2), self.sent.is_multiple_of(2));
        self.sent += 1;
        Some(self.up_first[pair] == first)
    }

    /// What one of them was worth. They come in the order in which they were sent.
    fn add(&mut self, up: bool, utility: f64) {
        if up {
            self.pair.1 = utility;
            self.worth.1 += utility;
        } else {
            self.pair.0 = utility;
            self.worth.0 += utility;
        }
        self.seen += 1;
        if self.seen.is_multiple_of(2) {
            self.up_won += u8::from(self.pair.1 > self.pair.0);
        }
    }

    /// Once all are seen: whether the higher rate was better in both pairs, or the lower one, with
    /// its mean utility; `None` where they disagree.
    fn verdict(&self) -> Option<(bool, f64)> {
        match self.up_won {
            0 => Some((false, self.worth.0 / 2.0)),
            2 => Some((true, self.worth.1 / 2.0)),
            _ => None,
        }
    }
}

/// The Allegro state machine.
#[derive(Clone, Debug)]
pub struct Allegro {
    config: Config,
    values: Values,
    state: State,
    /// The rate that decisions are about, in Mbit/s; 0 before the first round-trip time.
    rate: f64,
    /// The rate of the running interval, and how long it lasts.
    sending: f64,
    length: Duration,
    intervals: Intervals,
    /// Whether the next packet begins an interval, however long the running one is.
    renew: bool,
    /// Whether the interval that the next decision needs is under way.
    awaiting: bool,
    srtt: Duration,
    /// The rate before a timeout, in Mbit/s, when nothing arrived since; 0 otherwise.
    timed_out: f64,
    ceiling: Ceiling,
    rng: Pcg32,
}

impl Allegro {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            values: Values::default(),
            state: State::Starting { utility: f64::NEG_INFINITY },
            rate: 0.0,
            sending: 0.0,
            length: Duration::ZERO,
            intervals: Intervals::new(),
            renew: false,
            awaiting: false,
            srtt: Duration::ZERO,
            timed_out: 0.0,
            ceiling: Ceiling::default(),
            rng: Pcg32::seed_from_u64(config.seed),
        }
    }

    /// Goes on at a rate, from the next packet on.
    fn go(&mut self, rate: f64) {
        self.rate = rate.clamp(RATE_MIN, RATE_MAX).min(self.ceiling_rate());
        self.sending = self.rate;
        self.renew = true;
        self.awaiting = false;
    }

    /// Trials around a rate. What is under way is not one of them.
    fn decide(&mut self, rate: f64, epsilon: f64) {
        self.intervals.disregard();
        let epsilon = epsilon.min(self.values.epsilon_max);
        self.state = State::Deciding(Trials::new(epsilon, &mut self.rng));
        self.go(rate);
    }

    /// What the interval is for that begins now, and its rate.
    fn plan(&mut self) -> (Purpose, f64) {
        match &mut self.state {
            State::Starting { .. } => {
                // A rate that the application left unused is not known to be good.
                let used = self.intervals.running().is_some_and(|i| !i.app_limited);
                if used && !self.renew {
                    self.rate = self.doubled();
                }
                (Purpose::Start, self.rate)
            }
            State::Deciding(trials) => match trials.next() {
                Some(true) => (Purpose::Up, self.rate * (1.0 + trials.epsilon)),
                Some(false) => (Purpose::Down, self.rate * (1.0 - trials.epsilon)),
                None => (Purpose::Wait, self.rate),
            },
            State::Adjusting { .. } => {
                let first = !core::mem::replace(&mut self.awaiting, true);
                (if first { Purpose::Step } else { Purpose::Wait }, self.rate)
            }
        }
    }

    /// All is known of an interval.
    fn conclude(&mut self, interval: &Interval) {
        if interval.purpose == Purpose::Wait {
            return;
        }
        if interval.app_limited {
            self.try_again();
            return;
        }
        let worth = utility(&self.values, &interval.seen());
        match (&mut self.state, interval.purpose) {
            (State::Starting { utility }, Purpose::Start) => {
                if worth >= *utility {
                    *utility = worth;
                } else {
                    // §3.1: back to the rate before, which was worth more.
                    self.decide(interval.asked / 2.0, self.values.epsilon_min);
                }
            }
            (State::Deciding(trials), purpose @ (Purpose::Up | Purpose::Down)) => {
                trials.add(purpose == Purpose::Up, worth);
                if trials.seen == TRIALS {
                    self.conclude_trials();
                }
            }
            (&mut State::Adjusting { up, step, before }, Purpose::Step) => {
                if worth < before.1 {
                    self.decide(before.0, self.values.epsilon_min);
                } else {
                    self.adjust(up, step + 1, (interval.asked, worth));
                }
            }
            // It was sent for a state that is over.
            _ => {}
        }
    }

    fn conclude_trials(&mut self) {
        let State::Deciding(trials) = self.state else { return };
        match trials.verdict() {
            Some((up, worth)) => {
                let epsilon = if up { trials.epsilon } else { -trials.epsilon };
                self.adjust(up, 1, (self.rate * (1.0 + epsilon), worth));
            }
            // §3.1: inconclusive, so look with a wider step.
            None => self.decide(self.rate, trials.epsilon + self.values.epsilon_min),
        }
    }

    /// §3.1: r_n = r_(n-1) (1 + n ε_min dir).
    fn adjust(&mut self, up: bool, step: u32, before: (f64, f64)) {
        let change = f64::from(step) * self.values.epsilon_min;
        // So many steps down would not leave a rate.
        let factor = if up { 1.0 + change } else { (1.0 - change).max(0.5) };
        self.intervals.disregard();
        self.state = State::Adjusting { up, step, before };
        self.go(before.0 * factor);
    }

    /// The application left the rate unused: the same trial, or the same step.
    fn try_again(&mut self) {
        match self.state {
            State::Starting { .. } => {}
            State::Deciding(trials) => self.decide(self.rate, trials.epsilon),
            State::Adjusting { .. } => {
                self.intervals.disregard();
                self.awaiting = false;
            }
        }
    }

    /// The initial window in each round trip, in Mbit/s.
    fn initial_rate(&self) -> f64 {
        self.config.initial_window.bits() * 1e-6 / self.srtt.as_secs_f64().max(1e-6)
    }

    fn doubled(&self) -> f64 {
        (2.0 * self.rate).min(RATE_MAX).min(self.ceiling_rate())
    }

    /// What congestion marks leave, in Mbit/s.
    fn ceiling_rate(&self) -> f64 {
        let rate = self.ceiling.get().bits() * 1e-6 / self.srtt.as_secs_f64().max(1e-6);
        rate.max(RATE_MIN)
    }

    /// A packet that was sent just before an interval's end may be declared lost so much after the
    /// first one after it arrives (RACK's reordering window, RFC 8985 §6.2).
    fn grace(&self) -> Duration {
        self.srtt / 4
    }

    /// Utilities by other weights cannot be compared with those so far.
    fn on_knob(&mut self, _place: usize) {
        match &mut self.state {
            State::Starting { utility } => *utility = f64::NEG_INFINITY,
            State::Deciding(_) | State::Adjusting { .. } => {
                self.decide(self.rate, self.values.epsilon_min);
            }
        }
    }
}

impl CongestionControl for Allegro {
    fn on_sent(&mut self, sent: &Sent) {
        if self.rate > 0.0 {
            let due = |i: &Interval| i.is_due(sent.now, self.length, INTERVAL_PACKETS);
            let over = self.renew || self.intervals.running().is_none_or(due);
            if over && !self.intervals.is_full() {
                let (purpose, asked) = self.plan();
                self.intervals.begin(sent.now, purpose, asked);
                self.length = self.srtt.mul_f64(self.rng.random_range(INTERVAL_ROUNDS));
                (self.sending, self.renew) = (asked, false);
            }
        }
        self.intervals.on_sent(sent.bytes, sent.app_limited);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        self.timed_out = 0.0;
        let limits = CEILING_USED * self.rate >= self.ceiling_rate();
        self.ceiling.on_ack(ack, limits, self.config.mss);
        if self.rate == 0.0 {
            // The initial window was the first interval: the next is twice that.
            self.go(2.0 * self.initial_rate());
            return;
        }
        self.intervals.on_ack(ack.now, ack.newest_sent_at, ack.acked, ack.rtt);
        while let Some(interval) = self.intervals.take_resolved(ack.newest_sent_at, self.grace()) {
            self.conclude(&interval);
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
            self.decide(self.rate, self.values.epsilon_min);
        }
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.intervals.clear();
        if self.rate == 0.0 {
            return;
        }
        if self.timed_out == 0.0 {
            self.timed_out = self.rate;
            self.decide(self.rate / 2.0, self.values.epsilon_min);
            return;
        }
        self.state = State::Starting { utility: f64::NEG_INFINITY };
        self.go(self.timed_out.min(self.initial_rate()));
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
        Bytes::from_f64(bytes).max(self.config.min_window * 2).min(self.ceiling.get())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        (self.rate > 0.0).then(|| Rate::from_mbps(self.sending))
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Starting { .. } => Phase::SlowStart,
            State::Deciding(_) | State::Adjusting { .. } => Phase::Steady,
        }
    }

    /// It has no recovery: a loss is part of what an interval was worth.
    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}
