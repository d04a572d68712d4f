//! What was lost of what was sent, in observations of a quarter of a second: the data that the loss
//! part fits its model to (libwebrtc `loss_based_bwe_v2.cc`).

use libm::{fabs, log};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::knobs::Values;

/// Observations that count (`ObservationWindowSize`), and before there is an estimate
/// (`MinNumObservations`).
const OBSERVATIONS: usize = 15;
const OBSERVATIONS_MIN: u32 = 3;
/// The least time of sending in an observation (`ObservationDurationLowerBound`).
const SPAN_MIN: Duration = Duration::from_millis(250);
/// Weight of an observation by the weight of the next (`TemporalWeightFactor`,
/// `InstantUpperBoundTemporalWeightFactor`).
const FADE: f64 = 0.9;
/// Where the most lossy observation was sent at so many times the median rate, its loss counts
/// (`MedianSendingRateFactor`).
const SPIKE: f64 = 2.0;
/// Least inherent loss (`InherentLossLowerBound`), and how its most falls with the rate
/// (`InherentLossUpperBoundBwBalance`).
const OWN_MIN: f64 = 1e-3;
const OWN_BALANCE: Rate = Rate::from_bits_per_sec(100_000);
/// A probability is at least this, and this far from 1 (`GetLossProbability()`).
const PROBABLE: f64 = 1e-6;
/// Part of a Newton step that is gone (`NewtonStepSize`); there is one (`NewtonIterations`).
const STEP: f64 = 0.75;
/// What a higher rate is worth by its kbit/s and their logarithm (`HigherBwBiasFactor`,
/// `HigherLogBwBiasFactor`), and how sharply that turns at the loss where it becomes a penalty
/// (`BandwidthPreferenceSmoothingFactor`).
const HIGHER: f64 = 0.0002;
const HIGHER_LOG: f64 = 0.02;
const TURN: f64 = 0.002;

/// The model of a path: a share of the packets is lost at any rate, and so is all above a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Channel {
    pub(super) inherent: f64,
    pub(super) bandwidth: Rate,
}

/// A quarter of a second, or somewhat more.
#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    rate: Rate,
    sent: Bytes,
    lost: Bytes,
}

/// A ring of the last observations, and the one that is being made.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    ring: [Observation; OBSERVATIONS],
    count: u32,
    partial: Observation,
    /// When the newest packet of the last observation left, and the newest that was reported.
    ended_at: Option<Time>,
    newest: Option<Time>,
    /// The oldest packet of the first report.
    began_at: Option<Time>,
    loss: f64,
}

impl Channel {
    /// The probability that a packet sent at a rate is lost (`GetLossProbability()`).
    fn probability(self, rate: Rate) -> f64 {
        let above = (1.0 - self.bandwidth.ratio(rate)).max(0.0);
        let lost = self.inherent + (1.0 - self.inherent) * above;
        lost.clamp(PROBABLE, 1.0 - PROBABLE)
    }

    /// With an inherent loss that its bandwidth allows (`GetFeasibleInherentLoss()`).
    pub(super) fn feasible(self, values: &Values) -> Self {
        let most = (values.loss_own + OWN_BALANCE.ratio(self.bandwidth)).min(1.0);
        Self { inherent: self.inherent.max(OWN_MIN).min(most), ..self }
    }
}

impl Observation {
    /// Kilobytes that were lost and that arrived, and the probability of a loss.
    fn parts(&self, channel: Channel) -> (f64, f64, f64) {
        let lost = self.lost.as_f64() * 1e-3;
        (lost, self.sent.as_f64() * 1e-3 - lost, channel.probability(self.rate))
    }
}

impl Observations {
    /// A packet was reported as arrived or lost.
    pub(super) fn add(&mut self, sent_at: Time, bytes: Bytes, arrived: bool) {
        self.began_at = Some(self.began_at.map_or(sent_at, |at| at.min(sent_at)));
        self.partial.sent += bytes;
        let told = self.newest.is_some_and(|newest| sent_at < newest);
        if !arrived {
            self.partial.lost += bytes;
        } else if told && self.ended_at.is_none_or(|at| sent_at > at) {
            // It was overtaken, and reported missing.
            self.partial.lost -= bytes;
        }
        self.newest = Some(self.newest.map_or(sent_at, |at| at.max(sent_at)));
    }

    /// At the end of a report. Whether an observation is complete (`PushBackObservation()`).
    pub(super) fn close(&mut self) -> bool {
        let (Some(newest), Some(began_at)) = (self.newest, self.began_at) else { return false };
        let span = newest.since(*self.ended_at.get_or_insert(began_at));
        if span < SPAN_MIN {
            return false;
        }
        self.ended_at = Some(newest);
        let mut observation = core::mem::take(&mut self.partial);
        observation.rate = observation.sent / span;
        self.ring[self.count as usize % OBSERVATIONS] = observation;
        self.count = self.count.wrapping_add(1);
        self.loss = self.average();
        true
    }

    /// When the last observation's newest packet left.
    pub(super) fn ended_at(&self) -> Time {
        self.ended_at.unwrap_or(Time::ZERO)
    }

    pub(super) fn are_enough(&self) -> bool {
        self.count >= OBSERVATIONS_MIN
    }

    /// The share of the bytes that was lost, the extremes aside.
    pub(super) fn loss(&self) -> f64 {
        self.loss
    }

    /// Each observation in the order of its place in the ring, with its weight.
    fn weighed(&self) -> impl Iterator<Item = (f64, &Observation)> {
        let newest = self.count.wrapping_sub(1) as usize;
        let mut weights = [0.0; OBSERVATIONS];
        let mut weight = 1.0;
        for age in 0..OBSERVATIONS.min(self.count as usize) {
            weights[(newest - age) % OBSERVATIONS] = weight;
            weight *= FADE;
        }
        weights.into_iter().zip(&self.ring).filter(|&(weight, _)| weight > 0.0)
    }

    /// `CalculateAverageReportedByteLossRatio()`.
    fn average(&self) -> f64 {
        let (mut sent, mut lost) = (0.0, 0.0);
        // Share, bytes sent and lost, and the rate, of the most and the least lossy observation.
        let (mut most, mut least) = ((0.0, 0.0, 0.0, Rate::ZERO), (1.0, 0.0, 0.0));
        for (weight, observation) in self.weighed() {
            let bytes = observation.sent.as_f64().max(1.0);
            let share = observation.lost.as_f64() / bytes;
            let these = (weight * bytes, weight * observation.lost.as_f64());
            (sent, lost) = (sent + these.0, lost + these.1);
            if self.count <= OBSERVATIONS_MIN {
                continue;
            }
            if share > most.0 {
                most = (share, these.0, these.1, observation.rate);
            }
            if share < least.0 {
                least = (share, these.0, these.1);
            }
        }
        let without = sent - most.1 - least.1;
        if self.median().mul_f64(SPIKE) <= most.3 || without <= 0.0 {
            return lost / sent.max(1.0);
        }
        ((lost - most.2 - least.2) / without).max(0.0)
    }

    /// `GetMedianSendingRate()`.
    fn median(&self) -> Rate {
        let mut rates = [Rate::MAX; OBSERVATIONS];
        let mut count = 0;
        for (_, observation) in self.weighed().filter(|(_, one)| !one.rate.is_zero()) {
            rates[count] = observation.rate;
            count += 1;
        }
        let rates = &mut rates[..count];
        rates.sort_unstable();
        match count {
            0 => Rate::ZERO,
            _ if count % 2 == 0 => (rates[count / 2 - 1] + rates[count / 2]).mul_f64(0.5),
            _ => rates[count / 2],
        }
    }

    /// A step of Newton's method to the inherent loss that fits best (`NewtonsMethodUpdate()`).
    pub(super) fn fit(&self, channel: Channel, values: &Values) -> Channel {
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, observation) in self.weighed() {
            let (lost, arrived, p) = observation.parts(channel);
            let q = 1.0 - p;
            first += weight * (lost / p - arrived / q);
            second -= weight * (lost / (p * p) + arrived / (q * q));
        }
        let second = if second < 0.0 { second } else { -1e-6 };
        let inherent = channel.inherent - STEP * first / second;
        Channel { inherent, ..channel }.feasible(values)
    }

    /// The likelihood of what was observed, and what the bandwidth is worth (`GetObjective()`).
    pub(super) fn objective(&self, channel: Channel, values: &Values) -> f64 {
        let worth = self.worth(channel.bandwidth, values);
        let of = |(weight, observation): (f64, &Observation)| {
            let (lost, arrived, p) = observation.parts(channel);
            weight * (lost * log(p) + arrived * log(1.0 - p) + worth * (lost + arrived))
        };
        self.weighed().map(of).sum()
    }

    /// `GetHighBandwidthBias()`, `AdjustBiasFactor()`.
    fn worth(&self, bandwidth: Rate, values: &Values) -> f64 {
        let kbps = bandwidth.mbps() * 1e3;
        let room = values.loss_high - self.loss;
        let sign = room / (TURN + fabs(room));
        sign * (HIGHER * kbps + HIGHER_LOG * log(1.0 + kbps))
    }
}
