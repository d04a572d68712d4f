//! Astraea: a network alone moves the window, by up to 2.5% every 30 ms. It was learnt by many flows
//! at once, for a reward of all of them: throughput, delay, loss, and how fair and steady they are.
//!
//! Read first: Liao et al., "Astraea: Towards Fair and Efficient Learning-based Congestion Control",
//! EuroSys 2024. What is done follows the authors' programs (`python/agent/definitions.py`,
//! `python/infer.py`, `kernel/tcp-astraea/tcp_astraea.c` of `xudongliao/astraea-open-source`), which
//! only run the network: what they learnt it by is not public. [`VALUES`] numbers are what the
//! network sees; an [`Actor`] answers with the action. The crate `trimtab-steer` has the network,
//! since its file is read there. `actor.rs` is the kernel's report. Where this differs:
//!
//! * An interval ends at the first event after its time. On a path that is silent nothing happens.
//! * Packets that were sent again are those that were lost within the last smoothed round trip. The
//!   kernel counts them.
//! * In loss recovery an action changes nothing, since in Linux the window is then as it was before
//!   once recovery ends (`astraea_ssthresh()`).
//! * A window that is not used does not grow (RFC 9002 §7.8).
//! * Congestion marks (ECN) bound the window (`ceiling.rs`).

use alloc::sync::Arc;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::actor::{Actor, Monitor, Report, push};
use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::{Ack, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Sent, Timeout};

/// Its name on the command line.
pub(crate) const NAME: &str = "astraea";
/// States that the network sees, and the values of each (`astraea.json`: `rec_dim`; `STATE_DIM`).
const STATES: usize = 5;
const FEATURES: usize = 10;
/// Values of a history.
pub const VALUES: usize = STATES * FEATURES;
/// What an action of one adds to the window, as a share (`map_action()`).
const STEP: f64 = 0.025;
/// No action leaves fewer packets (`tcp_bbr_init_cwnd` of the patched kernel).
const LEAST: f64 = 4.0;
/// Ratios of round-trip times, of the window and of the pacing rate say no more above this.
const RATIO_MAX: f64 = 2.0;
/// Without a delivery rate, and without a round-trip time (`transform_state()`).
const NO_RATE: f64 = 0.5;
const NO_RTT: f64 = 2.0;
/// A window over what the path holds counts so much: bits over bytes, a tenth, payload over packet.
const WINDOW_SCALE: f64 = 8.0 / 10.0;
/// Scales of the highest rate, in bytes per second, and of the least round-trip time, in s.
const RATE_SCALE: f64 = 1e7;
const RTT_SCALE: f64 = 0.5;

knobs! {
    /// The values of its knobs.
    struct Values {
        interval: f64 = 30.0, 5.0..=1000.0, "ms",
            "how often the network acts; more is slower to follow the path";
        cap: f64 = 65_536.0, 4.0..=1_000_000.0, "packets",
            "no window is larger, whatever the network says";
    }
}

/// What the network sees of an interval (`transform_state()`).
fn features(report: &Report, window: Bytes, sent_again: Bytes) -> [f64; FEATURES] {
    let over_least = |rtt: f64| if report.min_rtt > 0.0 { rtt / report.min_rtt } else { 0.0 };
    let holds = report.most * report.min_rtt;
    let filled = if holds > 0.0 { WINDOW_SCALE * window.as_f64() / holds } else { 0.0 };
    [
        report.rate.map_or(NO_RATE, |rate| report.share(rate)),
        report.rtt.map_or(NO_RTT, over_least).min(RATIO_MAX),
        if report.srtt > 0.0 { over_least(report.srtt).min(RATIO_MAX) } else { NO_RTT },
        filled.min(RATIO_MAX),
        report.most / RATE_SCALE,
        report.min_rtt / RTT_SCALE,
        report.share(report.loss),
        report.inflight.ratio(window),
        report.share(report.pacing).min(RATIO_MAX),
        sent_again.ratio(window),
    ]
}

/// The window after an action, in whole packets (`map_action()` of `infer.py`).
fn moved(packets: f64, action: f64) -> f64 {
    let action = if action.is_finite() { action.clamp(-1.0, 1.0) } else { 0.0 };
    let packets = if action >= 0.0 {
        libm::ceil((1.0 + STEP * action) * packets)
    } else {
        libm::floor(packets / (1.0 - STEP * action))
    };
    packets.max(LEAST)
}

/// The Astraea state machine.
#[derive(Clone, Debug)]
pub struct Astraea {
    config: Config,
    values: Values,
    network: Arc<dyn Actor>,
    window: Bytes,
    monitor: Monitor,
    history: [f64; VALUES],
    /// Bytes that were lost in the running round trip and in the one before, and when it began.
    lost: [Bytes; 2],
    round_began: Time,
    in_recovery: bool,
    ceiling: Ceiling,
}

impl Astraea {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection by this network.
    pub fn new(config: &Config, network: Arc<dyn Actor>) -> Self {
        Self {
            config: *config,
            values: Values::default(),
            network,
            window: config.initial_window,
            monitor: Monitor::default(),
            history: [0.0; VALUES],
            lost: [Bytes::ZERO; 2],
            round_began: Time::ZERO,
            in_recovery: false,
            ceiling: Ceiling::default(),
        }
    }

    fn set(&mut self, packets: f64) {
        let window = self.config.mss.mul_f64(packets.min(self.values.cap));
        self.window = window.max(self.config.min_window);
    }
}

impl Astraea {
    /// Bytes that were lost within the last round trip.
    fn sent_again(&mut self, now: Time, srtt: Duration) -> Bytes {
        if now.since(self.round_began) >= srtt {
            self.lost = [Bytes::ZERO, self.lost[0]];
            self.round_began = now;
        }
        self.lost[0] + self.lost[1]
    }

    /// Ends the interval, if its time is over: a report, and its action.
    fn advance(&mut self, now: Time) {
        let interval = Duration::from_millis_f64(self.values.interval);
        if !self.monitor.is_over(now, interval) {
            return;
        }
        let report = self.monitor.report(now);
        let sent_again = self.sent_again(now, Duration::from_secs_f64(report.srtt));
        push(&mut self.history, &features(&report, self.window, sent_again));
        let packets = libm::floor(self.window.ratio(self.config.mss));
        let next = moved(packets, self.network.act(&self.history));
        if !self.in_recovery && (!report.unused || next <= packets) {
            self.set(next);
        }
    }

    /// What was seen so far is of another path.
    fn forget(&mut self, window: Bytes, srtt: Duration) {
        self.window = window.max(self.config.min_window);
        self.monitor.inherit(window, srtt);
        self.history = [0.0; VALUES];
        self.lost = [Bytes::ZERO; 2];
    }
}

impl CongestionControl for Astraea {
    fn on_sent(&mut self, sent: &Sent) {
        self.monitor.begin_first(sent.now);
        self.monitor.on_sent(sent.inflight, sent.app_limited);
        self.advance(sent.now);
    }

    fn on_ack(&mut self, ack: &Ack) {
        let limits = ack.cwnd_limited && self.window >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.config.mss);
        self.in_recovery = ack.in_recovery;
        self.monitor.begin_first(ack.now);
        self.monitor.on_ack(ack);
        self.advance(ack.now);
        self.monitor.pace(self.window());
    }

    /// `astraea_ssthresh()`: a loss leaves the window as it is.
    fn on_loss(&mut self, loss: &Loss) {
        self.monitor.on_loss(loss);
        self.lost[0] += loss.lost;
        self.in_recovery = true;
        self.advance(loss.now);
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.ceiling.on_marked(marked, self.window, self.config.mss);
    }

    /// Linux's `tcp_enter_loss()`.
    fn on_timeout(&mut self, timeout: &Timeout) {
        self.monitor.on_timeout(timeout);
        self.window = self.config.min_window;
        self.in_recovery = false;
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.config = *limits;
        self.window = self.window.max(limits.min_window);
        self.ceiling.on_mtu(limits.mss);
    }

    /// The window goes back to the first one (RFC 5681 §4.1).
    fn on_idle(&mut self, idle: &Idle) {
        self.window = self.window.min(self.config.initial_window);
        self.monitor.begin(idle.now);
    }

    fn window(&self) -> Bytes {
        self.window.min(self.ceiling.get()).max(self.config.min_window)
    }

    /// `astraea_update_pacing_rate()`: a window in a round trip, without gain.
    fn pacing_rate(&self) -> Option<Rate> {
        self.monitor.pacing_rate()
    }

    fn phase(&self) -> Phase {
        Phase::Steady
    }

    knob_methods!(self.values);
}

impl Migrate for Astraea {
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        OperatingPoint::of_window(self.window(), path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.forget(from.window, from.srtt);
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.forget(window, srtt);
    }
}

#[cfg(test)]
mod tests;
