//! The loss part: grows while hardly anything is lost, falls when much is, and backs off when
//! nothing comes back (libwebrtc `send_side_bandwidth_estimation.cc`;
//! draft-ietf-rmcat-gcc-02 §6).

use trimtab_units::{Duration, Rate, Time};

use super::knobs::Values;
use super::likelihood::{Counted, Known, Likelihood, Limit};
use crate::filter::Extreme;

/// A share of so few packets is none (`kLimitNumPackets`), and it is taken so often
/// (`goog_cc_network_control.cc` `kLossUpdateInterval`).
const PACKETS: u32 = 20;
const EVERY: Duration = Duration::from_secs(1);
/// The rate grows from its least of so long (`kBweIncreaseInterval`), by this factor and this.
const INCREASE_OVER: Duration = Duration::from_secs(1);
const INCREASE: f64 = 1.08;
const INCREASE_PLUS: Rate = Rate::from_bits_per_sec(1_000);
/// Time between two decreases, and a round trip (`kBweDecreaseInterval`).
const DECREASE_EVERY: Duration = Duration::from_millis(300);
/// A decrease takes this share of the lost share.
const DECREASE: f64 = 0.5;
/// For so long the delay part alone decides, as long as nothing is lost (`kStartPhase`).
const START_PHASE: Duration = Duration::from_secs(2);
/// A lost share counts for so long: 1.2 times `kMaxRtcpFeedbackInterval`.
const COUNTS_FOR: Duration = Duration::from_secs(6);
/// A round-trip time above this, or packets that leave for so long without a feedback, take a fifth
/// of the rate every second (`RttBasedBackoff`).
const RTT_MAX: Duration = Duration::from_secs(3);
const BACKOFF: f64 = 0.8;
const BACKOFF_EVERY: Duration = Duration::from_secs(1);

/// How losses make a rate.
#[derive(Clone, Debug)]
enum Rule {
    /// By two thresholds, from the least target of the last second.
    Thresholds(Extreme<Rate, false>),
    /// The newer rule.
    Likelihood(Likelihood),
}

impl Rule {
    fn of(values: &Values) -> Self {
        if values.loss_v2 {
            Self::Likelihood(Likelihood::default())
        } else {
            Self::Thresholds(Extreme::new())
        }
    }

    /// The target was set to what was measured.
    fn on_set(&mut self) {
        if let Self::Thresholds(least) = self {
            *least = Extreme::new();
        }
    }
}

/// The rate and what it is made of.
#[derive(Clone, Debug)]
pub(super) struct LossPart {
    target: Rate,
    /// The delay part's rate; nothing goes above it.
    delay: Rate,
    lost: u32,
    expected: u32,
    /// The share that was lost, and since when it is known.
    share: f64,
    known_at: Option<Time>,
    first_report: Option<Time>,
    next_report: Time,
    /// Whether this share has led to a decrease.
    decreased: bool,
    decreased_at: Option<Time>,
    rule: Rule,
    feedback_at: Option<Time>,
    sent_at: Time,
    rtt: Duration,
}

impl LossPart {
    pub(super) fn new(target: Rate, values: &Values) -> Self {
        Self {
            target,
            delay: Rate::MAX,
            lost: 0,
            expected: 0,
            share: 0.0,
            known_at: None,
            first_report: None,
            next_report: Time::ZERO,
            decreased: false,
            decreased_at: None,
            rule: Rule::of(values),
            feedback_at: None,
            sent_at: Time::ZERO,
            rtt: Duration::ZERO,
        }
    }

    /// The least of both parts.
    pub(super) fn target(&self) -> Rate {
        self.target
    }

    /// The share that was lost in the last report.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// Goes on at a rate that was measured (`SetSendBitrate()`).
    pub(super) fn set(&mut self, rate: Rate, values: &Values) {
        self.delay = Rate::MAX;
        self.rule.on_set();
        self.limit(rate, values);
    }

    /// The delay part has a rate (`UpdateDelayBasedEstimate()`).
    pub(super) fn on_delay(&mut self, rate: Rate, values: &Values) {
        self.delay = rate;
        self.limit(self.target, values);
    }

    pub(super) fn on_sent(&mut self, now: Time) {
        self.sent_at = now;
        // Counts from the first packet on, until there is a feedback.
        self.feedback_at = self.feedback_at.or(Some(now));
    }

    /// The other rule, if it is another.
    pub(super) fn on_knob(&mut self, values: &Values) {
        if matches!(self.rule, Rule::Likelihood(_)) != values.loss_v2 {
            self.rule = Rule::of(values);
        }
    }

    /// Packets arrived, or did not.
    pub(super) fn count(&mut self, counted: &Counted) {
        self.expected = self.expected.saturating_add(counted.packets);
        self.lost = self.lost.saturating_add(counted.lost).min(self.expected);
    }

    /// The same packets, once the delay part has seen them (`UpdateLossBasedEstimator()`).
    pub(super) fn weigh(
        &mut self,
        counted: &Counted,
        acked: Option<Rate>,
        in_alr: bool,
        values: &Values,
    ) {
        let [least, most] = [values.rate_min, values.rate_max].map(Rate::from_mbps);
        if let Rule::Likelihood(likelihood) = &mut self.rule {
            let delay = self.delay;
            likelihood.add(counted, &Known { delay, acked, in_alr, least, most });
        }
    }

    /// What limits the target; by thresholds always the delay part, as in libwebrtc
    /// (`loss_based_state_`).
    pub(super) fn limited_by(&self) -> Limit {
        match &self.rule {
            Rule::Thresholds(_) => Limit::Delay,
            Rule::Likelihood(likelihood) => likelihood.limit(),
        }
    }

    /// A feedback: the share of what was counted, once a second (`UpdatePacketsLost()`).
    pub(super) fn on_feedback(&mut self, now: Time, rtt: Option<Duration>) {
        self.feedback_at = Some(now);
        self.rtt = rtt.unwrap_or(self.rtt);
        if now < self.next_report {
            return;
        }
        self.next_report = now + EVERY;
        self.first_report = self.first_report.or(Some(now));
        if self.expected < PACKETS {
            return;
        }
        self.share = f64::from(self.lost) / f64::from(self.expected);
        (self.lost, self.expected) = (0, 0);
        (self.known_at, self.decreased) = (Some(now), false);
    }

    /// Whether the path is stuck (`IsRttAboveLimit()`).
    pub(super) fn is_stuck(&self) -> bool {
        let silent = self.feedback_at.map_or(Duration::ZERO, |at| self.sent_at.since(at));
        silent + self.rtt > RTT_MAX
    }

    /// `UpdateEstimate()`.
    pub(super) fn update(&mut self, now: Time, values: &Values) {
        if self.is_stuck() {
            let due = self.decreased_at.is_none_or(|at| now.since(at) >= BACKOFF_EVERY);
            if due {
                self.decreased_at = Some(now);
                self.limit(self.target.mul_f64(BACKOFF), values);
            }
            return;
        }
        let starting = self.first_report.is_none_or(|at| now.since(at) < START_PHASE);
        if self.share == 0.0 && starting && self.delay != Rate::MAX && self.delay > self.target {
            self.rule.on_set();
            self.limit(self.delay, values);
            return;
        }
        let least = match &mut self.rule {
            Rule::Likelihood(likelihood) => {
                if let Some(rate) = likelihood.rate() {
                    self.limit(rate, values);
                }
                return;
            }
            Rule::Thresholds(least) => {
                least.update(now, INCREASE_OVER, self.target);
                least.get().unwrap_or(self.target)
            }
        };
        if self.known_at.is_none_or(|at| now.since(at) >= COUNTS_FOR) {
            return;
        }
        if self.share <= values.loss_low {
            self.limit(least.mul_f64(INCREASE) + INCREASE_PLUS, values);
        } else if self.share > values.loss_high && self.may_decrease(now) {
            self.decreased = true;
            self.decreased_at = Some(now);
            self.limit(self.target.mul_f64(1.0 - DECREASE * self.share), values);
        }
    }

    fn may_decrease(&self, now: Time) -> bool {
        let wait = DECREASE_EVERY + self.rtt;
        !self.decreased && self.decreased_at.is_none_or(|at| now.since(at) >= wait)
    }

    /// `UpdateTargetBitrate()`.
    fn limit(&mut self, rate: Rate, values: &Values) {
        let [least, most] = [values.rate_min, values.rate_max].map(Rate::from_mbps);
        self.target = rate.min(self.delay).min(most).max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_units::Bytes;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A feedback of 100 packets every 100 ms from `from` on, of which so many are lost.
    fn play(part: &mut LossPart, from: u64, to: u64, lost: u32) {
        let values = Values::default();
        for ms in (from..to).step_by(100) {
            part.on_sent(at(ms));
            let (bytes, sent) = (Bytes::new(100_000), at(ms));
            let (first_sent, last_sent) = (sent, sent);
            part.count(&Counted { packets: 100, lost, bytes, first_sent, last_sent });
            part.on_feedback(at(ms), Some(Duration::from_millis(50)));
            part.update(at(ms), &values);
        }
    }

    /// `UpdateEstimate()`: 8% and 1 kbit/s above the least of the last second while up to 2% is
    /// lost.
    #[test]
    fn the_rate_grows_by_eight_percent_in_a_second_while_hardly_anything_is_lost() {
        let mut part = LossPart::new(Rate::from_mbps(1.0), &Values::default());
        play(&mut part, 0, 100, 2);
        assert!((part.target().mbps() - 1.081).abs() < 1e-6, "{}", part.target());
        play(&mut part, 100, 900, 2);
        assert!((part.target().mbps() - 1.081).abs() < 1e-6, "{}", part.target());
        play(&mut part, 900, 3000, 2);
        // The least of the last second is the rate of about a second before.
        assert!((1.24..1.37).contains(&part.target().mbps()), "{}", part.target());
    }

    /// 5% lost: nothing; 20% lost: a tenth less, once for each share, and that is once a second.
    #[test]
    fn much_loss_takes_half_of_its_share() {
        let mut part = LossPart::new(Rate::from_mbps(1.0), &Values::default());
        play(&mut part, 0, 5000, 5);
        assert_eq!(part.target(), Rate::from_mbps(1.0));
        // The share of the second after the change mixes both.
        play(&mut part, 5000, 5900, 20);
        let before = part.target().mbps();
        play(&mut part, 5900, 6900, 20);
        play(&mut part, 6900, 7900, 20);
        let share = part.target().mbps() / before;
        assert!((share - 0.81).abs() < 0.01, "{share}");
    }

    /// Nothing lost in the first two seconds: the delay part's rate at once.
    #[test]
    fn the_delay_part_alone_starts() {
        let (mut part, values) =
            (LossPart::new(Rate::from_mbps(0.3), &Values::default()), Values::default());
        play(&mut part, 0, 300, 0);
        part.on_delay(Rate::from_mbps(3.0), &values);
        part.update(at(300), &values);
        assert_eq!(part.target(), Rate::from_mbps(3.0));
        play(&mut part, 300, 5000, 0);
        assert_eq!(part.target(), Rate::from_mbps(3.0), "and no more than that");
    }

    /// Packets leave and nothing comes back: after 3 s, 0.8 of the rate every second.
    #[test]
    fn silence_backs_off() {
        let (mut part, values) =
            (LossPart::new(Rate::from_mbps(1.0), &Values::default()), Values::default());
        play(&mut part, 0, 100, 5);
        for ms in (100..6200).step_by(100) {
            part.on_sent(at(ms));
            part.update(at(ms), &values);
        }
        assert!(part.is_stuck());
        let expected = 0.8 * 0.8 * 0.8 * 0.8;
        assert!((part.target().mbps() - expected).abs() < 1e-5, "{}", part.target());
        for ms in (6200..80_000).step_by(100) {
            part.on_sent(at(ms));
            part.update(at(ms), &values);
        }
        assert_eq!(part.target(), Rate::from_mbps(values.rate_min), "5 kbit/s");
    }
}
