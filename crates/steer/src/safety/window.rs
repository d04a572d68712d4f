//! A second of a connection: long enough to score, and to see harm in.

use trimtab_qoe::{OperatingPoint, Samples};
use trimtab_units::{Bytes, Duration, Time};

use crate::Report;

/// Windows end with the first report after this.
const LENGTH: Duration = Duration::from_secs(1);

/// Collects reports.
#[derive(Clone, Debug, Default)]
pub struct Window {
    length: Duration,
    sent: Bytes,
    acked: Bytes,
    lost: Bytes,
    busy: Duration,
    /// Sum of the reports' mean round-trip times, each counted by what was acknowledged meanwhile.
    rtt_sum_s: f64,
    rtt_weight: f64,
    samples: Samples,
}

/// What a window measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// When it ended.
    pub at: Time,
    /// How long it was.
    pub length: Duration,
    /// Where the connection operated.
    pub point: OperatingPoint,
    /// The distributions around it; empty unless they were asked for.
    pub samples: Samples,
    /// Mean round-trip time above the lowest.
    pub queueing: Duration,
    /// Bytes sent.
    pub sent: Bytes,
    /// Bytes lost.
    pub lost: Bytes,
    /// Whether the application kept it busy for half of the time, so that the throughput is the path's.
    pub busy: bool,
}

impl Window {
    /// Takes a report in, and what it says of distributions where the QoE model reads `samples`;
    /// gives the window when it is over.
    pub fn on_report(&mut self, report: &Report, samples: bool) -> Option<Measured> {
        if samples {
            report.add_to(&mut self.samples);
        }
        self.length += report.interval;
        self.sent += report.sent;
        self.acked += report.acked;
        self.lost += report.lost;
        self.busy += report.busy;
        if let Some(rtt) = report.rtt_mean {
            let weight = report.acked.as_f64().max(1.0);
            self.rtt_sum_s += rtt.as_secs_f64() * weight;
            self.rtt_weight += weight;
        }
        if self.length < LENGTH {
            return None;
        }
        let window = std::mem::take(self);
        let delay = if window.rtt_weight > 0.0 {
            Duration::from_secs_f64(window.rtt_sum_s / window.rtt_weight)
        } else {
            report.srtt
        };
        let all = window.acked + window.lost;
        Some(Measured {
            at: report.now,
            length: window.length,
            point: OperatingPoint {
                throughput: window.acked / window.length,
                delay,
                loss: if all.is_zero() { 0.0 } else { window.lost.ratio(all) },
            },
            samples: window.samples,
            queueing: delay - report.min_rtt,
            sent: window.sent,
            lost: window.lost,
            busy: window.busy.ratio(window.length) >= 0.5,
        })
    }
}
