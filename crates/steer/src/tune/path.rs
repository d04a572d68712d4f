//! What the reports say of the path: its capacity over time, its jitter, its losses.

use alloc::collections::VecDeque;

use trimtab_cc::Phase;
use trimtab_units::{Bytes, Duration};

use super::buffer::Buffer;
use crate::Report;

/// The most steps that are remembered: enough for the slowest decisions, few enough to replay in
/// microseconds.
pub(super) const STEPS_MAX: usize = 96;
/// A queue below this is none: links that send in whole milliseconds show as much when empty.
pub(super) const QUEUE_SLACK: Duration = Duration::from_micros(1500);
/// Weights of a new report in the averages: of the capacity that was seen, of the jitter, and of the
/// losses of late.
const CAPACITY_WEIGHT: f64 = 0.1;
const JITTER_WEIGHT: f64 = 0.05;
const LOSS_WEIGHT: f64 = 1.0 / 60.0;
/// The queue that the path holds is this quantile of what reports show, and moves by at most this share
/// of itself a report: a link that stands still for a moment shows every packet in flight as queue.
const QUEUE_QUANTILE: f64 = 0.8;
const QUEUE_STEP: f64 = 0.2;
/// How long, in reports, the losses with a short queue are remembered.
const QUIET_WEIGHT: f64 = 1.0 / 400.0;
/// Reports after slow start whose losses are still those of its last round, which overshoots any buffer
/// and says nothing of what δ keeps in it.
const SETTLING: u32 = 6;

/// The path's capacity during one report, as far as the flow could see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Seconds.
    pub(super) length: f64,
    /// Packets per second.
    pub(super) capacity: f64,
    /// Whether a queue showed that the capacity was used up; otherwise it is a guess.
    pub(super) full: bool,
}

/// The path as one flow knows it, its own share where there are others. Packets are full-size ones.
#[derive(Clone, Debug)]
pub(super) struct Path {
    steps: VecDeque<Step>,
    /// Lowest round-trip time, in seconds.
    pub(super) rtt_min: f64,
    /// How much the round-trip times of one round trip scatter, in seconds.
    pub(super) jitter: f64,
    /// Mean capacity of the steps that showed it, in packets per second.
    pub(super) capacity: f64,
    /// A long queue, as this flow sees them, in packets.
    queue_long: f64,
    /// Packets sent and lost while the queue was short.
    quiet: Tally,
    /// Packets sent and lost of late.
    late: Tally,
    /// Reports whose losses do not count any more.
    settling: u32,
    buffer: Buffer,
}

/// Packets sent and lost, fading.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sent: f64,
    lost: f64,
}

impl Tally {
    fn add(&mut self, weight: f64, sent: f64, lost: f64) {
        self.sent += sent - weight * self.sent;
        self.lost += lost - weight * self.lost;
    }
}

impl Path {
    pub(super) fn new() -> Self {
        Self {
            steps: VecDeque::new(),
            rtt_min: 0.0,
            jitter: 0.0005,
            capacity: 0.0,
            queue_long: 0.0,
            quiet: Tally::default(),
            late: Tally::default(),
            settling: SETTLING,
            buffer: Buffer::default(),
        }
    }

    /// Takes a report in, measured with this δ; gives the step that it adds, if the flow was busy
    /// enough to see one.
    pub(super) fn on_report(&mut self, report: &Report, delta: f64) -> Option<Step> {
        let packet = report.mss.as_f64().max(1.0);
        self.settling = match report.phase {
            Phase::SlowStart => SETTLING,
            _ => self.settling.saturating_sub(1),
        };
        self.rtt_min = report.min_rtt.as_secs_f64();
        let length = report.interval.as_secs_f64();
        let (low, mean, high) = (report.rtt_min?, report.rtt_mean?, report.rtt_max?);
        let rate = report.acked.as_f64() / packet / length.max(1e-6);
        // Little's law: of the window, the share of the round trip that is spent waiting.
        let waiting = (high - report.min_rtt).as_secs_f64() / high.as_secs_f64().max(1e-6);
        let queue = report.window.as_f64() / packet * waiting;
        self.on_losses(report.acked.as_f64() / packet, report.lost.as_f64() / packet, queue);
        let busy = report.busy.ratio(report.interval) >= 0.5;
        let dropped = (report.lost > Bytes::ZERO).then(|| self.overflow_share());
        let queueing = |rtt: Duration| (rtt - report.min_rtt).as_secs_f64();
        self.buffer.on_report(queueing(mean), queueing(low), busy, dropped);
        // Held back by the application for more than half of the time: says nothing of the path.
        if !busy || length <= 0.0 {
            return None;
        }
        let full = low > report.min_rtt + QUEUE_SLACK;
        let capacity = if full {
            self.backfill(rate);
            rate
        } else {
            // Where no queue showed the capacity, it is taken to be what it was when one did: who
            // believes that there is no more never tries.
            let seen = report.delivery_rate.map_or(0.0, |r| r.bytes_per_sec() as f64 / packet);
            rate.max(seen).max(self.capacity)
        };
        if full {
            self.capacity += CAPACITY_WEIGHT * (rate - self.capacity);
        } else {
            self.capacity = self.capacity.max(rate);
        }
        // What Copa's own movement adds within a round trip is no jitter: half of 1/δ packets.
        let own = 0.5 / (delta * capacity.max(1.0));
        let scatter = ((mean - low).as_secs_f64() - own).max(0.0);
        self.jitter += JITTER_WEIGHT * (scatter - self.jitter);
        let step = Step { length, capacity, full };
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back(step);
        Some(step)
    }

    /// While the flow grew towards a capacity that it could not see yet, the capacity was there.
    fn backfill(&mut self, rate: f64) {
        for step in self.steps.iter_mut().rev().take_while(|s| !s.full) {
            step.capacity = step.capacity.max(rate);
            step.full = true;
        }
    }

    /// Losses while the queue is short are the link's; the others may be the buffer's.
    fn on_losses(&mut self, acked: f64, lost: f64, queue: f64) {
        let rank = if queue > self.queue_long { QUEUE_QUANTILE } else { QUEUE_QUANTILE - 1.0 };
        let reach = (queue - self.queue_long).abs().clamp(1.0, self.queue_long.max(1.0));
        self.queue_long = (self.queue_long + QUEUE_STEP * rank * reach).max(0.0);
        if queue < 0.5 * self.queue_long {
            self.quiet.add(QUIET_WEIGHT, acked + lost, lost);
        }
        self.late.add(LOSS_WEIGHT, acked + lost, if self.settling > 0 { 0.0 } else { lost });
    }

    /// Probability that a packet is lost whatever the queue does.
    fn random_loss(&self) -> f64 {
        // As if little had been lost of 400 packets before: no evidence is little loss.
        ((self.quiet.lost + 0.2) / (self.quiet.sent + 400.0)).min(0.5)
    }

    /// Share of packets lost of late beyond what the link loses by itself: to the buffer.
    pub(super) fn overflow(&self) -> f64 {
        let all = if self.late.sent > 0.0 { self.late.lost / self.late.sent } else { 0.0 };
        (all - 1.5 * self.random_loss()).clamp(0.0, 1.0)
    }

    /// Share of the packets lost of late that the buffer dropped.
    fn overflow_share(&self) -> f64 {
        if self.late.lost > 0.0 { self.overflow() * self.late.sent / self.late.lost } else { 0.0 }
    }

    /// Share of its buffer that the flows of this path keep filled.
    pub(super) fn fullness(&self) -> f64 {
        self.buffer.fullness()
    }

    /// Share of packets lost, were the buffer to lose this share.
    pub(super) fn loss(&self, overflow: f64) -> f64 {
        (overflow + self.random_loss()).min(1.0)
    }

    /// How long the queue gets that the path holds, in packets.
    pub(super) fn queue_long(&self) -> f64 {
        self.queue_long
    }

    pub(super) fn steps(&self) -> impl ExactSizeIterator<Item = Step> + Clone {
        self.steps.iter().copied()
    }

    /// The regime has changed: only its last steps count.
    pub(super) fn forget(&mut self, keep: usize) {
        while self.steps.len() > keep {
            self.steps.pop_front();
        }
        self.late = Tally::default();
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
