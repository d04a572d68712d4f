//! Orca: Linux's CUBIC moves the window with every acknowledgement, and a network multiplies it by
//! something between a quarter and four every 20 ms.
//!
//! Read first: Abbasloo, Yen and Chao, "Classic Meets Modern: a Pragmatic Learning-Based Congestion
//! Control for the Internet", SIGCOMM 2020. What is done follows the authors' programs
//! (`rl-module/envwrapper.py`, `src/orca-server-mahimahi.cc` of `Soheil-ab/Orca`). [`VALUES`] numbers
//! are what the network sees; an [`Actor`] answers with the action. The crate `trimtab-steer` has the
//! network, since its file is read there. `actor.rs` is the kernel's report. Where this differs:
//!
//! * A report comes with the first acknowledgement after its time, and its action at once. The
//!   authors' programs look every 2 ms, and their network answers up to 10 ms later.
//! * In loss recovery an action changes nothing. In Linux recovery ends at CUBIC's threshold,
//!   whatever the window was set to.
//! * The first slow start ends with the threshold that CUBIC sets. The authors' program goes on until
//!   the window is above it.
//! * A window that is not used does not grow (RFC 9002 §7.8).
//! * Congestion marks (ECN) bound the window (`ceiling.rs`).

use alloc::sync::Arc;

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::Cubic;
use crate::actor::{Actor, Monitor, Report, push};
use crate::ceiling::Ceiling;
use crate::knob::{knob_methods, knobs};
use crate::migrate::{HandOver, Migrate};
use crate::{Ack, Config, CongestionControl, Idle, Knob, Loss, Marked, Phase, Sent, Timeout};

/// Its name on the command line.
pub(crate) const NAME: &str = "orca";
/// States that the network sees, and the values of each (`params.json`: `rec_dim`, `state_dim`).
const STATES: usize = 10;
const FEATURES: usize = 7;
/// Values of a history.
pub const VALUES: usize = STATES * FEATURES;
/// A window is multiplied by four to the power of the action (`map_action()`).
const BASE: f64 = 4.0;
/// It is counted in hundredths, rounded down (`map_action()`).
const PARTS: f64 = 100.0;
/// No action leaves fewer packets (`MIN_CWND`).
const LEAST: f64 = 4.0;
/// In the first slow start the window is multiplied by this …
const SEARCH: f64 = 1.1;
/// … this often, where something was acknowledged meanwhile (a tenth of `report_period`).
const SEARCH_PERIOD: Duration = Duration::from_millis(2);
/// A lost packet counts as so many delivered ones (`envwrapper.py`).
const LOSS_WEIGHT: f64 = 5.0;
/// A pacing rate of more than so many times the highest throughput says nothing (`envwrapper.py`).
const PACING_MAX: f64 = 10.0;
/// Round-trip times up to so many times the least one are as good as it (`delay_margin_coef`).
const MARGIN: f64 = 1.25;

knobs! {
    /// The values of its knobs.
    struct Values {
        interval: f64 = 20.0, 5.0..=1000.0, "ms",
            "how often the network acts; more leaves more to CUBIC";
        cap: f64 = 65_536.0, 4.0..=1_000_000.0, "packets",
            "no action leaves a larger window, whatever the network says";
    }
}

/// What the network sees of an interval, in the order of `envwrapper.py`.
fn features(report: &Report, packets: f64) -> [f64; FEATURES] {
    let clear = if report.srtt > 0.0 { report.min_rtt / report.srtt } else { 1.0 };
    [
        report.share(report.rate.unwrap_or_default()),
        report.share(report.pacing).min(PACING_MAX),
        report.share(LOSS_WEIGHT * report.loss),
        f64::from(report.samples) / packets,
        report.elapsed,
        clear,
        (MARGIN * clear).min(1.0),
    ]
}

/// The window after an action, in whole packets (`map_action()`, and `CntThread()` of the server).
fn scaled(packets: f64, action: f64) -> f64 {
    let action = if action.is_finite() { action.clamp(-1.0, 1.0) } else { 0.0 };
    let percent = libm::floor(PARTS * libm::pow(BASE, action));
    libm::floor(percent * packets / PARTS).max(LEAST)
}

/// The Orca state machine: that of CUBIC, and what the network saw.
///
/// ```text
///             CUBIC's threshold: a loss, or HyStart
///  Search ──────────────────────────────────────────▶ Act
///  times 1.1 every 2 ms                               times 4^a every interval
/// ```
#[derive(Clone, Debug)]
pub struct Orca {
    cubic: Cubic,
    values: Values,
    network: Arc<dyn Actor>,
    monitor: Monitor,
    history: [f64; VALUES],
    /// The first slow start goes on.
    searches: bool,
    ceiling: Ceiling,
}

impl Orca {
    /// Its knobs.
    pub const KNOBS: &'static [Knob] = Values::KNOBS;

    /// A new connection by this network.
    pub fn new(config: &Config, network: Arc<dyn Actor>) -> Self {
        let mut cubic = Cubic::new(config);
        for &(name, value) in Cubic::PRESETS.iter().flat_map(|preset| preset.knobs) {
            let set = crate::set_knob(&mut cubic, name, value);
            debug_assert!(set.is_ok(), "checked by a test of every preset");
        }
        Self {
            cubic,
            values: Values::default(),
            network,
            monitor: Monitor::default(),
            history: [0.0; VALUES],
            searches: true,
            ceiling: Ceiling::default(),
        }
    }

    /// Sets CUBIC's window, in packets, unless that grows one that is not used.
    fn set(&mut self, packets: f64, unused: bool) {
        let window = &mut self.cubic.window;
        let packets = if unused { packets.min(window.packets()) } else { packets };
        window.set(window.mss.mul_f64(packets.min(self.values.cap)));
        window.align();
    }

    /// `CntThread()` of the authors' server.
    fn advance(&mut self, now: Time) {
        if self.searches && self.cubic.window.threshold().is_some() {
            self.searches = false;
            self.monitor.begin(now);
        }
        if !self.monitor.has_samples() {
            return;
        }
        let packets = self.cubic.window.packets();
        if !self.searches {
            let interval = Duration::from_millis_f64(self.values.interval);
            if self.monitor.is_over(now, interval) {
                self.act(now, packets);
            }
        } else if self.monitor.is_over(now, SEARCH_PERIOD) {
            self.set(libm::floor(SEARCH * packets), self.monitor.is_unused());
            self.monitor.begin(now);
        }
    }

    /// A report, and its action.
    fn act(&mut self, now: Time, packets: f64) {
        let report = self.monitor.report(now);
        push(&mut self.history, &features(&report, packets));
        let action = self.network.act(&self.history);
        if !self.cubic.episode.recovering() {
            self.set(scaled(packets, action), report.unused);
        }
    }

    /// Keeps the window below what marks left of it (RFC 3168 §5), and the threshold with it.
    fn bound(&mut self) {
        let window = &mut self.cubic.window;
        if window.size > self.ceiling.get() {
            window.set(self.ceiling.get());
            window.ssthresh = window.ssthresh.min(window.size);
        }
    }

    /// What was seen so far is of another path.
    fn forget(&mut self, window: Bytes, srtt: Duration) {
        self.monitor.inherit(window, srtt);
        self.history = [0.0; VALUES];
    }
}

impl CongestionControl for Orca {
    fn on_sent(&mut self, sent: &Sent) {
        self.monitor.on_sent(sent.inflight, sent.app_limited);
        self.cubic.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.monitor.begin_first(ack.now);
        let limits = ack.cwnd_limited && self.cubic.window.size >= self.ceiling.get();
        self.ceiling.on_ack(ack, limits, self.cubic.window.mss);
        self.monitor.on_ack(ack);
        self.cubic.on_ack(ack);
        self.advance(ack.now);
        self.bound();
        self.monitor.pace(self.cubic.window.size);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.monitor.on_loss(loss);
        self.cubic.on_loss(loss);
    }

    fn on_marked(&mut self, marked: &Marked) {
        let window = &self.cubic.window;
        self.ceiling.on_marked(marked, window.size, window.mss);
        self.cubic.on_marked(marked);
        self.bound();
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.monitor.on_timeout(timeout);
        self.cubic.on_timeout(timeout);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.cubic.on_mtu(limits);
        self.ceiling.on_mtu(self.cubic.window.mss);
    }

    fn on_spurious_loss(&mut self, now: Time) {
        self.cubic.on_spurious_loss(now);
        self.bound();
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.cubic.on_idle(idle);
        self.monitor.begin(idle.now);
    }

    fn window(&self) -> Bytes {
        self.cubic.window()
    }

    /// `deepcc_update_pacing_rate()`: a window in a round trip, without gain.
    fn pacing_rate(&self) -> Option<Rate> {
        self.monitor.pacing_rate()
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.cubic.ssthresh()
    }

    fn phase(&self) -> Phase {
        self.cubic.phase()
    }

    knob_methods!(self.values);
}

impl Migrate for Orca {
    fn take_over(&mut self, from: &HandOver) {
        self.cubic.take_over(from);
        self.forget(from.window, from.srtt);
        self.searches = false;
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.cubic.inherit(window, srtt);
        self.forget(window, srtt);
    }

    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.cubic.retreat(from, ssthresh);
        self.forget(from.window, from.srtt);
        self.searches = false;
    }
}

#[cfg(test)]
mod tests;
