//! Network conditions: everything of a path but its capacity (Floo §4.3.1, Table 4).

use trimtab_net::wsp;
use trimtab_units::Duration;

/// Parameters of Table 4, and so dimensions of the design.
pub(crate) const PARAMETERS: usize = 4;
/// The ranges of each parameter of Table 4. They meet or leave gaps as printed there; each gets the same
/// share of the conditions.
const RTT_MS: [(f64, f64); 4] = [(10.0, 50.0), (50.0, 100.0), (100.0, 150.0), (150.0, 300.0)];
const JITTER_PER_RTT: [(f64, f64); 1] = [(0.0, 0.2)];
const LOSS_PERCENT: [(f64, f64); 3] = [(0.0, 0.0), (0.0, 0.1), (0.1, 5.0)];
const BUFFER_PER_BDP: [(f64, f64); 3] = [(0.3, 0.9), (0.9, 1.1), (1.1, 1.5)];
/// The largest jitter, whatever the round-trip time.
const JITTER_MAX: Duration = Duration::from_millis(20);

/// A path but for its capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Round-trip time without queues.
    pub rtt: Duration,
    /// Largest random delay on top of it; packets keep their order.
    pub jitter: Duration,
    /// Share of packets lost at random, 0 to 1.
    pub loss: f64,
    /// Size of the bottleneck's buffer in bandwidth-delay products, by the link's mean rate.
    pub buffer_bdp: f64,
}

impl Condition {
    /// The condition at a point of the unit cube: each coordinate runs through the ranges of one
    /// parameter (round-trip time, jitter, loss, buffer), all of the same width.
    pub fn at(point: &[f64; PARAMETERS]) -> Self {
        let rtt = Duration::from_millis_f64(within(&RTT_MS, point[0]));
        let jitter = rtt.mul_f64(within(&JITTER_PER_RTT, point[1])).min(JITTER_MAX);
        let loss = within(&LOSS_PERCENT, point[2]) / 100.0;
        Self { rtt, jitter, loss, buffer_bdp: within(&BUFFER_PER_BDP, point[3]) }
    }

    /// Where on its coordinate a round-trip time is: what [`at`](Self::at) makes it of.
    pub(crate) fn rtt_position(rtt: Duration) -> f64 {
        let ms = rtt.as_millis_f64();
        let last = RTT_MS.len() - 1;
        let range = RTT_MS.iter().position(|(_, high)| ms <= *high).unwrap_or(last);
        let (low, high) = RTT_MS[range];
        ((range as f64 + (ms - low) / (high - low)) / RTT_MS.len() as f64).clamp(0.0, 1.0)
    }

    /// `count` conditions by the WSP algorithm. The same count and seed give the same conditions.
    pub fn design(count: usize, seed: u64) -> Vec<Self> {
        wsp::design(count, seed).iter().map(Self::at).collect()
    }
}

/// The value at `position`, 0 to 1, on ranges laid end to end.
fn within(ranges: &[(f64, f64)], position: f64) -> f64 {
    let at = position.clamp(0.0, 1.0) * ranges.len() as f64;
    let range = (at as usize).min(ranges.len() - 1);
    let (low, high) = ranges[range];
    low + (high - low) * (at - range as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_and_the_middle_of_table_4() {
        let low = Condition::at(&[0.0; 4]);
        let expected = Condition {
            rtt: Duration::from_millis(10),
            jitter: Duration::ZERO,
            loss: 0.0,
            buffer_bdp: 0.3,
        };
        assert_eq!(low, expected);
        let high = Condition::at(&[1.0; 4]);
        assert_eq!(high.rtt, Duration::from_millis(300));
        // A fifth of 300 ms is more than the largest jitter.
        assert_eq!((high.jitter, high.loss, high.buffer_bdp), (JITTER_MAX, 0.05, 1.5));
        // The second of three loss ranges, at its middle; the third buffer range, a quarter in.
        let middle = Condition::at(&[0.125, 0.5, 0.5, 0.75]);
        assert_eq!(middle.rtt, Duration::from_millis(30));
        assert_eq!(middle.jitter, Duration::from_millis(3));
        assert!((middle.loss - 0.0005).abs() < 1e-12 && (middle.buffer_bdp - 1.2).abs() < 1e-12);
    }

    #[test]
    fn a_round_trip_time_has_its_place() {
        for ms in [10.0, 30.0, 50.0, 77.0, 149.0, 300.0] {
            let position = Condition::rtt_position(Duration::from_millis_f64(ms));
            let back = Condition::at(&[position, 0.0, 0.0, 0.0]).rtt;
            assert!((back.as_millis_f64() - ms).abs() < 1e-6, "{ms} ms: {back}");
        }
        assert_eq!(Condition::rtt_position(Duration::from_secs(2)), 1.0);
    }

    #[test]
    fn a_design_covers_every_range_alike() {
        let conditions = Condition::design(300, 7);
        let share = |f: &dyn Fn(&Condition) -> bool| {
            conditions.iter().filter(|c| f(c)).count() as f64 / 300.0
        };
        assert!((share(&|c| c.loss == 0.0) - 1.0 / 3.0).abs() < 0.05);
        assert!((share(&|c| c.loss > 0.001) - 1.0 / 3.0).abs() < 0.05);
        assert!((share(&|c| c.rtt < Duration::from_millis(50)) - 0.25).abs() < 0.05);
        assert!((share(&|c| c.buffer_bdp > 1.1) - 1.0 / 3.0).abs() < 0.05);
    }
}
