//! NADA: one congestion signal of delay, losses and marks, which times the rate is the same for all
//! flows of a link.
//!
//! Read first: RFC 8698, "Network-Assisted Dynamic Adaptation (NADA): A Unified Congestion Control
//! Scheme for Real-Time Media". The comments have its sections and symbols. `signal.rs` is its
//! §4.2, this file its §4.3. All of it runs at the sender, which RFC 8698 §6.2 permits.
//!
//! Where it departs:
//! * RMAX is two things in the RFC, the bound of the rate and a weight of the equations. Here they
//!   are two knobs, `rate_max` and `rate_ref`, so that the bound may rise without the queue.
//! * The rate grows to at most twice what arrives (§4.3 bounds it in the accelerated mode only): an
//!   encoder that is idle shows nothing of the path.
//! * Without `on_feedback` acknowledgements are the arrivals, with half of the round trip too much
//!   in every delay. Their marks come without shares, and bound the rate as in `ceiling.rs`.
//! * A timeout halves the rate. RFC 8698 leaves them to a circuit breaker (RFC 8083).

mod knobs;
mod signal;
#[cfg(test)]
mod tests;

use trimtab_units::{Bytes, Duration, Rate, Time};

use self::knobs::Values;
use self::signal::Signal;
use crate::by_rate::{self, Transport};
use crate::ceiling::Ceiling;
use crate::knob::knob_methods;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::one_way::OneWay;
use crate::{
    Ack, Algorithm, Config, CongestionControl, Feedback, Knob, Loss, LostPacket, Marked, Phase,
    Sent, Timeout,
};

/// Time between two updates, DELTA (§4.1, Figure 3).
const DELTA: Duration = Duration::from_millis(100);
/// The longest round-trip time that the controller is stable at, TAU, in milliseconds (§4.3,
/// Equation 7).
const TAU: f64 = 500.0;
/// The accelerated mode (§4.3, Equation 3): most growth at once, GAMMA_MAX; the queue that it may
/// make, QBOUND; and the delay of the filters, DFILT.
const GAMMA_MAX: f64 = 0.5;
const QBOUND: Duration = Duration::from_millis(50);
const DFILT: Duration = Duration::from_millis(120);
/// What is paced beyond the target for a frame that waits, BETA_S (§5.2.2): a frame at 30 a second
/// is 1/30 s of it, and FPS · BETA_S of that is a tenth.
const PACE: f64 = 1.1;
/// The most of the rate over what arrives. Ours: §4.3 has none in the gradual mode.
const USED: f64 = 2.0;

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "nada",
    about: "for media: weighs delay, losses and marks as one signal, by which flows share a link",
    source: "RFC 8698",
    knobs: Nada::KNOBS,
    presets: &[],
    build: |config| Nada::new(config).into(),
};

/// The NADA state machine.
///
/// ```text
///              queue or loss in the last half second
///   accelerated ─────────────────────────────────────▶ gradual
///   r_ref by what arrives ◀───────────────────────────  r_ref by x_curr
///                              neither
/// ```
#[derive(Clone, Debug)]
pub struct Nada {
    config: Config,
    values: Values,
    /// `None` before anything arrived.
    over: Option<Transport>,
    /// Whether the capacity was not seen yet.
    starting: bool,
    /// The reference rate `r_ref`.
    rate: Rate,
    way: OneWay,
    signal: Signal,
    /// `x_prev`, in milliseconds.
    congestion: f64,
    updated_at: Option<Time>,
    rtt: Duration,
    srtt: Duration,
    /// Lost packets that no acknowledgement has counted.
    lost: u32,
    ceiling: Ceiling,
}

impl Nada {
    /// What can be turned.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        let values = Values::default();
        Self {
            config: *config,
            values,
            over: None,
            starting: true,
            rate: Rate::from_mbps(values.rate_min),
            way: OneWay::default(),
            signal: Signal::default(),
            congestion: 0.0,
            updated_at: None,
            rtt: Duration::ZERO,
            srtt: Duration::ZERO,
            lost: 0,
            ceiling: Ceiling::default(),
        }
    }

    /// Goes on at a rate, without what was seen.
    fn begin(&mut self, rate: Rate, starting: bool) {
        self.way = OneWay::default();
        self.signal = Signal::default();
        self.congestion = 0.0;
        self.updated_at = None;
        self.starting = starting;
        self.set(rate);
    }

    /// Clips to RMIN and RMAX (§4.3).
    fn set(&mut self, rate: Rate) {
        let [least, most] = [self.values.rate_min, self.values.rate_max].map(Rate::from_mbps);
        self.rate = rate.min(most).max(least);
    }

    /// What congestion marks of acknowledgements leave.
    fn bounded(&self) -> Rate {
        if !self.ceiling.is_set() || self.srtt.is_zero() {
            return self.rate;
        }
        let least = Rate::from_mbps(self.values.rate_min);
        self.rate.min(self.ceiling.get() / self.srtt).max(least)
    }

    fn window_rate(&self) -> Rate {
        if self.srtt.is_zero() { Rate::ZERO } else { self.config.initial_window / self.srtt }
    }

    fn receive(&mut self, feedback: &Feedback<'_>, lost: u32) {
        let now = feedback.now;
        for packet in feedback.packets {
            let Some(arrival) = packet.arrived_at else { continue };
            let queued = self.way.queued(packet.sent_at, arrival, now);
            self.signal.on_arrival(now, queued, packet.bytes, packet.marked);
        }
        self.signal.on_lost(now, lost);
        self.rtt = feedback.rtt.unwrap_or(self.rtt);
        let last = *self.updated_at.get_or_insert(now);
        let delta = now.since(last);
        if delta >= DELTA {
            self.updated_at = Some(now);
            self.signal.close(delta);
            self.update(now, delta);
            self.signal.open();
        }
    }

    /// One step of the sender (§4.3).
    fn update(&mut self, now: Time, delta: Duration) {
        let congestion = self.signal.congestion();
        if self.signal.has_room(now) {
            self.accelerate();
        } else {
            self.starting = false;
            self.follow(congestion, delta);
        }
        self.congestion = congestion;
    }

    /// Accelerated ramp-up (§4.3, Equations 3 and 4).
    fn accelerate(&mut self) {
        let gamma = GAMMA_MAX.min(QBOUND.ratio(self.rtt + DELTA + DFILT));
        let rate = self.signal.received().mul_f64(1.0 + gamma);
        self.set(self.rate.max(rate));
    }

    /// Gradual update (§4.3, Equations 5 to 7).
    fn follow(&mut self, congestion: f64, delta: Duration) {
        let Values { prio, xref, kappa, eta, rate_ref, .. } = self.values;
        let offset = congestion - prio * xref * rate_ref / self.rate.mbps().max(1e-6);
        let diff = congestion - self.congestion;
        let delta = delta.as_millis_f64().min(TAU) / TAU;
        let change = -kappa * delta * offset / TAU - kappa * eta * diff / TAU;
        let rate = self.rate.mul_f64(1.0 + change);
        let used = self.signal.received().mul_f64(USED).max(self.rate);
        self.set(rate.min(used));
    }

    /// A knob that bounds the rate does so at once; the start is the least rate.
    fn on_knob(&mut self, _place: usize) {
        let least = Rate::from_mbps(self.values.rate_min);
        self.set(if self.over.is_none() { least } else { self.rate });
    }
}

impl CongestionControl for Nada {
    fn on_established(&mut self, rtt: Duration) {
        self.srtt = rtt;
    }

    fn on_sent(&mut self, _sent: &Sent) {}

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        by_rate::grow(&mut self.ceiling, ack, self.config.mss);
        match self.over {
            Some(Transport::Media) => return,
            Some(Transport::Stream) => {}
            None => {
                self.set(self.rate.max(self.window_rate()));
                self.over = Some(Transport::Stream);
            }
        }
        let lost = core::mem::take(&mut self.lost);
        by_rate::as_feedback(ack, |feedback| self.receive(feedback, lost));
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if self.over != Some(Transport::Media) {
            // What acknowledgements told is of another kind; where nothing was known, so is the
            // rate.
            let rate = if self.starting { Rate::ZERO } else { self.rate };
            self.begin(rate, self.starting);
            self.over = Some(Transport::Media);
            self.ceiling = Ceiling::default();
        }
        let lost = feedback.packets.iter().filter(|packet| packet.arrived_at.is_none()).count();
        self.receive(feedback, u32::try_from(lost).unwrap_or(u32::MAX));
    }

    /// Counted with the acknowledgement that follows, or by the feedback.
    fn on_packet_lost(&mut self, _lost: &LostPacket) {
        if self.over != Some(Transport::Media) {
            self.lost = self.lost.saturating_add(1);
        }
    }

    /// Losses count by packet, in the signal.
    fn on_loss(&mut self, _loss: &Loss) {}

    /// Feedback of media has the marks of each packet, which the signal weighs.
    fn on_marked(&mut self, marked: &Marked) {
        if self.over != Some(Transport::Media) {
            self.ceiling.on_marked(marked, marked.prior_inflight, self.config.mss);
        }
    }

    fn on_timeout(&mut self, _timeout: &Timeout) {
        self.starting = false;
        self.set(self.rate.mul_f64(0.5));
    }

    fn on_mtu(&mut self, limits: &Config) {
        let initial_window = self.config.initial_window.max(limits.min_window);
        self.config = Config { initial_window, seed: self.config.seed, ..*limits };
        self.ceiling.on_mtu(limits.mss);
    }

    fn window(&self) -> Bytes {
        let held = match self.over {
            None => self.config.initial_window.max(self.config.min_window),
            Some(over) => by_rate::window(self.bounded(), self.srtt, over, &self.config),
        };
        held.min(self.ceiling.get()).max(self.config.min_window)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(match self.over {
            None => self.rate.mul_f64(PACE).max(self.window_rate()),
            Some(Transport::Stream) => self.bounded(),
            Some(Transport::Media) => self.rate.mul_f64(PACE),
        })
    }

    fn target(&self) -> Option<Rate> {
        Some(self.bounded())
    }

    fn phase(&self) -> Phase {
        if self.starting { Phase::SlowStart } else { Phase::Steady }
    }

    /// It has no recovery: losses are a part of the signal.
    fn manages_recovery(&self) -> bool {
        true
    }

    knob_methods!(self.values, then on_knob);
}

impl Migrate for Nada {
    /// Its window is a bound; its reference rate is what it sends at.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let rate = self.bounded();
        let window = rate * path.srtt();
        OperatingPoint { rate, ..OperatingPoint::of_window(window, path) }
    }

    fn take_over(&mut self, from: &HandOver) {
        self.srtt = from.srtt;
        self.rtt = from.srtt;
        self.over = Some(Transport::Stream);
        self.begin(from.rate.min(from.bandwidth), from.starved);
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.srtt = srtt;
        if !srtt.is_zero() {
            self.over = Some(Transport::Stream);
            self.begin(window / srtt, true);
        }
    }

    /// At what is known to be carried: a rate has no threshold.
    fn retreat(&mut self, from: &HandOver, _ssthresh: Bytes) {
        self.take_over(&HandOver { rate: from.bandwidth, ..*from });
    }
}
