//! The target: the least of the delay part's and the loss part's rate, and less where nothing comes
//! back (libwebrtc `send_side_bandwidth_estimation.cc`).

use trimtab_units::{Duration, Rate, Time};

use super::knobs::Values;
use super::loss_v2::LossPart;

/// A round-trip time above this, or packets that leave for so long without a feedback, take a fifth
/// of the rate every second (`RttBasedBackoff`).
const RTT_MAX: Duration = Duration::from_secs(3);
const BACKOFF: f64 = 0.8;
const BACKOFF_EVERY: Duration = Duration::from_secs(1);

/// The target and what it is made of.
#[derive(Clone, Debug)]
pub(super) struct Target {
    rate: Rate,
    /// The delay part's rate; nothing goes above it.
    delay: Rate,
    pub(super) loss: LossPart,
    decreased_at: Option<Time>,
    feedback_at: Option<Time>,
    sent_at: Time,
    rtt: Duration,
}

impl Target {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            delay: Rate::MAX,
            loss: LossPart::default(),
            decreased_at: None,
            feedback_at: None,
            sent_at: Time::ZERO,
            rtt: Duration::ZERO,
        }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Goes on at a rate that was measured (`SetSendBitrate()`).
    pub(super) fn set(&mut self, rate: Rate, values: &Values) {
        self.delay = Rate::MAX;
        self.limit(rate, values);
    }

    /// The delay part has a rate (`UpdateDelayBasedEstimate()`).
    pub(super) fn on_delay(&mut self, rate: Rate, values: &Values) {
        self.delay = rate;
        self.limit(self.rate, values);
    }

    pub(super) fn on_sent(&mut self, now: Time) {
        self.sent_at = now;
        // Counts from the first packet on, until there is a feedback.
        self.feedback_at = self.feedback_at.or(Some(now));
    }

    /// Something arrived (`UpdatePropagationRtt()`).
    pub(super) fn on_arrivals(&mut self, now: Time, rtt: Option<Duration>) {
        self.feedback_at = Some(now);
        self.rtt = rtt.unwrap_or(self.rtt);
    }

    /// At the end of a report (`UpdateLossBasedEstimator()`).
    pub(super) fn on_report(&mut self, in_alr: bool, values: &Values) {
        self.loss.update(self.delay, in_alr, values);
    }

    /// Whether the path is stuck (`IsRttAboveLimit()`).
    pub(super) fn is_stuck(&self) -> bool {
        let silent = self.feedback_at.map_or(Duration::ZERO, |at| self.sent_at.since(at));
        silent + self.rtt > RTT_MAX
    }

    /// `UpdateEstimate()`. Before the loss part has a rate, the delay part alone decides.
    pub(super) fn update(&mut self, now: Time, values: &Values) {
        if self.is_stuck() {
            if self.decreased_at.is_none_or(|at| now.since(at) >= BACKOFF_EVERY) {
                self.decreased_at = Some(now);
                self.limit(self.rate.mul_f64(BACKOFF), values);
            }
            return;
        }
        let known = Some(self.delay).filter(|&delay| delay != Rate::MAX);
        let rate = self.loss.rate().or(known).unwrap_or(self.rate);
        self.limit(rate, values);
    }

    /// `UpdateTargetBitrate()`.
    fn limit(&mut self, rate: Rate, values: &Values) {
        let [least, most] = [values.rate_min, values.rate_max].map(Rate::from_mbps);
        self.rate = rate.min(self.delay).min(most).max(least);
    }
}
