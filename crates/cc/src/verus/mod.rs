//! Verus: learns which delay belongs to which window, aims for a delay that it raises and lowers every
//! 5 ms, and takes the window for it from what it has learnt.
//!
//! Read first: Zaki et al., "Adaptive Congestion Control for Unpredictable Cellular Networks", SIGCOMM
//! 2015, §4 and §5. `profile.rs` has the delay profile. The comments use the paper's symbols: `Dest`,
//! `Dmax`, `Dmin`, `δ1`, `δ2`, `W`. Constants that the paper leaves open are those of the authors'
//! program (`src/verus.hpp`, `src/verus_server.cpp`). Where this differs:
//!
//! * A packet's window is what was in flight when it left. The authors' packets carry the window
//!   that was aimed for, which a slow application does not use.
//! * The transport tells of losses. The authors' sender waits 150 ms for what is missing.
//! * What an epoch may send (eq. 5) is the pacing rate, and the window is a bound. The authors'
//!   sender sends it as one burst.
//! * Epochs pass when something happens. Nothing happens on a silent path, where the aim would only
//!   fall.
//! * Where the profile does not reach the aim, the window is a packet, or up to a quarter, beyond
//!   what was measured. The authors' program starts over with slow start. The aim ends at R · Dmin.
//! * Connections begin with the initial window of RFC 6928, not with one packet.
//! * Congestion marks (ECN) bound the window (`ceiling.rs`). The profile knows delay alone.

mod profile;

use alloc::boxed::Box;

use trimtab_units::{Bytes, Duration, Rate, Time};

use self::profile::{Profile, WINDOW_MAX};
use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate};
use crate::{
    Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, LostPacket, Marked, Phase, Sent,
    Timeout,
};

/// ε (§5: `EPOCH`).
const EPOCH: Duration = Duration::from_millis(5);
/// After so many epochs without any event the aim has fallen as far as it does.
const EPOCHS_MAX: u64 = 400;
/// What a loss leaves of the window of the lost packet (§4, eq. 6: M; `VERUS_M_DECREASE`).
const KEEP: f64 = 0.7;
/// The profile is fitted so often (§5: `CURVE_TIMER`).
const REFIT: Duration = Duration::from_secs(1);
/// Slow start ends at this round-trip time in ms (`SS_EXIT_THRESHOLD`), or at a loss beyond so many
/// packets. The profile forgets what is above that loss, but not below so many packets.
const EXIT_DELAY: f64 = 500.0;
const EXIT_WINDOW: f64 = 20.0;
const EXIT_PROFILE: f64 = 100.0;
/// What a new sample leaves of the average round-trip time, and of `Dmax` (eq. 2: α).
const KEEP_RTT: f64 = 0.875;
const KEEP_MAX: f64 = 0.2;
/// A greater `Dmax` by less than this, in ms, is none.
const NOTABLE: f64 = 1e-4;
/// An aim at `Dmin` with fewer packets than this in flight is stuck: `Dmin` then grows by this, in ms.
const STUCK_PACKETS: f64 = 2.0;
const STUCK_MORE: f64 = 10.0;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "verus",
    about: "raises and lowers the delay that it aims for every 5 ms, and takes the window for it \
            from a learnt profile",
    source: "Zaki et al., SIGCOMM 2015",
    knobs: Verus::KNOBS,
    presets: &[],
    build: |config| Verus::new(config).into(),
};

knobs! {
    /// The values of its knobs. Defaults: the authors' program.
    struct Values {
        r: f64 = 6.0, 1.2..=20.0, "1",
            "the delay falls once it is above so many times the least one; more fills fast links \
             and queues more";
        delta1: f64 = 1.0, 0.1..=20.0, "ms",
            "how much the aim falls in an epoch after a greater delay";
        delta2: f64 = 2.0, 0.1..=20.0, "ms",
            "how much the aim rises in an epoch after a smaller delay; more follows the link \
             sooner and overshoots more";
    }
}

/// Where in its life it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// §4: a packet more for each acknowledged; the profile is made.
    SlowStart,
    /// The window follows the profile.
    Profiled,
    /// A loss was seen, or slow start's delay: the window grows as Reno's until packets that left
    /// with no more than it come back, and the profile rests.
    LossPhase {
        /// Slow start has just ended: the delay is its own.
        exiting: bool,
    },
}

/// The Verus state machine.
#[derive(Clone, Debug)]
pub struct Verus {
    config: Config,
    values: Values,
    state: State,
    /// W, in packets, and as bytes.
    packets: f64,
    window: Bytes,
    /// In a box: it is 12 kB.
    profile: Box<Profile>,
    refit_at: Time,
    epoch_ends: Option<Time>,
    /// Delays in ms: the aim, the least, the smoothed greatest of the epochs, the greatest of this one,
    /// and the average of all.
    aim: f64,
    least: f64,
    greatest: Option<f64>,
    of_epoch: Option<f64>,
    average: f64,
    acked_at: Time,
    inflight: Bytes,
    /// The aim cannot fall, and nothing may leave (`dMinStop`).
    stopped: bool,
    pacing: Option<Rate>,
    /// In flight when the first packet of the present batch of losses left.
    lost_at: Option<f64>,
    ceiling: Ceiling,
}

impl Verus {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection with every knob at its default.
    pub fn new(config: &Config) -> Self {
        let mut new = Self {
            config: *config,
            values: Values::default(),
            state: State::SlowStart,
            packets: 1.0,
            window: Bytes::ZERO,
            profile: Box::new(Profile::new()),
            refit_at: Time::ZERO,
            epoch_ends: None,
            aim: 0.0,
            least: f64::INFINITY,
            greatest: None,
            of_epoch: None,
            average: 0.0,
            acked_at: Time::ZERO,
            inflight: Bytes::ZERO,
            stopped: false,
            pacing: None,
            lost_at: None,
            ceiling: Ceiling::default(),
        };
        new.set_bytes(config.initial_window);
        new
    }

    fn in_packets(&self, bytes: Bytes) -> f64 {
        bytes.ratio(self.config.mss.max(Bytes::new(1)))
    }

    fn set(&mut self, packets: f64) {
        self.packets = packets.clamp(1.0, WINDOW_MAX);
        self.window = self.config.mss.max(Bytes::new(1)).mul_f64(self.packets);
    }

    fn set_bytes(&mut self, window: Bytes) {
        self.set(self.in_packets(window));
        self.window = window;
    }

    /// Lets the epochs pass that are over.
    fn advance(&mut self, now: Time) {
        let mut ends = *self.epoch_ends.get_or_insert(now + EPOCH);
        if ends > now {
            return;
        }
        let over = now.since(ends).as_nanos() / EPOCH.as_nanos() + 1;
        ends += EPOCH * over;
        self.epoch_ends = Some(ends);
        if self.state == State::SlowStart {
            return;
        }
        if now >= self.refit_at {
            self.profile.fit();
            self.refit_at = now + REFIT;
        }
        for left in (0..over.min(EPOCHS_MAX)).rev() {
            self.epoch(now - EPOCH * left);
        }
    }

    /// §4, "Window Estimator": once per epoch.
    fn epoch(&mut self, now: Time) {
        let silence = now.since(self.acked_at).as_millis_f64();
        let last = self.greatest;
        // eq. 1 and 2: the greatest delay of the epoch, smoothed.
        let of_epoch = self.of_epoch.take().unwrap_or_else(|| silence.max(last.unwrap_or(0.0)));
        let before = last.unwrap_or(of_epoch);
        self.aim_for(before, of_epoch - before);
        self.greatest = Some(KEEP_MAX * before + (1.0 - KEEP_MAX) * of_epoch);
        // §4: the window that the profile has for the aim.
        if let Some(window) = self.profile.window(self.aim) {
            self.set(window);
        }
        self.pacing = Some(self.quota());
    }

    /// eq. 4: the next aim, by the smoothed greatest delay and its change.
    fn aim_for(&mut self, greatest: f64, change: f64) {
        let Values { r, delta1, delta2 } = self.values;
        let least = self.least;
        self.stopped = false;
        if greatest > r * least {
            if self.state == (State::LossPhase { exiting: true }) {
                return;
            }
            self.aim = (self.aim - delta2).max(least);
            if self.aim > least {
                return;
            }
            if self.in_packets(self.inflight) < STUCK_PACKETS {
                self.least += STUCK_MORE;
            } else {
                self.stopped = true;
            }
        } else if change > NOTABLE {
            self.aim = (self.aim - delta1).max(least);
        } else {
            self.aim = (self.aim + delta2).min(r * least);
        }
    }

    /// eq. 5: what may leave in an epoch, so that W is in flight after the n - 1 epochs of a round
    /// trip; as a rate, of a packet per epoch at least.
    fn quota(&self) -> Rate {
        let epochs = libm::ceil(self.average / EPOCH.as_millis_f64());
        let inflight = self.in_packets(self.inflight);
        let packets = if epochs > 1.0 {
            self.packets + inflight * (2.0 - epochs) / (epochs - 1.0)
        } else {
            self.packets - inflight
        };
        let packet = self.config.mss.max(Bytes::new(1));
        packet.mul_f64(packets.max(1.0)) / EPOCH
    }

    /// A packet that left as one of so many in flight came back after so long.
    fn learn(&mut self, rtt: f64, window: f64, ack: &Ack) {
        self.average = match self.average {
            0.0 => rtt,
            average => KEEP_RTT * average + (1.0 - KEEP_RTT) * rtt,
        };
        self.least = self.least.min(rtt);
        if let State::LossPhase { .. } = self.state {
            if window <= self.packets {
                self.state = State::Profiled;
                self.of_epoch = None;
            } else {
                // eq. 7: congestion avoidance within the loss phase.
                let acked = self.in_packets(ack.acked);
                self.set(self.packets + acked / self.packets);
                let delay = self.profile.delay(self.packets).unwrap_or(self.aim);
                self.aim = self.aim.min(delay.max(self.least));
                return;
            }
        }
        self.of_epoch = Some(self.of_epoch.unwrap_or(0.0).max(rtt));
        self.profile.add(window, rtt);
        if self.state == State::SlowStart {
            if rtt > EXIT_DELAY {
                self.leave_slow_start(KEEP * window, ack.now);
                self.state = State::LossPhase { exiting: true };
            } else if ack.cwnd_limited {
                self.set(self.packets + self.in_packets(ack.acked));
            }
        }
    }

    /// §4: the first profile is what slow start saw.
    fn leave_slow_start(&mut self, packets: f64, now: Time) {
        self.profile.fit();
        self.refit_at = now + REFIT;
        self.epoch_ends = Some(now + EPOCH);
        self.greatest = None;
        self.reduce(packets);
    }

    /// eq. 6: the aim becomes what the profile has for the reduced window.
    fn reduce(&mut self, packets: f64) {
        self.set(packets);
        let delay = self.profile.delay(self.packets).unwrap_or(self.least);
        // Nothing may have been measured yet.
        self.aim =
            if self.least.is_finite() { delay.max(self.least) } else { delay.min(EXIT_DELAY) };
        self.state = State::LossPhase { exiting: false };
    }
}

impl CongestionControl for Verus {
    fn on_sent(&mut self, sent: &Sent) {
        self.advance(sent.now);
        self.inflight = sent.inflight;
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let inflight = ack.rate.map_or(ack.prior_inflight, |sample| sample.tx_in_flight);
            let window = self.in_packets(inflight).max(1.0);
            self.learn(rtt.as_millis_f64(), window, ack);
        }
        self.inflight = ack.inflight;
        self.acked_at = ack.now;
        self.advance(ack.now);
        let limits = ack.cwnd_limited && self.window() >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.config.mss);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        let window = self.in_packets(lost.tx_in_flight).max(1.0);
        self.lost_at.get_or_insert(window);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.inflight = loss.inflight;
        let of_lost = self.lost_at.take().unwrap_or(self.packets);
        let window = (KEEP * of_lost).min(self.packets);
        match self.state {
            State::SlowStart if window > EXIT_WINDOW => {
                self.profile.forget_above(of_lost.max(EXIT_PROFILE));
                self.leave_slow_start(window, loss.now);
            }
            State::SlowStart => self.set(window),
            State::Profiled => self.reduce(window),
            State::LossPhase { .. } => {}
        }
        self.advance(loss.now);
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.ceiling.on_marked(marked, self.window(), self.config.mss);
    }

    /// `TimeoutHandler()` of the authors' program: slow start ends, or the aim is the least delay.
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.inflight = timeout.inflight;
        self.lost_at = None;
        match self.state {
            State::SlowStart => self.leave_slow_start(KEEP * self.packets, timeout.now),
            State::Profiled | State::LossPhase { .. } => {
                self.aim = if self.least.is_finite() { self.least } else { self.aim };
                self.set(1.0);
                self.state = State::LossPhase { exiting: false };
            }
        }
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.config = *limits;
        self.set_bytes(self.window);
        self.ceiling.on_mtu(self.config.mss);
    }

    /// The silence was the application's.
    fn on_idle(&mut self, idle: &Idle) {
        self.acked_at = idle.now;
        self.epoch_ends = Some(idle.now + EPOCH);
    }

    fn window(&self) -> Bytes {
        let window = if self.stopped { Bytes::ZERO } else { self.window };
        window.min(self.ceiling.get()).max(self.config.min_window)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing.filter(|_| self.state != State::SlowStart)
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::SlowStart => Phase::SlowStart,
            State::Profiled => Phase::Steady,
            State::LossPhase { .. } => Phase::Recovery,
        }
    }

    /// Its loss phase is its own.
    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values);
}

impl Migrate for Verus {
    /// The first profile is that of a link with the bandwidth and the least delay of the hand-over.
    fn take_over(&mut self, from: &HandOver) {
        let packet = self.config.mss.max(Bytes::new(1)).as_f64();
        let bandwidth = from.bandwidth.bytes_per_sec() as f64 / packet / 1000.0;
        self.set_bytes(from.window.max(self.config.min_window));
        (self.least, self.average) = (from.min_rtt.as_millis_f64(), from.srtt.as_millis_f64());
        *self.profile = Profile::of_link(self.least, bandwidth, 2.0 * self.packets);
        self.aim = self.profile.delay(self.packets).unwrap_or(self.average).max(self.least);
        self.state = State::Profiled;
        (self.greatest, self.of_epoch) = (None, None);
        (self.refit_at, self.acked_at) = (from.now + REFIT, from.now);
        self.epoch_ends = Some(from.now + EPOCH);
        self.inflight = from.inflight;
        self.stopped = false;
        self.pacing = Some(self.quota());
    }

    /// Slow start from there on; the profile is of another algorithm's queue.
    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.set_bytes(window);
    }

    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.take_over(&HandOver { window: from.window.min(ssthresh), ..*from });
    }
}

#[cfg(test)]
mod tests;
