//! What Sprout believes of a link's rate: a probability for each of 256 rates, which spreads as time
//! passes and narrows as packets arrive (Sprout §3.1, §3.2).

use libm::{erf, exp, lgamma, log, sqrt};

/// Rates that differ (§3.1: "256 discrete values sampled uniformly").
pub(super) const BINS: usize = 256;
/// No rate is higher, in packets per second (§3.1: 11 Mbit/s of 1400 bytes; `MAX_ARRIVAL_RATE`).
pub(super) const RATE_MAX: f64 = 1000.0;
/// A tick in seconds (§3: 20 ms).
pub(super) const TICK: f64 = 0.02;
/// σ: how far the rate wanders, in packets per second per √second (§3.1).
const BROWNIAN: f64 = 200.0;
/// λz: a link without any rate gets one at this rate, per second (§3.1: outages are sticky).
const ESCAPE: f64 = 1.0;

const WIDTH: f64 = RATE_MAX / BINS as f64;
/// A tick moves the rate by no more bins than this: five standard deviations.
const REACH: usize = 37;
const STEPS: usize = 2 * REACH + 1;
/// What is left of the most unlikely rate after an observation. An outage is then never certain,
/// and no sequence of counts leaves nothing.
const LEAST: f64 = 1e-12;

/// The rate of a bin in packets per second: the middle, but for the first one, which is an outage.
pub(super) fn rate(bin: usize) -> f64 {
    if bin == 0 { 0.0 } else { (bin as f64 + 0.5) * WIDTH }
}

/// The probability of `count` events where `mean` are expected.
pub(super) fn poisson(mean: f64, count: usize) -> f64 {
    if mean <= 0.0 {
        return if count == 0 { 1.0 } else { 0.0 };
    }
    let count = count as f64;
    exp(count * log(mean) - mean - lgamma(count + 1.0))
}

/// How a tick moves probability between rates (§3.1): Brownian motion, whose steps by so many bins
/// are the same for each rate.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    /// Share that moves by so many bins, from `-REACH` to `REACH`.
    steps: [f64; STEPS],
    /// Share of outages that end.
    escape: f64,
    /// Packets that each rate brings in a tick, and their logarithm.
    mean: [f64; BINS],
    log_mean: [f64; BINS],
}

impl Motion {
    pub(super) fn new() -> Self {
        let deviation = BROWNIAN * sqrt(TICK);
        let below = |x: f64| 0.5 * (1.0 + erf(x / (deviation * core::f64::consts::SQRT_2)));
        let share = |step: usize| {
            let middle = (step as f64 - REACH as f64) * WIDTH;
            below(middle + WIDTH / 2.0) - below(middle - WIDTH / 2.0)
        };
        let mean = core::array::from_fn(|bin| rate(bin) * TICK);
        Self {
            steps: core::array::from_fn(share),
            escape: 1.0 - exp(-ESCAPE * TICK),
            mean,
            log_mean: mean.map(log),
        }
    }

    /// Where probability of these rates is after a tick. What would leave the range stays at its ends.
    fn moved(&self, before: &[f64; BINS]) -> [f64; BINS] {
        // Bin `b` is at `b + REACH`, with room for what leaves the range.
        let mut wide = [0.0; BINS + 2 * REACH];
        let outage = before[0];
        for (from, p) in before.iter().enumerate().skip(1) {
            for (to, step) in wide[from..from + STEPS].iter_mut().zip(&self.steps) {
                *to += p * step;
            }
        }
        let mut after = [0.0; BINS];
        after.copy_from_slice(&wide[REACH..REACH + BINS]);
        after[0] += wide[..REACH].iter().sum::<f64>() + outage * (1.0 - self.escape);
        after[BINS - 1] += wide[REACH + BINS..].iter().sum::<f64>();
        for (to, step) in after[1..].iter_mut().zip(&self.steps[REACH + 1..]) {
            *to += outage * self.escaping(*step);
        }
        after
    }

    /// Outages that end go where the motion leads: up, since there is nothing below.
    fn escaping(&self, step: f64) -> f64 {
        self.escape * 2.0 * step / (1.0 - self.steps[REACH])
    }

    /// What `value` of the rates is expected to be after a tick, for each rate at its beginning.
    pub(super) fn expected(&self, value: &[f64; BINS]) -> [f64; BINS] {
        core::array::from_fn(|from| {
            if from == 0 {
                let up = value[1..].iter().zip(&self.steps[REACH + 1..]);
                let ended: f64 = up.map(|(value, step)| value * self.escaping(*step)).sum();
                return ended + value[0] * (1.0 - self.escape);
            }
            let steps = self.steps.iter().enumerate();
            steps
                .map(|(step, share)| {
                    let to = (from + step).saturating_sub(REACH).min(BINS - 1);
                    share * value[to]
                })
                .sum()
        })
    }
}

/// A probability for each rate.
#[derive(Clone, Debug)]
pub(super) struct Belief([f64; BINS]);

impl Belief {
    /// Nothing is known (§3.2: all rates are equally likely).
    pub(super) fn new() -> Self {
        Self([1.0 / BINS as f64; BINS])
    }

    /// About this rate, in packets per second: as far from it as the rate wanders in half a second.
    pub(super) fn near(packets_per_sec: f64) -> Self {
        let deviation = BROWNIAN * sqrt(0.5);
        let mut belief = Self(core::array::from_fn(|bin| {
            let apart = (rate(bin) - packets_per_sec.min(RATE_MAX)) / deviation;
            exp(-0.5 * apart * apart)
        }));
        belief.normalise();
        belief
    }

    /// This rate and no other.
    #[cfg(test)]
    pub(super) fn certain(rate: usize) -> Self {
        Self(core::array::from_fn(|bin| f64::from(u8::from(bin == rate))))
    }

    /// The probabilities, which sum up to 1.
    pub(super) fn get(&self) -> &[f64; BINS] {
        &self.0
    }

    /// The mean rate in packets per second.
    pub(super) fn mean(&self) -> f64 {
        self.0.iter().enumerate().map(|(bin, p)| p * rate(bin)).sum()
    }

    /// A tick passes (§3.2, step 1, "evolve").
    pub(super) fn evolve(&mut self, motion: &Motion) {
        self.0 = motion.moved(&self.0);
        self.normalise();
    }

    /// So many packets arrived in the tick (§3.2, steps 2 and 3, "observe" and "normalise"): each
    /// rate's probability by that of the count, `mean^count e^-mean / count!`. The factorial is the
    /// same for all.
    pub(super) fn observe(&mut self, count: usize, motion: &Motion) {
        let packets = count as f64;
        let log_likelihood = |bin: usize| match (bin, count) {
            (0, 0) => 0.0,
            (0, _) => f64::NEG_INFINITY,
            _ => packets * motion.log_mean[bin] - motion.mean[bin],
        };
        let most = (0..BINS).map(log_likelihood).fold(f64::NEG_INFINITY, f64::max);
        self.weigh(|bin| exp(log_likelihood(bin) - most));
    }

    /// Multiplies by a likelihood for each rate.
    pub(super) fn weigh(&mut self, likelihood: impl Fn(usize) -> f64) {
        for (bin, p) in self.0.iter_mut().enumerate() {
            *p = (*p * likelihood(bin)).max(LEAST);
        }
        self.normalise();
    }

    fn normalise(&mut self) {
        let sum: f64 = self.0.iter().sum();
        self.0.iter_mut().for_each(|p| *p /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(belief: &Belief) -> f64 {
        belief.get().iter().sum()
    }

    /// e^-m m^k / k!.
    #[test]
    fn counts_are_poisson() {
        assert!((poisson(2.0, 0) - exp(-2.0)).abs() < 1e-12);
        assert!((poisson(2.0, 3) - exp(-2.0) * 8.0 / 6.0).abs() < 1e-12);
        assert_eq!((poisson(0.0, 0), poisson(0.0, 1)), (1.0, 0.0));
        let all: f64 = (0..80).map(|k| poisson(20.0, k)).sum();
        assert!((all - 1.0).abs() < 1e-12, "{all}");
    }

    /// §3.1: a tick adds σ²·20 ms to the variance: 800 packets² per second².
    #[test]
    fn a_tick_spreads_the_rate_by_the_brownian_motion() {
        let motion = Motion::new();
        let mut belief = Belief::certain(128);
        let centre = belief.mean();
        for ticks in 1..=3 {
            belief.evolve(&motion);
            assert!((sum(&belief) - 1.0).abs() < 1e-12 && (belief.mean() - centre).abs() < 1e-6);
            let spread = |(bin, p): (usize, &f64)| p * (rate(bin) - centre) * (rate(bin) - centre);
            let variance: f64 = belief.get().iter().enumerate().map(spread).sum();
            let expected = 800.0 * f64::from(ticks);
            assert!((variance / expected - 1.0).abs() < 0.01, "{variance} after {ticks} ticks");
        }
    }

    /// §3.1: an outage ends at the rate λz: 1 - e^-0.02 of them in a tick.
    #[test]
    fn outages_are_sticky() {
        let motion = Motion::new();
        let mut belief = Belief::certain(0);
        belief.evolve(&motion);
        assert!((belief.get()[0] - exp(-0.02)).abs() < 1e-3, "{}", belief.get()[0]);
        assert!((sum(&belief) - 1.0).abs() < 1e-12);
    }

    /// §3.2: after a second of 8 packets in each tick the rate is near 400 packets per second; after
    /// half a second of none it is an outage, and one packet ends that.
    #[test]
    fn arrivals_tell_the_rate() {
        let (motion, mut belief) = (Motion::new(), Belief::new());
        let mut see = |count: usize, ticks: usize| {
            for _ in 0..ticks {
                belief.evolve(&motion);
                belief.observe(count, &motion);
            }
            (belief.mean(), belief.get()[0])
        };
        let (mean, outage) = see(8, 50);
        assert!((380.0..440.0).contains(&mean) && outage < 1e-6, "{mean}, {outage}");
        let (mean, outage) = see(0, 25);
        assert!(mean < 10.0 && outage > 0.5, "{mean}, {outage}");
        let (mean, outage) = see(4, 3);
        assert!(mean > 50.0 && outage < 0.01, "{mean}, {outage}");
    }

    #[test]
    fn what_is_expected_of_a_tick_is_what_it_does() {
        let (motion, mut belief) = (Motion::new(), Belief::near(20.0));
        let value = core::array::from_fn(|bin| rate(bin) * rate(bin));
        let expected = motion.expected(&value);
        let of = |b: &Belief, v: &[f64; BINS]| -> f64 {
            b.get().iter().zip(v).map(|(p, v)| p * v).sum()
        };
        let before = of(&belief, &expected);
        belief.evolve(&motion);
        assert!((of(&belief, &value) / before - 1.0).abs() < 1e-3);
    }
}
