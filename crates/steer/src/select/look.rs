//! A look back some seconds after a switch: where the connection got clearly less than before, the
//! algorithm that ran comes back, and the other rests for some periods.
//!
//! A policy chooses by what paths like this one were like when it learnt, and the next selection
//! is seconds away. What the connection gets after a switch is known sooner.

use trimtab_units::{Bytes, Duration, Time};

use super::file::CANDIDATES_MAX;
use crate::Report;

/// *Clearly*: by this factor. Ours, set before it was measured (docs/results/switching.md).
const MARGIN: f64 = 1.5;
/// Lost more than before, as a share of what was sent: the guard's budget for what harms others.
const LOSS_MARGIN: f64 = 0.1;
/// The share of the look that belongs to the switch itself: ProbeRTT, and a queue that drains.
const TRANSITION: f64 = 0.25;
/// Less than this of the time busy says nothing.
const BUSY_MIN: f64 = 0.2;
/// Fewer round-trip samples say nothing.
const SAMPLES_MIN: f64 = 10.0;
/// So many periods an algorithm rests that was clearly worse.
const REST: u64 = 4;

/// What a connection got in some time.
#[derive(Clone, Copy, Debug, Default)]
struct Got {
    time: Duration,
    busy: Duration,
    sent: Bytes,
    acked: Bytes,
    lost: Bytes,
    samples: f64,
    /// Sum over the round-trip samples, in s.
    rtt: f64,
    /// Responses that arrived whole, and the sum of their sizes in bytes.
    arrived: f64,
    size: f64,
}

impl Got {
    fn add(&mut self, report: &Report) {
        self.time += report.interval;
        self.busy += report.busy;
        self.sent += report.sent;
        self.acked += report.acked;
        self.lost += report.lost;
        if let Some(rtt) = report.rtt_mean {
            let n = report.rtt_samples as f64;
            self.samples += n;
            self.rtt += n * rtt.as_secs_f64();
        }
        let n = report.responses.arrived as f64;
        self.arrived += n;
        self.size += n * report.responses.size_mean.as_f64();
    }

    fn and(&self, other: &Self) -> Self {
        Self {
            time: self.time + other.time,
            busy: self.busy + other.busy,
            sent: self.sent + other.sent,
            acked: self.acked + other.acked,
            lost: self.lost + other.lost,
            samples: self.samples + other.samples,
            rtt: self.rtt + other.rtt,
            arrived: self.arrived + other.arrived,
            size: self.size + other.size,
        }
    }

    /// Whether it says something of the path.
    fn is_enough(&self) -> bool {
        let busy = self.busy.as_secs_f64() >= BUSY_MIN * self.time.as_secs_f64();
        busy && self.samples >= SAMPLES_MIN && !self.acked.is_zero()
    }

    /// Mean round-trip time, in s.
    fn rtt(&self) -> f64 {
        self.rtt / self.samples
    }

    /// Delivered per busy time, in bytes/s.
    fn rate(&self) -> f64 {
        self.acked.as_f64() / self.busy.as_secs_f64()
    }

    fn loss(&self) -> f64 {
        if self.sent.is_zero() { 0.0 } else { self.lost.ratio(self.sent).min(1.0) }
    }

    /// How long a response of so many bytes takes, in s: a round trip, and the bytes at that rate.
    fn takes(&self, bytes: f64) -> f64 {
        self.rtt() + bytes / self.rate()
    }

    /// Whether this is clearly worse than `before`, for the responses of both times.
    ///
    /// Where the rate is clearly lower *and* the round-trip time clearly longer, the link has become
    /// slower under the same window. No algorithm is to blame for that.
    fn is_clearly_worse_than(&self, before: &Self) -> bool {
        let arrived = self.arrived + before.arrived;
        // Without responses: what a second carried.
        let bytes = if arrived > 0.0 { (self.size + before.size) / arrived } else { before.rate() };
        let slower = self.rate() * MARGIN < before.rate();
        let later = self.rtt() > before.rtt() * MARGIN;
        if slower && later {
            return false;
        }
        let takes = self.takes(bytes) / before.takes(bytes);
        takes > MARGIN || (self.loss() > before.loss() + LOSS_MARGIN && takes * MARGIN > 1.0)
    }
}

/// A switch that is looked at.
#[derive(Clone, Copy, Debug)]
struct Watched {
    before: Got,
    /// Number of the candidate that ran, and of the one that took over.
    from: usize,
    to: usize,
    /// When the other one took over; `None` while the switch waits for that.
    since: Option<Time>,
    after: Got,
}

/// The looks of one connection.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// How long after a switch.
    after: Duration,
    /// What was got in the latest times of that length, the older one complete.
    recent: [Got; 2],
    watched: Option<Watched>,
    /// For how many more periods each candidate rests.
    rests: [u64; CANDIDATES_MAX],
}

impl Look {
    pub(super) fn new(after: Duration) -> Self {
        Self { after, recent: Default::default(), watched: None, rests: [0; CANDIDATES_MAX] }
    }

    /// A candidate is to take over from another.
    pub(super) fn on_switch(&mut self, from: usize, to: usize) {
        let before = self.recent[0].and(&self.recent[1]);
        self.watched = Some(Watched { before, from, to, since: None, after: Got::default() });
    }

    /// Nobody knows what was before, e.g. since the fallback takes over.
    pub(super) fn forget(&mut self) {
        self.watched = None;
    }

    /// Another period begins.
    pub(super) fn on_period(&mut self) {
        self.rests.iter_mut().for_each(|rest| *rest = rest.saturating_sub(1));
    }

    /// Whether a candidate was clearly worse of late.
    pub(super) fn rests(&self, candidate: usize) -> bool {
        self.rests.get(candidate).is_some_and(|rest| *rest > 0)
    }

    /// A report, with the number of the candidate that runs. The candidate to go back to, where it
    /// is time and what took over is clearly worse.
    pub(super) fn on_report(&mut self, report: &Report, running: Option<usize>) -> Option<usize> {
        if self.recent[1].time >= self.after {
            self.recent = [self.recent[1], Got::default()];
        }
        self.recent[1].add(report);
        let watched = self.watched.as_mut()?;
        let Some(since) = watched.since else {
            // What was sent before is in the report that first names the other algorithm.
            watched.since = (running == Some(watched.to)).then_some(report.now);
            return None;
        };
        let passed = report.now.since(since);
        if passed > self.after.mul_f64(TRANSITION) {
            watched.after.add(report);
        }
        if passed < self.after {
            return None;
        }
        let Watched { before, from, to, after, .. } = *watched;
        self.watched = None;
        // What comes next is compared with what this one got.
        self.recent = [Got::default(), after];
        let is_worse =
            before.is_enough() && after.is_enough() && after.is_clearly_worse_than(&before);
        if is_worse {
            self.rests[to] = REST;
        }
        is_worse.then_some(from)
    }
}
