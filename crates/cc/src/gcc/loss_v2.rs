//! The loss part: the bandwidth above which packets are lost, told apart from the loss that the path
//! has at any rate (libwebrtc `loss_based_bwe_v2.cc`, the default since 2023).
//!
//! Each observation yields a few candidates for the bandwidth; the one that explains the losses best
//! counts (`observe.rs`). Libwebrtc fills what the encoder does not send with padding while the rate
//! grows again. Nobody pads here, so growth takes longer where the application limits.

use trimtab_units::{Duration, Rate, Time};

use super::knobs::Values;
use super::observe::{Channel, Observations};

/// Inherent loss at first (`InitialInherentLossEstimate`).
const INHERENT: f64 = 0.01;
/// Candidates by the last estimate (`CandidateFactors`). So are the throughput, outside
/// application-limited regions (`NotUseAckedRateInAlr`), and the delay part's rate.
const CANDIDATES: [f64; 3] = [1.02, 1.0, 0.95];
/// While losses limit, the rate grows by no more than this in so long (`MaxIncreaseFactor`,
/// `DelayedIncreaseWindow`),
const GROWTH: f64 = 1.3;
const GROWTH_OVER: Duration = Duration::from_millis(300);
/// and to no more than so many times the throughput (`BwRampupUpperBoundFactor`); less where the
/// throughput is below so many times the rate of the last hold (`BwRampupUpperBoundInHoldFactor`,
/// `BwRampupUpperBoundHoldThreshold`).
const RAMP: f64 = 1.5;
const RAMP_IN_HOLD: f64 = 1.2;
const HOLD_NEAR: f64 = 1.3;
/// With an average loss above `loss_own` the rate is at most this over the rest of the loss
/// (`InstantUpperBoundBwBalance`).
const MOST_BALANCE: Rate = Rate::from_bits_per_sec(100_000);
/// After a decrease the rate holds for so long at first, and twice as long each time after that
/// (`kInitHoldDuration`, `HoldDurationFactor`), up to this (`kMaxHoldDuration`).
const HOLD: Duration = Duration::from_millis(300);
const HOLD_FACTOR: u64 = 2;
const HOLD_MAX: Duration = Duration::from_secs(60);
/// An increase counts for so long (`PaddingDuration`).
const INCREASE_FOR: Duration = Duration::from_secs(2);

/// What limits the rate.
///
/// ```text
///            loss limits, and the rate grows
///        ┌─────────────────────────────────────▶ Increasing
///      Delay ◀──── the delay part's is less ────    │  ▲
///        │                                          ▼  │ grows, after the hold
///        └──────── loss limits ────────────────▶ Decreasing
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The delay part alone.
    Delay,
    /// Losses; the rate has grown since then to this.
    Increasing { at: Time, rate: Rate },
    /// Losses; the rate falls, or stays.
    Decreasing,
}

/// The rate above which nothing grows after a decrease, and until when.
#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Time>,
    next: Duration,
    rate: Rate,
}

impl Default for Hold {
    fn default() -> Self {
        Self { until: None, next: HOLD, rate: Rate::MAX }
    }
}

/// The loss-based rate.
#[derive(Clone, Debug)]
pub(super) struct LossPart {
    observations: Observations,
    /// `None` before there is a rate to begin with.
    best: Option<Channel>,
    rate: Rate,
    state: State,
    hold: Hold,
    /// How far the rate may grow in this window, and when that began.
    window: Option<(Time, Rate)>,
    acked: Option<Rate>,
}

impl Default for LossPart {
    fn default() -> Self {
        Self {
            observations: Observations::default(),
            best: None,
            rate: Rate::MAX,
            state: State::Delay,
            hold: Hold::default(),
            window: None,
            acked: None,
        }
    }
}

impl LossPart {
    /// The rate, once there are enough observations (`GetLossBasedResult()`).
    pub(super) fn rate(&self) -> Option<Rate> {
        (self.best.is_some() && self.observations.are_enough()).then_some(self.rate)
    }

    /// The share of the bytes that was lost in the last few seconds.
    pub(super) fn share(&self) -> f64 {
        self.observations.loss()
    }

    /// Whether losses limit the rate, which grows. Probes go on as without padding (`kIncreasing`).
    pub(super) fn is_growing(&self) -> bool {
        matches!(self.state, State::Increasing { .. })
    }

    /// Whether losses limit the rate (`IsInLossLimitedState()`).
    pub(super) fn limits(&self) -> bool {
        self.state != State::Delay
    }

    /// Packets that were reported as arrived or lost come in here.
    pub(super) fn observations(&mut self) -> &mut Observations {
        &mut self.observations
    }

    /// The throughput (`SetAcknowledgedBitrate()`).
    pub(super) fn on_acked(&mut self, acked: Option<Rate>) {
        self.acked = acked.or(self.acked);
    }

    /// A rate that was measured otherwise (`SetBandwidthEstimate()`).
    pub(super) fn assume(&mut self, rate: Rate) {
        let inherent = self.best.map_or(INHERENT, |best| best.inherent);
        self.best = Some(Channel { inherent, bandwidth: rate });
        (self.rate, self.state) = (rate, State::Delay);
    }

    /// At the end of a report, with the delay part's rate (`UpdateBandwidthEstimate()`).
    pub(super) fn update(&mut self, delay: Rate, in_alr: bool, values: &Values) {
        if !self.observations.close() {
            return;
        }
        if self.best.is_none() {
            self.assume(delay);
        }
        let Some(best) = self.best else { return };
        let next = self.candidate(best, delay, in_alr, values);
        let next = Channel { bandwidth: self.paced(best, next), ..next };
        let least = self.least(values);
        let bounded = next.bandwidth.min(self.most(values)).min(delay).max(least);
        self.best = Some(if bounded < next.bandwidth {
            Channel { inherent: 0.0, bandwidth: bounded }
        } else {
            Channel { bandwidth: next.bandwidth.max(least), ..next }
        });
        let now = self.observations.ended_at();
        let holds = self.hold.until.is_some_and(|until| until > now);
        if self.state == State::Decreasing && holds && bounded < delay {
            self.hold.rate = self.hold.rate.max(least);
            self.rate = self.hold.rate.min(bounded);
            return;
        }
        self.state = self.next_state(bounded, delay, values);
        self.rate = bounded;
        let over = self.window.is_none_or(|(at, _)| now.since(at) > GROWTH_OVER);
        if let (true, true, Some(best)) = (self.limits(), over, self.best) {
            let most = best.bandwidth.mul_f64(GROWTH).max(Rate::from_mbps(values.rate_min));
            self.window = Some((now, most));
        }
    }

    /// What explains the losses best (`GetCandidates()`).
    fn candidate(&self, best: Channel, delay: Rate, in_alr: bool, values: &Values) -> Channel {
        let now = self.observations.ended_at();
        let padded = matches!(self.state, State::Increasing { at, .. } if at + INCREASE_FOR >= now);
        let limit = self.window.filter(|_| self.limits());
        let limit = limit.map_or(Rate::from_mbps(values.rate_max), |(_, rate)| rate);
        let most = limit.max(best.bandwidth);
        let [more, same, less] = CANDIDATES.map(|factor| Some(best.bandwidth.mul_f64(factor)));
        let acked = self.acked.filter(|_| !in_alr || padded);
        let delay = Some(delay).filter(|&delay| delay > best.bandwidth);
        let mut found = (f64::MIN, best);
        for bandwidth in [more, same, less, acked, delay].into_iter().flatten() {
            let channel = Channel { bandwidth: bandwidth.min(most), ..best }.feasible(values);
            let channel = self.observations.fit(channel, values);
            let objective = self.observations.objective(channel, values);
            if objective > found.0 {
                found = (objective, channel);
            }
        }
        found.1
    }

    /// How far the bandwidth may grow from one estimate to the next.
    fn paced(&self, best: Channel, next: Channel) -> Rate {
        let mut rate = next.bandwidth;
        if self.observations.loss() > next.inherent {
            rate = rate.min(best.bandwidth);
        }
        if !self.limits() {
            return rate;
        }
        let now = self.observations.ended_at();
        if let Some((_, most)) = self.window.filter(|&(at, _)| at + GROWTH_OVER > now) {
            rate = rate.min(most);
        }
        let Some(acked) = self.acked.filter(|_| self.grows(best.bandwidth, rate)) else {
            return rate;
        };
        let near = self.hold.rate != Rate::MAX && acked < self.hold.rate.mul_f64(HOLD_NEAR);
        let ramp = if near { RAMP_IN_HOLD } else { RAMP };
        rate = rate.min(acked.mul_f64(ramp)).max(best.bandwidth);
        if self.state == State::Decreasing && rate == best.bandwidth {
            // The least step that counts as growth.
            rate = rate + Rate::from_bytes_per_sec(1);
        }
        rate
    }

    /// `IsEstimateIncreasingWhenLossLimited()`.
    fn grows(&self, from: Rate, to: Rate) -> bool {
        let stays = from == to && self.is_growing();
        (from < to || stays) && self.limits()
    }

    fn next_state(&mut self, bounded: Rate, delay: Rate, values: &Values) -> State {
        let now = self.observations.ended_at();
        if bounded >= delay || bounded >= Rate::from_mbps(values.rate_max) {
            self.hold = Hold::default();
            return State::Delay;
        }
        // `CanKeepIncreasingState()`.
        let before = match self.state {
            State::Increasing { at, rate } => Some((at, rate)),
            State::Delay | State::Decreasing => None,
        };
        let fresh = before.is_none_or(|(at, rate)| at + INCREASE_FOR >= now || rate < bounded);
        if fresh && self.grows(self.rate, bounded) {
            let (at, rate) = before.filter(|&(_, rate)| bounded <= rate).unwrap_or((now, bounded));
            return State::Increasing { at, rate };
        }
        if self.state != State::Decreasing {
            let next = (self.hold.next * HOLD_FACTOR).min(HOLD_MAX);
            self.hold = Hold { until: Some(now + self.hold.next), next, rate: bounded };
        }
        State::Decreasing
    }

    /// `GetInstantLowerBound()`: what arrives (`LowerBoundByAckedRateFactor`).
    fn least(&self, values: &Values) -> Rate {
        self.acked.unwrap_or(Rate::ZERO).max(Rate::from_mbps(values.rate_min))
    }

    /// `GetInstantUpperBound()`.
    fn most(&self, values: &Values) -> Rate {
        let beyond = self.observations.loss() - values.loss_own;
        if beyond > 0.0 {
            MOST_BALANCE.mul_f64(1.0 / beyond)
        } else {
            Rate::from_mbps(values.rate_max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_units::Bytes;

    /// An observation of 300 ms: 30 packets of 1250 bytes (1 Mbit/s), of which so many are lost.
    fn observe(part: &mut LossPart, from: u64, lost: u64, delay: f64) {
        let values = Values::default();
        for i in 0..30 {
            let at = Time::from_millis(from + 10 * i + 10);
            part.observations.add(at, Bytes::new(1250), i >= lost);
        }
        part.update(Rate::from_mbps(delay), false, &values);
    }

    /// Three observations; the first begins with its first packet and spans 290 ms.
    #[test]
    fn without_losses_the_delay_part_decides() {
        let mut part = LossPart::default();
        for i in 0..10 {
            assert_eq!(part.rate().is_some(), i >= 3, "observation {i}");
            let delay = 1.0 + 0.1 * i as f64;
            observe(&mut part, 300 * i, 0, delay);
            assert_eq!(part.rate().unwrap_or(Rate::from_mbps(delay)), Rate::from_mbps(delay));
        }
        assert!(!part.limits());
    }

    /// `CalculateInstantUpperBound()`: half of the bytes lost allow 100 kbit/s / (0.5 - 0.05), but
    /// what arrives is never too much.
    #[test]
    fn a_loss_beyond_the_paths_own_bounds_the_rate() {
        let play = |acked: f64| {
            let mut part = LossPart::default();
            part.on_acked(Some(Rate::from_mbps(acked)));
            (0..10).for_each(|i| observe(&mut part, 300 * i, 15, 1.0));
            assert!((part.share() - 0.5).abs() < 1e-9, "{}", part.share());
            assert!(part.limits() && !part.is_growing());
            part.rate().map_or(0.0, Rate::mbps)
        };
        let (little, half) = (play(0.1), play(0.5));
        assert!((0.1 - 1e-6..=0.1 / 0.45).contains(&little), "{little}");
        assert!((half - 0.5).abs() < 1e-6, "{half}");
    }

    /// The average leaves the most and the least lossy observation out: 3 of 30 in all but one.
    #[test]
    fn one_lossy_observation_does_not_count() {
        let mut part = LossPart::default();
        (0..10).for_each(|i| observe(&mut part, 300 * i, if i == 5 { 20 } else { 3 }, 1.0));
        assert!((part.share() - 0.1).abs() < 1e-9, "{}", part.share());
    }
}
