//! Aurora: a network learnt by reinforcement changes the sending rate once per monitor interval.
//!
//! Read first: Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion Control",
//! ICML 2019, §3. [`History`] is what the network sees; a [`Network`] gives the change. The crate
//! `trimtab-steer` has the network, since its file is read there. Constants are those of the authors'
//! programs: of the simulator in which the network was trained (`src/gym/network_sim.py`,
//! `src/common/sender_obs.py`), and of the sender (`src/udt-plugins/testing/loaded_client.py`). Where
//! this differs:
//!
//! * An interval counts what is acknowledged and lost while it lasts, as in the authors' simulator. In
//!   their sender it counts what becomes of its own packets.
//! * Intervals end at the first event after their time. Nothing happens on a silent path.
//! * The window bounds what is in flight to two round trips. The authors' sender has none.
//! * An interval in which the application left the rate unused is not seen, and changes nothing.
//! * A timeout leads to the least rate (RFC 9002 §7.6.2).
//! * Congestion marks (ECN) bound the window (`ceiling.rs`).

pub mod mocc;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::{Ack, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Sent, Timeout};

/// Its name on the command line.
pub(crate) const NAME: &str = "aurora";
/// Intervals that the network sees, and the values of each (§3.1).
const INTERVALS: usize = 10;
const FEATURES: usize = 3;
/// Values of a history.
pub const VALUES: usize = INTERVALS * FEATURES;
/// An interval lasts this share of the average round-trip time of the last (`network_sim.py`:
/// `run_dur`), and the first this many round trips.
const SHARE: f64 = 0.5;
const FIRST: f64 = 1.5;
/// A sending rate of more than so many times the arriving one says nothing (`sender_obs.py`).
const SEND_RATIO_MAX: f64 = 1000.0;
/// Round-trip times that an interval keeps: those after them say nothing new.
const SAMPLES_MAX: usize = 4096;
/// So many round trips of the rate may be in flight.
const WINDOW_ROUNDS: f64 = 2.0;

/// What the network sees: of each of the last intervals, oldest first, how much the round-trip time
/// rose in its second half for its length, its average over the least average so far, and the
/// sending rate over the arriving one (§3.1).
pub type History = [f64; VALUES];

/// What decides.
pub trait Network: fmt::Debug + Send + Sync {
    /// The change of the rate after a history, in units of the step.
    fn change(&self, history: &History) -> f64;
}

knobs! {
    /// The values of its knobs. Defaults: the authors' programs.
    struct Values {
        step: f64 = 0.025, 0.005..=0.2, "1",
            "what a change of one does to the rate, as a share; the authors trained with 0.025, \
             and their sender has 0.05; more follows the path sooner and wanders more";
        initial_rate: f64 = 6.0, 0.1..=300.0, "Mbit/s",
            "the first rate; more finds fast links sooner and floods slow ones";
        rate_min: f64 = 0.5, 0.05..=100.0, "Mbit/s", "the rate never falls below it";
        rate_max: f64 = 300.0, 1.0..=10_000.0, "Mbit/s", "the rate never rises above it";
    }
}

/// What was counted in the running interval. The list grows to what an interval has, and then stays.
#[derive(Clone, Debug, Default)]
struct Interval {
    began: Time,
    length: Duration,
    sent: Bytes,
    acked: Bytes,
    /// Round-trip times in s.
    rtts: Vec<f64>,
    app_limited: bool,
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

impl Interval {
    fn begin(&mut self, now: Time, length: Duration) {
        (self.began, self.length) = (now, length);
        (self.sent, self.acked, self.app_limited) = (Bytes::ZERO, Bytes::ZERO, false);
        self.rtts.clear();
    }

    /// The values of the interval, which ends now; `least` is the least average so far
    /// (`sender_obs.py`).
    fn features(&self, now: Time, least: &mut f64, packet: Bytes) -> [f64; FEATURES] {
        let length = now.since(self.began).as_secs_f64();
        let average = mean(&self.rtts);
        if average > 0.0 {
            *least = least.min(average);
        }
        let (first, second) = self.rtts.split_at(self.rtts.len() / 2);
        let increase = if first.is_empty() { 0.0 } else { mean(second) - mean(first) };
        let ratio = if least.is_finite() { average / *least } else { 1.0 };
        // The authors' arriving rate is without the packet that opens it.
        let arrived = self.acked.as_f64() - packet.as_f64();
        let sent = self.sent.as_f64();
        let told = arrived > 0.0 && sent < SEND_RATIO_MAX * arrived;
        [increase / length.max(1e-9), ratio, if told { sent / arrived } else { 1.0 }]
    }
}

/// The Aurora state machine.
#[derive(Clone, Debug)]
pub struct Aurora {
    config: Config,
    values: Values,
    network: Arc<dyn Network>,
    /// In Mbit/s.
    rate: f64,
    srtt: Duration,
    /// Nothing of the first, which begins with the first acknowledgement.
    interval: Option<Interval>,
    history: History,
    /// The least average round-trip time of an interval, in s.
    least: f64,
    ceiling: Ceiling,
}

impl Aurora {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection by this network.
    pub fn new(config: &Config, network: Arc<dyn Network>) -> Self {
        let values = Values::default();
        let mut new = Self {
            config: *config,
            values,
            network,
            rate: values.initial_rate,
            srtt: Duration::ZERO,
            interval: None,
            history: [0.0; VALUES],
            least: f64::INFINITY,
            ceiling: Ceiling::default(),
        };
        new.forget();
        new
    }

    /// A history of empty intervals: no rise, and ratios of one.
    fn forget(&mut self) {
        for features in self.history.chunks_exact_mut(FEATURES) {
            features.copy_from_slice(&[0.0, 1.0, 1.0]);
        }
    }

    fn set(&mut self, rate: f64) {
        self.rate = rate.min(self.values.rate_max).max(self.values.rate_min);
    }

    /// A first rate is set before the connection has one of its own.
    fn on_knob(&mut self, place: usize) {
        const INITIAL: usize = Knob::place(Values::KNOBS, "initial_rate");
        let first = place == INITIAL && self.interval.is_none();
        self.set(if first { self.values.initial_rate } else { self.rate });
    }

    /// Ends the interval, if its time is over.
    fn advance(&mut self, now: Time) {
        let Some(interval) = &mut self.interval else { return };
        if now.since(interval.began) < interval.length {
            return;
        }
        let packet = self.config.mss;
        let features = interval.features(now, &mut self.least, packet);
        let average = mean(&interval.rtts);
        let next =
            if average > 0.0 { Duration::from_secs_f64(SHARE * average) } else { interval.length };
        let unused = interval.app_limited;
        interval.begin(now, next);
        if !unused {
            self.history.copy_within(FEATURES.., 0);
            self.history[VALUES - FEATURES..].copy_from_slice(&features);
            self.act();
        }
    }

    /// `apply_rate_delta()`.
    fn act(&mut self) {
        let change = self.network.change(&self.history) * self.values.step;
        let change = if change.is_finite() { change } else { 0.0 };
        let factor = if change >= 0.0 { 1.0 + change } else { 1.0 / (1.0 - change) };
        self.set(self.rate * factor);
    }
}

impl CongestionControl for Aurora {
    fn on_sent(&mut self, sent: &Sent) {
        self.advance(sent.now);
        if let Some(interval) = &mut self.interval {
            interval.sent += sent.bytes;
            interval.app_limited |= sent.app_limited;
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        let limits = ack.cwnd_limited || ack.prior_inflight * 3 >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.config.mss);
        let interval = self.interval.get_or_insert_with(|| {
            let length = ack.srtt.mul_f64(FIRST);
            Interval { began: ack.now, length, ..Interval::default() }
        });
        interval.acked += ack.acked;
        if let Some(rtt) = ack.rtt.filter(|_| interval.rtts.len() < SAMPLES_MAX) {
            interval.rtts.push(rtt.as_secs_f64());
        }
        self.advance(ack.now);
    }

    /// The network knows losses by what does not arrive.
    fn on_loss(&mut self, loss: &Loss) {
        self.advance(loss.now);
    }

    fn on_marked(&mut self, marked: &Marked) {
        let mss = self.config.mss;
        self.ceiling.on_marked(marked, marked.prior_inflight, mss);
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.forget();
        self.interval = None;
        self.set(self.values.rate_min);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.config = *limits;
        self.ceiling.on_mtu(limits.mss);
    }

    fn on_idle(&mut self, idle: &Idle) {
        if let Some(interval) = &mut self.interval {
            let length = interval.length;
            interval.begin(idle.now, length);
        }
    }

    fn window(&self) -> Bytes {
        if self.srtt.is_zero() {
            return self.config.initial_window;
        }
        let bytes = WINDOW_ROUNDS * self.rate * 125_000.0 * self.srtt.as_secs_f64();
        Bytes::from_f64(bytes).max(self.config.min_window * 2).min(self.ceiling.get())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_mbps(self.rate))
    }

    fn phase(&self) -> Phase {
        Phase::Steady
    }

    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for Aurora {
    /// Its window is a bound; its rate is what it sends at.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let rate = Rate::from_mbps(self.rate);
        OperatingPoint { rate, ..OperatingPoint::of_window(rate * path.srtt(), path) }
    }

    fn take_over(&mut self, from: &HandOver) {
        self.srtt = from.srtt;
        self.set(from.rate.min(from.bandwidth).mbps());
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        if !srtt.is_zero() {
            self.srtt = srtt;
            self.set((window / srtt).mbps());
        }
    }
}

#[cfg(test)]
mod tests;
