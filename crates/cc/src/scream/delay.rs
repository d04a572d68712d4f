//! The queueing delay that SCReAM goes by: its average, how much it varies, and the target that
//! follows flows which fill the queue ("Detecting Increased Queue Delay", "Competing Flows
//! Compensation").

use libm::sqrt;
use trimtab_units::{Duration, Time};

use super::VIRTUAL_RTT;
use super::knobs::Values;

/// Weight of a longer delay in the average, QDELAY_AVG_G.
const AVERAGE: f64 = 0.25;
/// Weight of the variation, QDELAY_DEV_AVG_G, and what it is divided by, QDELAY_DEV_NORM, in ms.
const VARIATION: f64 = 1.0 / 64.0;
const VARIATION_UNIT: f64 = 25.0;
/// The target is looked at so often (RFC 8298 §4.1.2.1). The draft averages 50 samples and takes
/// the variance of 200; exponential averages of these lengths need no room for them.
const LOOK: Duration = Duration::from_millis(50);
const MEAN_OF: f64 = 50.0;
const VARIANCE_OF: f64 = 200.0;
/// Weight of a round trip in the share of those with losses. The draft leaves it open.
const LOSS_EVENT: f64 = 1.0 / 64.0;
/// More of these means that others fill the queue.
const LOSS_EVENTS: f64 = 0.002;
/// A variance below this is a queue that others fill.
const STABLE: f64 = 0.2;

/// The filters, in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    latest: f64,
    average: f64,
    averaged_at: Option<Time>,
    variation: f64,
    target: f64,
    looked_at: Option<Time>,
    /// Of delays by the lower target.
    mean: f64,
    variance: f64,
    loss_events: f64,
}

impl Delay {
    pub(super) fn new(values: &Values) -> Self {
        Self {
            latest: 0.0,
            average: 0.0,
            averaged_at: None,
            variation: 0.0,
            target: values.target_low,
            looked_at: None,
            mean: 0.0,
            variance: 0.0,
            loss_events: 0.0,
        }
    }

    /// A packet arrived so late. `small`: MSS by window, at most 1.
    pub(super) fn add(
        &mut self,
        now: Time,
        queued: Duration,
        srtt: Duration,
        small: f64,
        values: &Values,
    ) {
        self.latest = queued.as_millis_f64();
        let every = VIRTUAL_RTT.min(srtt);
        if self.averaged_at.is_none_or(|at| now.since(at) >= every) {
            self.averaged_at = Some(now);
            // Slow attack, fast decay.
            let slower = AVERAGE * self.latest + (1.0 - AVERAGE) * self.average;
            self.average = if self.latest < self.average { self.latest } else { slower };
            let over = (self.latest - VARIATION_UNIT / 4.0) / VARIATION_UNIT;
            let over = over.clamp(0.0, 1.5 * threshold(small));
            self.variation += VARIATION * (over - self.variation);
        }
        if self.looked_at.is_none_or(|at| now.since(at) >= LOOK) {
            self.looked_at = Some(now);
            self.retarget(values);
        }
    }

    /// A round trip is over, with losses or without.
    pub(super) fn on_round(&mut self, lossy: bool) {
        self.loss_events += LOSS_EVENT * (f64::from(u8::from(lossy)) - self.loss_events);
    }

    /// `adjust_qdelay_target()`.
    fn retarget(&mut self, values: &Values) {
        let low = values.target_low;
        let sample = self.latest / low;
        let off = sample - self.mean;
        self.variance += 2.0 / (VARIANCE_OF + 1.0) * (off * off - self.variance);
        self.mean += 2.0 / (MEAN_OF + 1.0) * off;
        let fitting = (self.mean + sqrt(self.variance)) * low;
        self.target = if self.loss_events > LOSS_EVENTS {
            1.5 * fitting
        } else if self.variance < STABLE {
            fitting
        } else if fitting < low {
            fitting.max(self.target * 0.5)
        } else {
            self.target * 0.9
        };
        self.target = self.target.min(values.target_high).max(low);
    }

    /// How much too long the average queue is, 0 to 1 (`l4s_alpha_v`); zero up to half of the
    /// target.
    pub(super) fn excess(&self) -> f64 {
        let half = self.target / 2.0;
        ((self.average - half) / half).clamp(0.0, 1.0)
    }

    /// Whether the latest delay is below a quarter of the target.
    pub(super) fn is_small(&self) -> bool {
        self.latest < 0.25 * self.target
    }

    /// How steady the delay is: 1 without variation, 0 with much (the factor by
    /// `qdelay_dev_norm_th`).
    pub(super) fn steadiness(&self, small: f64) -> f64 {
        let threshold = threshold(small);
        ((threshold - self.variation) / threshold).max(0.0)
    }
}

/// `qdelay_dev_norm_th`: less with windows of fewer than ten packets.
fn threshold(small: f64) -> f64 {
    (0.1 * (1.0 - small / 0.1)).max(0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(delay: &mut Delay, from: u64, to: u64, queued_ms: u64) {
        let (queued, srtt) = (Duration::from_millis(queued_ms), Duration::from_millis(50));
        for ms in (from..to).step_by(25) {
            delay.add(Time::from_millis(ms), queued, srtt, 0.0, &Values::default());
        }
    }

    /// A quarter of each longer delay, and at once down to a shorter one.
    #[test]
    fn the_average_rises_slowly_and_falls_at_once() {
        let mut delay = Delay::new(&Values::default());
        play(&mut delay, 0, 50, 40);
        assert!((delay.average - 17.5).abs() < 1e-9, "{}", delay.average);
        play(&mut delay, 50, 75, 10);
        assert!((delay.average - 10.0).abs() < 1e-9);
    }

    /// From half of the target on the excess runs to 1: at 45 ms of 60 it is a half.
    #[test]
    fn the_excess_runs_from_half_of_the_target_to_the_target() {
        let mut delay = Delay::new(&Values::default());
        for (average, expected) in [(0.0, 0.0), (30.0, 0.0), (45.0, 0.5), (60.0, 1.0), (90.0, 1.0)]
        {
            delay.average = average;
            assert_eq!(delay.excess(), expected, "{average} ms");
        }
    }

    /// A queue of 200 ms that others keep full becomes the target; an empty one is the lower
    /// target.
    #[test]
    fn the_target_follows_a_queue_that_others_fill() {
        let mut delay = Delay::new(&Values::default());
        play(&mut delay, 0, 60_000, 200);
        assert!((190.0..260.0).contains(&delay.target), "{}", delay.target);
        play(&mut delay, 60_000, 120_000, 5);
        assert_eq!(delay.target, 60.0);
    }
}
