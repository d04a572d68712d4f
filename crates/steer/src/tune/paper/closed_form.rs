//! What Copa makes of a bandwidth that varies, in closed form: the mapping from δ to a tradeoff that
//! the paper announces (Mortise §1 and §3.3), and its prototype has (`calc_copa_performance.py`).
//!
//! A link whose capacity falls by some packets per round trip empties the queue, and then idles.
//! Fast swings are over before Copa answers: what exceeds the queue of 1/δ packets is lost. Slow
//! ones it follows, by 0.5/δ packets each half of a round trip, and doubling after three of them.

use crate::tune::twin::Point;

/// Packets that queue on average, times δ (Copa §3).
const MEAN_QUEUE: f64 = 1.25;
/// Copa moves the window by this over δ each half of a round trip.
const STEP: f64 = 0.5;
/// Where δ is no more than this, it starts a step ahead.
const BOLD: f64 = 0.1;
/// Steps before its velocity doubles.
const STEPS_BEFORE_DOUBLING: u32 = 6;

/// The conditions of a path, as of the last intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    /// Mean rate, in packets per second.
    pub(super) rate: f64,
    /// Lowest round-trip time, in seconds.
    pub(super) rtt_min: f64,
    /// Peak to peak, by what the path holds swings faster and slower than Copa follows, in packets.
    pub(super) fast: f64,
    pub(super) slow: f64,
    /// How long a slow swing goes one way, in seconds.
    pub(super) width: f64,
    /// The queue in multiples of 1/δ that the buffer held when it dropped packets; `None` while it
    /// drops none.
    pub(super) queue_max: Option<f64>,
}

impl Conditions {
    /// The operating point of this δ.
    pub(super) fn at(&self, delta: f64) -> Point {
        let idle = self.fast_idles(delta) + self.slow_idles(delta);
        let loss = self.queue_max.map_or(0.0, |queue| (1.0 - queue * delta).max(0.0));
        Point {
            throughput: self.rate - idle,
            delay: self.rtt_min + MEAN_QUEUE / delta / self.rate.max(1e-9),
            loss,
        }
    }

    /// What the fast swings cost, in packets per second.
    fn fast_idles(&self, delta: f64) -> f64 {
        let half = self.fast / 2.0;
        let beyond = (half - 1.0 / delta).max(0.0);
        beyond * beyond / (2.0 * half.max(2.0) * self.rtt_min.max(1e-4))
    }

    /// What the slow swings cost, in packets per second.
    fn slow_idles(&self, delta: f64) -> f64 {
        let half_trip = 0.5 * self.rtt_min.max(1e-4);
        let step = STEP / delta;
        let mut moved = if delta <= BOLD { step } else { 0.0 };
        let (mut idle, mut time, mut steps) = (0.0, 0.0, 0);
        while moved < self.slow && steps < STEPS_BEFORE_DOUBLING && time < self.width {
            moved += step;
            time += half_trip;
            idle += (0.5 * (self.slow - moved)).max(0.0);
            steps += 1;
        }
        let rest = self.slow - moved;
        if rest >= 1.0 && time < self.width {
            // Steps that double, until they have made up for the rest.
            let needed = libm::ceil(libm::log2(2.0 * delta * rest + 1.0));
            let doublings = needed.min(libm::floor((self.width - time) / half_trip));
            idle +=
                doublings * rest / 2.0 - (libm::exp2(doublings) - 2.0 - doublings) / (4.0 * delta);
        }
        idle / self.width.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILL: Conditions = Conditions {
        rate: 1_000.0,
        rtt_min: 0.02,
        fast: 0.0,
        slow: 0.0,
        width: 0.5,
        queue_max: None,
    };

    /// expected.md X2, whose packets have 1448 bytes and whose megabits are binary.
    #[test]
    fn fast_swings_cost_what_the_prototype_says() {
        for (fast, delta, rtt_min, expected) in [
            (10.0, 0.1, 0.02, 0.0),
            (10.0, 0.5, 0.02, 0.497_131),
            (40.0, 0.1, 0.02, 1.380_920),
            (40.0, 0.3, 0.05, 1.534_356),
            (40.0, 0.04, 0.02, 0.0),
        ] {
            let idle = Conditions { fast, rtt_min, ..STILL }.fast_idles(delta);
            let mbps = idle * 1448.0 * 8.0 / f64::from(1 << 20);
            assert!((mbps - expected).abs() < 1e-6, "{fast} {delta}: {mbps}");
        }
    }

    /// expected.md X3, whose packets have 12 kbit.
    #[test]
    fn slow_swings_cost_what_the_prototype_says() {
        for (slow, delta, rtt_min, width, expected) in [
            (10.0, 0.1, 0.02, 0.5, 0.0),
            (40.0, 0.1, 0.02, 0.5, 1.38),
            (40.0, 0.3, 0.05, 1.0, 1.88),
            (100.0, 0.3, 0.05, 1.0, 6.07),
            (40.0, 0.04, 0.02, 0.5, 0.21),
        ] {
            let idle = Conditions { slow, rtt_min, width, ..STILL }.slow_idles(delta);
            assert!((idle * 0.012 - expected).abs() < 1e-9, "{slow} {delta}: {}", idle * 0.012);
        }
    }

    /// expected.md X4, without the prototype's "bounce", which is not in the paper.
    #[test]
    fn the_queue_is_copa_s() {
        let queueing = |delta: f64, mbps: f64| {
            let conditions = Conditions { rate: mbps / 0.012, ..STILL };
            1e3 * (conditions.at(delta).delay - STILL.rtt_min)
        };
        assert!((queueing(0.04, 10.0) - 37.5).abs() < 1e-9);
        assert!((queueing(0.1, 10.0) * 1.3 - 19.5).abs() < 1e-9);
        assert!((queueing(0.3, 48.0) - 1.041_666_7).abs() < 1e-6);
    }

    /// expected.md X5.
    #[test]
    fn a_queue_beyond_the_buffer_is_lost() {
        for (delta, queue, expected) in
            [(0.1, 8.0, 0.2), (0.3, 3.0, 0.1), (0.5, 2.5, 0.0), (0.04, 20.0, 0.2)]
        {
            let loss = Conditions { queue_max: Some(queue), ..STILL }.at(delta).loss;
            assert!((loss - expected).abs() < 1e-12, "{delta} {queue}: {loss}");
        }
        assert_eq!(STILL.at(0.01).loss, 0.0);
    }

    /// Fig. 2: the operating points of all δ are a front, on which more delay buys ever less.
    #[test]
    fn delay_buys_throughput_at_a_falling_rate() {
        let path = Conditions { fast: 60.0, slow: 60.0, ..STILL };
        let points: Vec<_> =
            [0.5, 0.2, 0.1, 0.06, 0.04, 0.03].iter().map(|&delta| path.at(delta)).collect();
        let slopes: Vec<_> = points
            .windows(2)
            .map(|p| (p[1].throughput - p[0].throughput) / (p[1].delay - p[0].delay))
            .collect();
        assert!(slopes.iter().all(|&slope| slope > 0.0), "{slopes:?}");
        assert!(slopes[0] > 2.0 * slopes[slopes.len() - 1], "{slopes:?}");
    }
}
