//! Random loss.

use std::sync::Arc;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use trimtab_units::Time;

use crate::seed::{Purpose, generator};

/// Which packets are lost at random. Probabilities are from 0 to 1; below 0 counts as 0, above 1 as 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossConfig {
    /// No random loss.
    #[default]
    None,
    /// Each packet is lost with this probability, whatever happened to the others.
    Independent(f64),
    /// Losses in bursts: a channel that is good or bad, and moves before each packet (E. N. Gilbert,
    /// "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39, 1960, and E. O. Elliott in
    /// volume 42, 1963).
    ///
    /// The share of packets in the bad state is `to_bad / (to_bad + to_good)`, and a stay there lasts
    /// `1 / to_good` packets on average. The first packet finds the state by that share.
    GilbertElliott {
        /// The probability of moving from good to bad.
        to_bad: f64,
        /// The probability of moving from bad to good.
        to_good: f64,
        /// The probability that a packet is lost in the good state (0 in Gilbert's model).
        loss_good: f64,
        /// The probability that a packet is lost in the bad state (1: a burst is a run of losses).
        loss_bad: f64,
    },
    /// These packets are lost, counted from 0 in the order in which they come to the link: to repeat
    /// the losses of a recorded run, or to have them evenly spaced. Ascending.
    Listed(Arc<[u64]>),
    /// Each packet that comes to the link from `from` on and before `until` is lost with this
    /// probability, and no other: a bad start, or with probability 1 an outage.
    During {
        /// The probability.
        probability: f64,
        /// When losses begin.
        from: Time,
        /// When they end.
        until: Time,
    },
}

impl LossConfig {
    /// Bursts that last `burst_packets` on average (at least 1) and lose all their packets, such that the
    /// share `rate` of all packets is lost.
    pub fn bursts(rate: f64, burst_packets: f64) -> Self {
        let to_good = 1.0 / burst_packets.max(1.0);
        // From rate = to_bad / (to_bad + to_good).
        let to_bad = if rate < 1.0 { (rate * to_good / (1.0 - rate)).min(1.0) } else { 1.0 };
        Self::GilbertElliott { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 }
    }
}

/// The state of a lossy channel.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    config: LossConfig,
    is_bad: bool,
    /// Packets seen, and how far in the list of losses they are.
    seen: u64,
    listed: usize,
    random: Pcg64Mcg,
}

impl Loss {
    pub(crate) fn new(config: LossConfig, seed: u64) -> Self {
        let mut random = generator(seed, Purpose::Loss);
        let is_bad = match config {
            LossConfig::GilbertElliott { to_bad, to_good, .. } => {
                random.random::<f64>() * (to_bad + to_good) < to_bad
            }
            LossConfig::None
            | LossConfig::Independent(_)
            | LossConfig::Listed(_)
            | LossConfig::During { .. } => false,
        };
        Self { config, is_bad, seen: 0, listed: 0, random }
    }

    /// Draws from another seed from now on; a channel that is bad stays so.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.random = generator(seed, Purpose::Loss);
    }

    /// Whether the next packet is lost, which comes now.
    pub(crate) fn drops_next(&mut self, now: Time) -> bool {
        match &self.config {
            LossConfig::None => false,
            &LossConfig::Independent(probability) => self.random.random::<f64>() < probability,
            &LossConfig::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let change = if self.is_bad { to_good } else { to_bad };
                self.is_bad ^= self.random.random::<f64>() < change;
                let probability = if self.is_bad { loss_bad } else { loss_good };
                self.random.random::<f64>() < probability
            }
            LossConfig::Listed(lost) => {
                let this = self.seen;
                self.seen += 1;
                while lost.get(self.listed).is_some_and(|&number| number < this) {
                    self.listed += 1;
                }
                lost.get(self.listed) == Some(&this)
            }
            &LossConfig::During { probability, from, until } => {
                (from..until).contains(&now) && self.random.random::<f64>() < probability
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 400_000;

    /// The share of packets lost, and the mean length of a run of losses.
    fn measure(config: LossConfig) -> (f64, f64) {
        let mut loss = Loss::new(config, 3);
        let lost: Vec<bool> = (0..PACKETS).map(|_| loss.drops_next(Time::ZERO)).collect();
        let losses = lost.iter().filter(|&&lost| lost).count() as f64;
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        (losses / PACKETS as f64, losses / runs)
    }

    #[test]
    fn independent_losses_have_their_rate() {
        // Standard error of the rate: sqrt(0.02 * 0.98 / 400000) = 0.00022. Mean run: 1 / (1 - p).
        let (rate, run) = measure(LossConfig::Independent(0.02));
        assert!((rate - 0.02).abs() < 0.0009, "{rate}");
        assert!((run - 1.0 / 0.98).abs() < 0.01, "{run}");
    }

    #[test]
    fn bursts_have_their_rate_and_length() {
        let (rate, run) = measure(LossConfig::bursts(0.02, 8.0));
        assert!((rate - 0.02).abs() < 0.0025, "{rate}");
        assert!((run - 8.0).abs() < 0.8, "{run}");
    }

    #[test]
    fn both_states_can_lose() {
        // Stationary: a quarter of the packets is bad, so 0.75 * 0.01 + 0.25 * 0.4.
        let config = LossConfig::GilbertElliott {
            to_bad: 0.05,
            to_good: 0.15,
            loss_good: 0.01,
            loss_bad: 0.4,
        };
        let (rate, _) = measure(config);
        assert!((rate - 0.1075).abs() < 0.004, "{rate}");
    }

    #[test]
    fn listed_packets_are_lost_and_no_others() {
        let mut loss = Loss::new(LossConfig::Listed([0, 3, 3, 4, 9].into()), 3);
        let lost: Vec<u64> = (0..20).filter(|_| loss.drops_next(Time::ZERO)).collect();
        assert_eq!(lost, [0, 3, 4, 9]);
    }

    #[test]
    fn losses_of_a_time_have_their_rate_then_and_only_then() {
        let (from, until) = (Time::from_secs(2), Time::from_secs(4));
        let mut loss = Loss::new(LossConfig::During { probability: 0.3, from, until }, 3);
        let mut share = |at: Time| {
            let lost = (0..PACKETS).filter(|_| loss.drops_next(at)).count();
            lost as f64 / PACKETS as f64
        };
        let before = Time::from_nanos(1_999_999_999);
        assert_eq!([before, until].map(&mut share), [0.0, 0.0]);
        assert!((share(from) - 0.3).abs() < 0.003);
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(measure(LossConfig::None).0, 0.0);
        assert_eq!(measure(LossConfig::Independent(0.0)).0, 0.0);
        assert_eq!(measure(LossConfig::Independent(1.0)).0, 1.0);
        assert_eq!(measure(LossConfig::bursts(0.0, 5.0)).0, 0.0);
    }
}
