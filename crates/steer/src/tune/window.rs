//! What a stretch of reports says of the operating point.

use crate::Report;

/// Sums over reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// Seconds.
    pub(super) time: f64,
    /// Mbit.
    acked: f64,
    lost: f64,
    /// Sum of the round-trip times, in seconds, and their number.
    delays: f64,
    samples: f64,
}

impl Window {
    pub(super) fn add(&mut self, report: &Report) {
        self.time += report.interval.as_secs_f64();
        self.acked += report.acked.bits() * 1e-6;
        self.lost += report.lost.bits() * 1e-6;
        if let Some(mean) = report.rtt_mean {
            self.delays += mean.as_secs_f64() * report.rtt_samples as f64;
            self.samples += report.rtt_samples as f64;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.time += other.time;
        self.acked += other.acked;
        self.lost += other.lost;
        self.delays += other.delays;
        self.samples += other.samples;
    }

    /// Mbit/s.
    pub(super) fn throughput(&self) -> f64 {
        self.acked / self.time.max(1e-9)
    }

    /// Mean round-trip time, in seconds.
    pub(super) fn delay(&self) -> f64 {
        self.delays / self.samples.max(1.0)
    }

    /// Lost bytes over bytes lost or acknowledged.
    pub(super) fn loss(&self) -> f64 {
        self.lost / (self.acked + self.lost).max(1e-9)
    }
}
