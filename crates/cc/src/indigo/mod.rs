//! Indigo: a network learnt by imitation changes the window every 10 ms.
//!
//! Read first: Yan et al., "Pantheon: the training ground for Internet congestion-control research",
//! ATC 2018, §5. [`State`] is what the network sees, [`Action`] what it may do; a [`Network`] decides.
//! The crate `trimtab-steer` has the network, since its file is read there. Where the paper is
//! silent, this does as the authors' program (`env/sender.py`, `dagger/run_sender.py`). Where it
//! differs:
//!
//! * What left since a packet did, which gives the sending rate, is counted from what was delivered,
//!   lost and in flight. The authors' packets carry it.
//! * A packet's delivery rate is over the longer of the intervals of sending and acknowledging
//!   (draft-cheng-iccrg-delivery-rate-estimation). The authors' is over the second.
//! * The transport paces, as it does for any algorithm that gives no rate (RFC 9002 §7.7).
//! * A timeout leads to the floor (RFC 9002 §7.6.2). The authors' sender sends a packet each second.
//! * A window that is not used does not grow (RFC 9002 §7.8).
//! * Congestion marks (ECN) bound the window (`ceiling.rs`).

use alloc::boxed::Box;
use core::fmt;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::{Ack, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Timeout};

/// Its name on the command line.
pub(crate) const NAME: &str = "indigo";
/// A step lasts longer than this (`sender.py`: `step_len_ms`).
pub const STEP: Duration = Duration::from_millis(10);
/// The window of a new connection and the least one, in packets (`sender.py`).
const FIRST: f64 = 10.0;
const LEAST: f64 = 2.0;
/// What a new sample takes of an average (`sender.py`: 0.125).
const GAIN: f64 = 0.125;
/// Values of a state.
pub const VALUES: usize = 4;

/// What the network sees at the end of a step: the average queueing delay in ms, the average delivery
/// and sending rates in Mbit/s, and the window in packets (§5). Averages begin anew with each step.
pub type State = [f64; VALUES];

/// What is done to the window (§5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Half of it.
    Halve,
    /// Ten packets less.
    Less,
    /// Nothing.
    Keep,
    /// Ten packets more.
    More,
    /// Twice of it.
    Double,
}

impl Action {
    /// All, in the order of the network's outputs (`sender.py`: `action_mapping`).
    pub const ALL: [Self; 5] = [Self::Halve, Self::Less, Self::Keep, Self::More, Self::Double];

    /// The window after it, in packets, without limits.
    fn apply(self, window: f64) -> f64 {
        match self {
            Self::Halve => window / 2.0,
            Self::Less => window - 10.0,
            Self::Keep => window,
            Self::More => window + 10.0,
            Self::Double => window * 2.0,
        }
    }
}

/// What decides, with what it remembers of a connection.
pub trait Network: fmt::Debug + Send + Sync {
    /// The action in the next state of the connection.
    fn decide(&mut self, state: &State) -> Action;

    /// A copy that goes on as this one would.
    fn fork(&self) -> Box<dyn Network>;
}

impl Clone for Box<dyn Network> {
    fn clone(&self) -> Self {
        self.as_ref().fork()
    }
}

knobs! {
    /// The value of its knob.
    struct Values {
        cap: f64 = 65_536.0, 4.0..=1_000_000.0, "packets",
            "no window is larger, whatever the network says";
    }
}

/// An average that begins with its first sample.
#[derive(Clone, Copy, Debug, Default)]
struct Average(Option<f64>);

impl Average {
    fn add(&mut self, sample: f64) {
        let before = self.0.unwrap_or(sample);
        self.0 = Some((1.0 - GAIN) * before + GAIN * sample);
    }

    fn take(&mut self) -> f64 {
        self.0.take().unwrap_or_default()
    }
}

/// The Indigo state machine.
#[derive(Clone, Debug)]
pub struct Indigo {
    config: Config,
    values: Values,
    network: Box<dyn Network>,
    /// In packets.
    window: f64,
    /// The authors' clock counts whole milliseconds.
    least_ms: u64,
    delay_ms: Average,
    delivery_mbps: Average,
    sending_mbps: Average,
    /// `None` before the first acknowledgement.
    step_began: Option<Time>,
    is_used: bool,
    ceiling: Ceiling,
}

impl Indigo {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection by a network that remembers nothing.
    pub fn new(config: &Config, network: Box<dyn Network>) -> Self {
        Self {
            config: *config,
            values: Values::default(),
            network,
            window: FIRST,
            least_ms: u64::MAX,
            delay_ms: Average::default(),
            delivery_mbps: Average::default(),
            sending_mbps: Average::default(),
            step_began: None,
            is_used: false,
            ceiling: Ceiling::default(),
        }
    }

    fn mss(&self) -> Bytes {
        self.config.mss.max(Bytes::new(1))
    }

    fn set(&mut self, window: f64) {
        self.window = window.clamp(LEAST, self.values.cap);
    }

    fn set_bytes(&mut self, window: Bytes) {
        self.set(window.ratio(self.mss()));
    }

    fn on_knob(&mut self, _place: usize) {
        self.set(self.window);
    }

    /// `Sender.update_state()`.
    fn measure(&mut self, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        let clock_ms = |time: Time| time.since(Time::ZERO).as_millis();
        let rtt_ms = clock_ms(ack.now).saturating_sub(clock_ms(ack.now - rtt));
        self.least_ms = self.least_ms.min(rtt_ms);
        self.delay_ms.add((rtt_ms - self.least_ms) as f64);
        let Some(sample) = &ack.rate else { return };
        let over = |bytes: Bytes, time: Duration| {
            let rate: Rate = bytes / time.max(Duration::from_millis(1));
            rate.mbps()
        };
        self.delivery_mbps.add(over(sample.delivered, sample.interval));
        let since = sample.delivered + ack.inflight + sample.lost - sample.tx_in_flight;
        self.sending_mbps.add(over(since, rtt));
    }

    /// The end of a step: the network sees its state, and the next begins.
    fn act(&mut self) {
        let state = [
            self.delay_ms.take(),
            self.delivery_mbps.take(),
            self.sending_mbps.take(),
            self.window,
        ];
        let next = self.network.decide(&state).apply(self.window);
        if core::mem::take(&mut self.is_used) || next < self.window {
            self.set(next);
        }
    }
}

impl CongestionControl for Indigo {
    fn on_ack(&mut self, ack: &Ack) {
        let limits = ack.cwnd_limited && self.window() >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.config.mss);
        self.is_used |= ack.cwnd_limited;
        self.measure(ack);
        let began = *self.step_began.get_or_insert(ack.now);
        if ack.now.since(began) > STEP {
            self.act();
            self.step_began = Some(ack.now);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_marked(&mut self, marked: &Marked) {
        self.ceiling.on_marked(marked, self.window(), self.config.mss);
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.set(LEAST);
    }

    fn on_mtu(&mut self, limits: &Config) {
        let window = self.mss().mul_f64(self.window);
        self.config = *limits;
        self.set_bytes(window);
        self.ceiling.on_mtu(self.config.mss);
    }

    /// What was measured is of another time (RFC 5681 §4.1).
    fn on_idle(&mut self, idle: &Idle) {
        self.set(self.window.min(FIRST));
        self.step_began = Some(idle.now);
    }

    fn window(&self) -> Bytes {
        // `window_is_open()`: as many packets as are not less than the window.
        let packets = libm::ceil(self.window) as u64;
        (self.mss() * packets).min(self.ceiling.get()).max(self.config.min_window)
    }

    fn phase(&self) -> Phase {
        Phase::Steady
    }

    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for Indigo {
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        OperatingPoint::of_window(self.window(), path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.set_bytes(from.window);
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.set_bytes(window);
    }
}

#[cfg(test)]
mod tests;
