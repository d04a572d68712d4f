//! Sizes of responses as they are seen on the wire, for applications that say nothing.

use trimtab_qoe::Factors;
use trimtab_steer::Report;
use trimtab_units::{Bytes, Duration};

/// A response ends when nothing is in flight and nothing was sent for so long.
const PAUSE: Duration = Duration::from_millis(50);
/// Weight of the latest response in the mean size.
const WEIGHT: f64 = 0.25;

/// What one connection sends between pauses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sizes {
    /// Sent since the last pause.
    current: Bytes,
    /// Mean of the responses that have ended; zero before the first has.
    mean: Bytes,
}

impl Sizes {
    /// Takes an interval in.
    pub(crate) fn on_report(&mut self, report: &Report) {
        self.current += report.sent;
        let quiet = report.interval - report.busy;
        if report.inflight.is_zero() && (report.sent.is_zero() || quiet >= PAUSE) {
            self.pause();
        }
    }

    /// Nothing has happened for a while.
    pub(crate) fn pause(&mut self) {
        let ended = std::mem::take(&mut self.current);
        if ended.is_zero() {
            return;
        }
        self.mean = if self.mean.is_zero() {
            ended
        } else {
            self.mean.mul_f64(1.0 - WEIGHT) + ended.mul_f64(WEIGHT)
        };
    }

    /// The sizes as factors: the mean response, or what the current one has become already; nothing before the first
    /// byte.
    pub(crate) fn factors(&self) -> Factors {
        let size = self.mean.max(self.current);
        if size.is_zero() {
            return Factors::new();
        }
        Factors::new()
            .with_request(size)
            .with_remaining(size - self.current)
            .with_chunk(size)
            .with_mean_response(size)
    }
}
