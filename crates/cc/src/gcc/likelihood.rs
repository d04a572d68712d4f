//! The newer loss part: of several bandwidths, the one that best explains what was lost, next to a
//! loss that the path has at any rate (libwebrtc `loss_based_bwe_v2.cc`, with its default
//! settings).
//!
//! A packet is lost with the inherent loss, and otherwise as the share by which the sending rate
//! exceeds the bandwidth. Each candidate bandwidth gets the inherent loss that makes the
//! observations likely, by a step of Newton's method, and the likeliest candidate wins, with a bias
//! to high ones.

use libm::log;
use trimtab_units::{Bytes, Duration, Rate, Time};

/// Observations kept (`ObservationWindowSize`), their least length
/// (`ObservationDurationLowerBound`), how many it takes (`MinNumObservations`), and the weight of
/// each by the next (`TemporalWeightFactor`, `InstantUpperBoundTemporalWeightFactor`).
const OBSERVATIONS: usize = 20;
const LENGTH: Duration = Duration::from_millis(250);
const NEEDED: u32 = 3;
const FADING: f64 = 0.9;
/// Candidates by the present bandwidth (`CandidateFactors`).
const FACTORS: [f64; 3] = [1.02, 1.0, 0.95];
/// The inherent loss at first, its least, and its most by the bandwidth in kbit/s
/// (`InitialInherentLossEstimate`, `InherentLossLowerBound`, `InherentLossUpperBoundOffset`,
/// `InherentLossUpperBoundBwBalance`).
const INHERENT: f64 = 0.01;
const INHERENT_MIN: f64 = 1e-3;
const INHERENT_MAX: (f64, f64) = (0.05, 75.0);
/// Losses above this share bound the bandwidth at once, in kbit/s (`InstantUpperBoundLossOffset`,
/// `InstantUpperBoundBwBalance`).
const INSTANT: (f64, f64) = (0.05, 75.0);
/// Bias to high bandwidths, by kbit/s and by its logarithm, up to a share of losses
/// (`HigherBwBiasFactor`, `HigherLogBwBiasFactor`, `LossThresholdOfHighBandwidthPreference`,
/// `BandwidthPreferenceSmoothingFactor`).
const BIAS: (f64, f64) = (0.0002, 0.02);
const BIAS_UP_TO: f64 = 0.15;
const BIAS_SMOOTHING: f64 = 0.002;
/// Step of Newton's method (`NewtonStepSize`).
const NEWTON: f64 = 0.75;
/// While losses limit the rate it grows by at most this factor in so long (`MaxIncreaseFactor`,
/// `DelayedIncreaseWindow`).
const INCREASE: f64 = 1.3;
const INCREASE_EVERY: Duration = Duration::from_millis(300);

/// What a feedback says of losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) packets: u32,
    pub(super) lost: u32,
    /// Of all packets.
    pub(super) bytes: Bytes,
    pub(super) first_sent: Time,
    pub(super) last_sent: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    lost: f32,
    arrived: f32,
    /// Sending rate in kbit/s.
    kbps: f32,
}

/// A bandwidth in kbit/s, and the loss besides it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Channel {
    kbps: f64,
    inherent: f64,
}

/// What limits the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// The delay part.
    Delay,
    /// Losses, and the rate falls or stays.
    Falling,
    /// Losses, and the rate grows.
    Growing,
}

/// Observations and the likeliest channel.
#[derive(Clone, Debug)]
pub(super) struct Likelihood {
    observations: [Observation; OBSERVATIONS],
    count: u32,
    partial: (u32, u32, Bytes),
    since: Option<Time>,
    best: Option<Channel>,
    /// Average share of lost packets.
    share: f64,
    limit: Limit,
    /// Most that the rate may be until that time, in kbit/s.
    window: Option<(Time, f64)>,
    /// In kbit/s.
    result: f64,
}

/// What the rest of the controller knows, in kbit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) delay: Rate,
    pub(super) acked: Option<Rate>,
    pub(super) in_alr: bool,
    pub(super) least: Rate,
    pub(super) most: Rate,
}

fn kbps(rate: Rate) -> f64 {
    rate.mbps() * 1e3
}

impl Default for Likelihood {
    fn default() -> Self {
        Self {
            observations: [Observation::default(); OBSERVATIONS],
            count: 0,
            partial: (0, 0, Bytes::ZERO),
            since: None,
            best: None,
            share: 0.0,
            limit: Limit::Delay,
            window: None,
            result: 0.0,
        }
    }
}

impl Likelihood {
    /// The rate, once enough was seen (`IsReady()`).
    pub(super) fn rate(&self) -> Option<Rate> {
        let ready = self.best.is_some() && self.count >= NEEDED;
        ready.then(|| Rate::from_mbps(self.result * 1e-3))
    }

    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    /// A feedback came (`UpdateBandwidthEstimate()`).
    pub(super) fn add(&mut self, counted: &Counted, known: &Known) {
        if !self.observe(counted) || known.delay == Rate::MAX {
            return;
        }
        let delay = kbps(known.delay);
        let present = *self.best.get_or_insert_with(|| {
            self.result = delay;
            Channel { kbps: delay, inherent: INHERENT }
        });
        let mut best = self.likeliest(present, known);
        // No growth while more is lost than the path loses at any rate.
        if self.share > best.inherent {
            best.kbps = best.kbps.min(present.kbps);
        }
        if let (true, Some((since, most))) = (self.limit != Limit::Delay, self.window)
            && since + INCREASE_EVERY > counted.last_sent
        {
            best.kbps = best.kbps.min(most);
        }
        self.best = Some(best);
        self.conclude(best, counted.last_sent, known);
    }

    /// The result, and what limits it.
    fn conclude(&mut self, best: Channel, now: Time, known: &Known) {
        let (delay, least, most) = (kbps(known.delay), kbps(known.least), kbps(known.most));
        let bounded = best.kbps.min(self.instant(most)).min(delay).max(least);
        let growing =
            bounded > self.result || (bounded == self.result && self.limit == Limit::Growing);
        self.limit = if bounded >= delay || bounded >= most {
            Limit::Delay
        } else if growing && self.limit != Limit::Delay {
            Limit::Growing
        } else {
            Limit::Falling
        };
        self.result = bounded;
        let over = self.window.is_none_or(|(since, _)| since + INCREASE_EVERY < now);
        if self.limit != Limit::Delay && over {
            self.window = Some((now, (best.kbps * INCREASE).max(least)));
        }
    }

    /// Whether an observation is complete with it (`PushBackObservation()`).
    fn observe(&mut self, counted: &Counted) -> bool {
        let (packets, lost, bytes) = &mut self.partial;
        *packets = packets.saturating_add(counted.packets);
        *lost = lost.saturating_add(counted.lost);
        *bytes += counted.bytes;
        let length = counted.last_sent.since(*self.since.get_or_insert(counted.first_sent));
        if length < LENGTH {
            return false;
        }
        self.since = Some(counted.last_sent);
        let (packets, lost, bytes) = core::mem::replace(&mut self.partial, (0, 0, Bytes::ZERO));
        self.observations[self.count as usize % OBSERVATIONS] = Observation {
            lost: lost as f32,
            arrived: packets.saturating_sub(lost) as f32,
            kbps: kbps(bytes / length) as f32,
        };
        self.count = self.count.saturating_add(1);
        // `UpdateAverageReportedLossRatio()`.
        let (lost, all) = self.weighted().fold((0.0, 0.0), |(lost, all), (weight, seen)| {
            let of = [f64::from(seen.lost), f64::from(seen.arrived)];
            (lost + weight * of[0], all + weight * (of[0] + of[1]))
        });
        self.share = if all > 0.0 { lost / all } else { 0.0 };
        true
    }

    /// The observations, latest first, with their weights.
    fn weighted(&self) -> impl Iterator<Item = (f64, Observation)> + '_ {
        let known = (self.count as usize).min(OBSERVATIONS);
        let last = self.count as usize % OBSERVATIONS + OBSERVATIONS - 1;
        let mut weight = 1.0 / FADING;
        (0..known).map(move |age| {
            weight *= FADING;
            (weight, self.observations[(last - age) % OBSERVATIONS])
        })
    }

    /// `GetCandidates()`, each with its inherent loss, and the one with the highest objective.
    fn likeliest(&self, present: Channel, known: &Known) -> Channel {
        let delay = kbps(known.delay);
        let acked = known.acked.filter(|_| !known.in_alr).map(kbps);
        let others = [acked, Some(delay).filter(|delay| *delay > present.kbps)];
        let window = self.window.filter(|_| self.limit != Limit::Delay);
        let most = window.map_or(kbps(known.most), |(_, most)| most).max(present.kbps);
        let candidates = FACTORS.into_iter().map(|factor| factor * present.kbps);
        let mut best = (present, f64::MIN);
        for candidate in candidates.chain(others.into_iter().flatten()) {
            let mut channel = Channel { kbps: candidate.min(most), ..present };
            channel.inherent = feasible(channel);
            channel.inherent = feasible(self.newton(channel));
            let objective = self.objective(channel);
            if objective > best.1 {
                best = (channel, objective);
            }
        }
        best.0
    }

    /// A step towards the likeliest inherent loss (`NewtonsMethodUpdate()`).
    fn newton(&self, channel: Channel) -> Channel {
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, seen) in self.weighted() {
            let lost = channel.loss_at(seen.kbps.into());
            let arrives = 1.0 - lost;
            let (down, up) = (f64::from(seen.lost), f64::from(seen.arrived));
            first += weight * (down / lost - up / arrives);
            second -= weight * (down / (lost * lost) + up / (arrives * arrives));
        }
        let step = if second < 0.0 { NEWTON * first / second } else { 0.0 };
        Channel { inherent: channel.inherent - step, ..channel }
    }

    /// The logarithm of the likelihood, and the bias (`GetObjective()`).
    fn objective(&self, channel: Channel) -> f64 {
        let room = BIAS_UP_TO - self.share;
        let preference = room / (BIAS_SMOOTHING + room.abs());
        let bias = preference * (BIAS.0 * channel.kbps + BIAS.1 * log(1.0 + channel.kbps));
        self.weighted().fold(0.0, |sum, (weight, seen)| {
            let lost = channel.loss_at(seen.kbps.into());
            let (down, up) = (f64::from(seen.lost), f64::from(seen.arrived));
            let likely = down * log(lost) + up * log(1.0 - lost);
            sum + weight * (likely + bias * (down + up))
        })
    }

    /// Much loss bounds the bandwidth at once (`CalculateInstantUpperBound()`).
    fn instant(&self, most: f64) -> f64 {
        if self.share > INSTANT.0 { INSTANT.1 / (self.share - INSTANT.0) } else { most }
    }
}

impl Channel {
    /// The share that is lost at a sending rate (`GetLossProbability()`).
    fn loss_at(self, sending: f64) -> f64 {
        let excess = if sending > self.kbps { (sending - self.kbps) / sending } else { 0.0 };
        (self.inherent + (1.0 - self.inherent) * excess).clamp(1e-6, 1.0 - 1e-6)
    }
}

/// `GetFeasibleInherentLoss()`.
fn feasible(channel: Channel) -> f64 {
    let most = (INHERENT_MAX.0 + INHERENT_MAX.1 / channel.kbps.max(1e-3)).min(1.0);
    channel.inherent.max(INHERENT_MIN).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Observations of 100 packets in 250 ms at a rate, of which so many are lost.
    fn play(likelihood: &mut Likelihood, from: u64, count: u64, kbps: u64, lost: u32) {
        let known = Known {
            delay: Rate::from_mbps(2.0),
            acked: Some(Rate::from_mbps(kbps as f64 * 1e-3 * f64::from(100 - lost) / 100.0)),
            in_alr: false,
            least: Rate::from_mbps(0.005),
            most: Rate::from_mbps(1000.0),
        };
        for i in from..from + count {
            let sent = |i: u64| Time::from_millis(250 * i);
            let bytes = Bytes::new(kbps * 250 / 8);
            let (first_sent, last_sent) = (sent(i), sent(i + 1));
            let counted = Counted { packets: 100, lost, bytes, first_sent, last_sent };
            likelihood.add(&counted, &known);
        }
    }

    /// Without losses the delay part decides; 3% at any rate are the path's own.
    #[test]
    fn a_loss_at_any_rate_is_the_path_s_own() {
        let mut likelihood = Likelihood::default();
        play(&mut likelihood, 0, 2, 2000, 0);
        assert_eq!(likelihood.rate(), None, "three observations");
        play(&mut likelihood, 2, 40, 2000, 0);
        let two = Some(Rate::from_mbps(2.0));
        assert_eq!((likelihood.rate(), likelihood.limit()), (two, Limit::Delay));
        play(&mut likelihood, 42, 40, 2000, 3);
        assert_eq!((likelihood.rate(), likelihood.limit()), (two, Limit::Delay));
        let inherent = likelihood.best.map_or(0.0, |best| best.inherent);
        assert!((inherent - 0.03).abs() < 0.005, "{inherent}");
    }

    /// `GetInstantUpperBound()`: 20% are 75 / (0.2 - 0.05) = 500 kbit/s.
    #[test]
    fn much_loss_bounds_the_rate_at_once() {
        let mut likelihood = Likelihood::default();
        play(&mut likelihood, 0, 10, 2000, 0);
        play(&mut likelihood, 10, 60, 2000, 20);
        let rate = likelihood.rate().map_or(0.0, Rate::mbps);
        assert!((rate - 0.5).abs() < 0.01, "{rate}");
        assert_ne!(likelihood.limit(), Limit::Delay);
        // Without losses it grows by at most 1.3 in 300 ms, and back to the delay part.
        play(&mut likelihood, 70, 60, 500, 0);
        assert_eq!(likelihood.limit(), Limit::Delay, "{:?}", likelihood.rate());
    }

    /// A packet is lost by the inherent loss, or as the excess: 1% and a half of the rest.
    #[test]
    fn the_excess_is_lost() {
        let channel = Channel { kbps: 1000.0, inherent: 0.01 };
        assert!((channel.loss_at(500.0) - 0.01).abs() < 1e-12);
        assert!((channel.loss_at(2000.0) - 0.505).abs() < 1e-12);
        // At 75 kbit/s everything may be the path's own.
        let slow = Channel { kbps: 75.0, inherent: 2.0 };
        assert_eq!((feasible(slow), feasible(Channel { inherent: 0.0, ..slow })), (1.0, 0.001));
    }
}
