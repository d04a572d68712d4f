//! Careful Resume: a connection starts near the rate at which an earlier one to the same
//! destination ended (RFC 9959).
//!
//! What the earlier connection observed is [`Saved`]. [`Resume`] wraps any algorithm. The algorithm
//! starts as ever; once the path is confirmed, the window jumps to half of what was saved, paced
//! over a round trip. What arrives validates it. A sign of congestion before that leads to the Safe
//! Retreat, which leaves less of the window than a slow start would have found.
//!
//! ```text
//!                 path confirmed              all sent, or one acknowledged
//! Reconnaissance ───────────────▶ Unvalidated ─────────────────────────────▶ Validating
//!       │                            │    │                                  │    │
//!       │ congestion,   rate-limited │    │ congestion, another path         │    │
//!       │ another path,              │    ▼                       congestion │    │
//!       │ too old                    │  SafeRetreat ◀────────────────────────┘    │
//!       ▼                            ▼    ▼                                       │
//!     Normal ◀────────────────────────────┴──── last unvalidated packet ──────────┘
//!                                               acknowledged
//! ```
//!
//! One part is the host's: which destination the parameters belong to, that only one connection at
//! a time uses them (§3.2), that no more than one set is kept, and that a set is deleted which was
//! refuted ([`CarefulResume::is_refuted`]).
//!
//! ```
//! use trimtab_cc::resume::{Resume, Saved, Stage};
//! use trimtab_cc::{Config, CongestionControl, Spec};
//! use trimtab_units::{Bytes, Duration, Time};
//!
//! let spec: Spec = "cubic".parse().unwrap();
//! let config = Config::default();
//! let saved = Saved {
//!     window: Bytes::new(600_000),
//!     rtt: Duration::from_millis(50),
//!     expires: Time::from_secs(600),
//! };
//! let cca = Resume::new(spec.build(&config), &config, saved.into());
//! assert_eq!(cca.state().stage(), Stage::Reconnaissance);
//! assert_eq!(cca.window(), config.initial_window); // until the path is confirmed
//! ```
//!
//! Read first: RFC 9959 §3, then `state.rs`, which goes through its phases in this order.

mod observer;
mod state;
#[cfg(test)]
mod tests;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::knob::knobs;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::muses::State;
use crate::{
    Ack, Config, CongestionControl, Decision, Discarded, Feedback, Idle, Knob, Loss, LostPacket,
    Marked, Phase, Probe, Sent, Timeout,
};

use state::Order;
pub use state::{CarefulResume, Stage, Trigger};

knobs! {
    /// How far a jump goes, and how long parameters count. Each is a knob of
    /// [`KNOBS`](Self::KNOBS), with its unit and range.
    pub struct Settings {
        max_jump: f64 = 10_000.0, 10.0..=1_000_000.0, "packets",
            "most of the window that a connection jumps to (RFC 9959, max_jump)";
        beta: f64 = 0.5, 0.5..=1.0, "1",
            "share of the validated window that stays as the threshold after a retreat";
        // Chromium resumes a bandwidth that is an hour old at most.
        lifetime: f64 = 3600.0, 1.0..=86_400.0, "s",
            "how long what a connection observed may be used by another";
    }
}

/// What a connection observed of its path, for a later one to the same destination (RFC 9959 §3.1,
/// "CC parameters").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// What the path delivered in a round trip without a queue (`saved_cwnd`).
    pub window: Bytes,
    /// The lowest round-trip time (`saved_rtt`).
    pub rtt: Duration,
    /// When its lifetime ends, by the clock of the connection that resumes.
    pub expires: Time,
}

/// How a connection resumes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resumption {
    /// How far, and how long what it observes counts.
    pub settings: Settings,
    /// What an earlier connection observed; `None` to observe only.
    pub saved: Option<Saved>,
}

impl From<Saved> for Resumption {
    /// With every setting at its default.
    fn from(saved: Saved) -> Self {
        Self { settings: Settings::default(), saved: Some(saved) }
    }
}

/// An algorithm whose connection resumes, observes, or both. Knobs, decisions and hand-overs are
/// those of the algorithm; only window and rate are not, while a jump is under way.
#[derive(Clone, Debug)]
pub struct Resume<C> {
    cca: C,
    state: CarefulResume,
}

impl<C: Migrate> Resume<C> {
    /// A new connection of an algorithm that was built with these limits.
    pub fn new(cca: C, limits: &Config, how: Resumption) -> Self {
        let state = CarefulResume::new(limits, how, cca.phase());
        Self { cca, state }
    }

    /// The algorithm alone.
    pub fn into_inner(self) -> C {
        self.cca
    }

    /// The algorithm.
    pub fn inner(&self) -> &C {
        &self.cca
    }

    /// The algorithm, to turn its knobs.
    pub fn inner_mut(&mut self) -> &mut C {
        &mut self.cca
    }

    /// How far the connection has resumed, and what it observed.
    pub fn state(&self) -> &CarefulResume {
        &self.state
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Keep => {}
            Order::Window(window) => self.cca.inherit(window, self.state.srtt()),
            Order::Retreat { from, ssthresh } => self.cca.retreat(&from, ssthresh),
        }
    }
}

impl<C: Migrate> CongestionControl for Resume<C> {
    fn on_established(&mut self, rtt: Duration) {
        self.cca.on_established(rtt);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.cca.on_sent(sent);
        let order = self.state.on_sent(sent);
        self.obey(order);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.cca.on_ack(ack);
        let order = self.state.on_ack(ack, self.cca.phase(), self.cca.window());
        self.obey(order);
    }

    fn on_packet_lost(&mut self, lost: &LostPacket) {
        self.cca.on_packet_lost(lost);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cca.on_loss(loss);
        self.state.on_loss(loss, self.cca.window());
    }

    fn on_marked(&mut self, marked: &Marked) {
        self.cca.on_marked(marked);
        self.state.on_congestion(Trigger::EcnCe, self.cca.window());
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.cca.on_timeout(timeout);
        let order = self.state.on_timeout(timeout, self.cca.window());
        self.obey(order);
    }

    fn on_discarded(&mut self, discarded: &Discarded) {
        self.cca.on_discarded(discarded);
        self.state.on_discarded(discarded);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.cca.on_mtu(limits);
        self.state.on_mtu(limits);
    }

    /// RFC 9959 §3.5: the window must not grow in the Safe Retreat.
    fn on_spurious_loss(&mut self, now: Time) {
        if self.state.stage() != Stage::SafeRetreat {
            self.cca.on_spurious_loss(now);
        }
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.cca.on_idle(idle);
        self.state.hold(self.cca.window());
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.cca.on_feedback(feedback);
        self.state.hold(self.cca.window());
    }

    fn awaiting(&self) -> Option<&State> {
        self.cca.awaiting()
    }

    fn on_decision(&mut self, decision: Decision) {
        self.cca.on_decision(decision);
        self.state.hold(self.cca.window());
    }

    fn on_timer(&mut self, now: Time) {
        if self.cca.next_timer().is_some_and(|at| at <= now) {
            self.cca.on_timer(now);
            self.state.hold(self.cca.window());
        }
        let order = self.state.on_timer(now);
        self.obey(order);
    }

    fn next_timer(&self) -> Option<Time> {
        let times = self.cca.next_timer().into_iter().chain(self.state.next_timer());
        times.min()
    }

    fn window(&self) -> Bytes {
        self.state.window().unwrap_or_else(|| self.cca.window())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.state.pacing_rate().or_else(|| self.cca.pacing_rate())
    }

    fn target(&self) -> Option<Rate> {
        self.cca.target()
    }

    fn take_probe(&mut self, now: Time) -> Option<Probe> {
        self.cca.take_probe(now)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.cca.ssthresh()
    }

    fn phase(&self) -> Phase {
        match self.state.stage() {
            Stage::Unvalidated => Phase::SlowStart,
            Stage::SafeRetreat => Phase::Recovery,
            Stage::Reconnaissance | Stage::Validating | Stage::Normal => self.cca.phase(),
        }
    }

    /// RFC 9959 §4.6: Proportional Rate Reduction is not for a retreat, so not for what may become
    /// one.
    fn manages_recovery(&self) -> bool {
        match self.state.stage() {
            Stage::Unvalidated | Stage::Validating | Stage::SafeRetreat => true,
            Stage::Reconnaissance | Stage::Normal => self.cca.manages_recovery(),
        }
    }

    fn knobs(&self) -> &'static [Knob] {
        self.cca.knobs()
    }

    fn knob(&self, index: usize) -> Option<f64> {
        self.cca.knob(index)
    }

    fn apply_knob(&mut self, index: usize, value: f64) {
        self.cca.apply_knob(index, value);
        self.state.hold(self.cca.window());
    }
}

impl<C: Migrate> Migrate for Resume<C> {
    /// What is under way in a jump is no picture of the path.
    fn is_converged(&self) -> bool {
        self.state.stage() == Stage::Normal && self.cca.is_converged()
    }

    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        self.cca.operating_point(path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.cca.take_over(from);
        self.state.hold(self.cca.window());
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.cca.inherit(window, srtt);
        self.state.hold(self.cca.window());
    }

    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.cca.retreat(from, ssthresh);
        self.state.hold(self.cca.window());
    }
}
