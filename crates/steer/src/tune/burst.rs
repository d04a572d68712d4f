//! How fast a window may leave at once: Copa's pacing gain.
//!
//! A request that starts after an idle time finds a window and no acknowledgements to clock it. Sent
//! at many times the rate of the path it is there sooner, if the buffer takes it: paced at gain g, a
//! share (g − 1)/g of the window queues up. So the gain is what fills the long queues that the path
//! has proven to hold, and less once it overflows all the same.

use trimtab_units::Bytes;

use super::OVERFLOW;
use super::path::Path;
use crate::Report;

/// The range of the gain: with less the window cannot grow, more is never felt.
const GAIN_MIN: f64 = 1.2;
const GAIN_MAX: f64 = 4.0;
/// Copa's own gain, in force at first.
const GAIN_START: f64 = 2.0;
/// Per report with overflow, and without.
const DAMP: f64 = 0.9;
const RECOVER: f64 = 1.01;
const DAMP_MIN: f64 = 0.3;
/// A change of the gain below this factor (its logarithm) is not worth an action.
const WORTH: f64 = 0.2;
/// Weight of a report's window in its mean. The long queue moves slowly, and Copa's window swings
/// by a factor within seconds on a link that varies. Their ratio would swing with the window alone.
const WINDOW_WEIGHT: f64 = 1.0 / 60.0;

/// The gain of one connection.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    damping: f64,
    applied: f64,
    /// Mean window, in packets; `None` before the first report.
    window: Option<f64>,
}

impl Burst {
    pub(super) fn new() -> Self {
        Self { damping: 1.0, applied: GAIN_START, window: None }
    }

    /// Takes a report; gives the gain when it is to change.
    pub(super) fn on_report(&mut self, path: &Path, report: &Report) -> Option<f64> {
        let overflow = path.overflow();
        if overflow > 2.0 * OVERFLOW {
            self.damping = (self.damping * DAMP).max(DAMP_MIN);
        } else if overflow < 0.6 * OVERFLOW {
            self.damping = (self.damping * RECOVER).min(1.0);
        }
        let now = report.window.max(report.mss).ratio(report.mss.max(Bytes::new(1)));
        let window = self.window.map_or(now, |mean| mean + WINDOW_WEIGHT * (now - mean));
        self.window = Some(window);
        let proven = 1.0 / (1.0 - (path.queue_long() / window).min(0.9));
        let gain = (proven * self.damping).clamp(GAIN_MIN, GAIN_MAX);
        if libm::log(gain / self.applied).abs() < WORTH {
            return None;
        }
        self.applied = gain;
        Some(gain)
    }
}

#[cfg(test)]
mod tests {
    use trimtab_units::Time;

    use super::*;
    use crate::tune::tests::{Link, report, steady};

    /// A path of 20 packets and the report of a flow that keeps so many more in its queue.
    fn keeping(queue_packets: f64, loss: f64) -> (Path, Report) {
        let report = report(Time::ZERO, Link { queue_packets, loss, ..steady(1.0) });
        let mut path = Path::new();
        for _ in 0..400 {
            path.on_report(&report, 0.1);
        }
        (path, report)
    }

    /// The gain that is in force after so many reports.
    fn settle(burst: &mut Burst, (path, report): &(Path, Report), reports: u32) -> f64 {
        for _ in 0..reports {
            burst.on_report(path, report);
        }
        burst.applied
    }

    /// Paced at gain g, a share (g − 1)/g of the window queues up.
    #[test]
    fn the_gain_fills_the_queue_that_the_path_has_proven_to_hold() {
        let gain = |queue: f64| {
            let (path, report) = keeping(queue, 0.0);
            Burst::new().on_report(&path, &report)
        };
        for (queue, expected) in [(10.0, 1.5), (30.0, 2.5), (60.0, 4.0)] {
            let gain = gain(queue).expect("not what is in force at first");
            assert!((gain / expected - 1.0).abs() < 0.01, "{queue}: {gain}");
        }
        // Half of the window: what is in force.
        assert_eq!(gain(20.0), None);
        // No queue at all, and ten windows of it.
        assert_eq!((gain(0.0), gain(200.0)), (Some(GAIN_MIN), Some(GAIN_MAX)));
    }

    #[test]
    fn a_gain_that_is_in_force_is_not_asked_for_again() {
        let (path, report) = keeping(60.0, 0.0);
        let mut burst = Burst::new();
        assert!(burst.on_report(&path, &report).is_some());
        assert!((0..100).all(|_| burst.on_report(&path, &report).is_none()));
    }

    #[test]
    fn a_buffer_that_overflows_gets_smaller_bursts_until_it_does_not() {
        let (clean, lossy) = (keeping(60.0, 0.0), keeping(60.0, 0.05));
        let mut burst = Burst::new();
        let before = settle(&mut burst, &clean, 50);
        assert!(settle(&mut burst, &lossy, 5) < 0.8 * before, "{burst:?}");
        let least = settle(&mut burst, &lossy, 100);
        assert!((least / before / DAMP_MIN - 1.0).abs() < 0.25, "{burst:?}");
        // It comes back more slowly than it went.
        assert!(settle(&mut burst, &clean, 20) < 0.5 * before, "{burst:?}");
        assert!(settle(&mut burst, &clean, 200) > 0.8 * before, "{burst:?}");
    }

    #[test]
    fn a_little_overflow_neither_damps_nor_lets_recover() {
        let clean = keeping(60.0, 0.0);
        // As much as is tolerated, a little less than what is lost.
        let some = keeping(60.0, 0.006);
        assert!((0.6 * OVERFLOW..2.0 * OVERFLOW).contains(&some.0.overflow()));
        let mut burst = Burst::new();
        settle(&mut burst, &some, 200);
        assert_eq!(burst.damping, 1.0);
        settle(&mut burst, &keeping(60.0, 0.05), 5);
        let damped = burst.damping;
        settle(&mut burst, &some, 200);
        assert!(damped < 0.7 && burst.damping == damped, "{burst:?}");
        settle(&mut burst, &clean, 200);
        assert_eq!(burst.damping, 1.0);
    }

    /// A window of a moment counts little, a window that stays counts in the end.
    #[test]
    fn the_window_is_a_mean_over_about_a_minute_of_reports() {
        let (path, report) = keeping(60.0, 0.0);
        let wide = Report { window: report.window * 2, ..report.clone() };
        let mut burst = Burst::new();
        settle(&mut burst, &(path.clone(), report), 1);
        let before = burst.window.unwrap();
        settle(&mut burst, &(path.clone(), wide.clone()), 1);
        let after = burst.window.unwrap();
        assert!(after > before && after < 1.05 * before, "{before} {after}");
        settle(&mut burst, &(path, wide), 400);
        assert!((burst.window.unwrap() / before - 2.0).abs() < 0.01, "{burst:?}");
    }
}
