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
