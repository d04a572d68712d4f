//! A twin of the flow: Copa as a fluid, replayed over the capacity that was just measured.
//!
//! What a neighbouring δ would have brought cannot be measured by trying it: between two trials a
//! cellular link changes more than δ does. So the neighbours are tried on the same capacity, step by
//! step through Copa's own rules (NSDI 2018 §2): the window moves by v/δ packets per round trip
//! towards the rate 1/(δ·queueing delay), and v doubles after three round trips one way.

use super::path::Path;

/// Rounds in one direction before the velocity doubles (Copa §2.2).
const ROUNDS_BEFORE_DOUBLING: f64 = 3.0;
/// Mean queue of a lone flow at equilibrium, in multiples of 1/δ (Copa §3).
const MEAN_QUEUE: f64 = 1.25;
/// A step is the mean over a report, and hides the variation within. What remains of it is stretched
/// by this, as if the variation within were as large as the one between steps.
const VARIATION: f64 = 1.5;

/// An operating point: what a δ brings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    /// Packets per second.
    pub(super) throughput: f64,
    /// Mean round-trip time of the packets, in seconds.
    pub(super) delay: f64,
    /// Share of packets lost to the buffer.
    pub(super) loss: f64,
}

/// Replays the path's steps with this δ. Losses are not the twin's to tell.
pub(super) fn replay(path: &Path, delta: f64, velocity_max: f64) -> Point {
    let steps = path.steps();
    let count = steps.len() as f64;
    let rtt_min = path.rtt_min.max(1e-4);
    let mean = steps.clone().map(|s| s.capacity).sum::<f64>() / count.max(1.0);
    let stretch =
        |capacity: f64| (mean + VARIATION * (capacity - mean)).max(0.1 * capacity).max(1.0);
    let Some(first) = steps.clone().next() else { return Point::default() };
    let mut window = first.capacity * rtt_min + MEAN_QUEUE / delta;
    let mut queueing = MEAN_QUEUE / delta / first.capacity.max(1.0);
    let (mut velocity, mut up, mut rounds) = (1.0_f64, true, 0.0_f64);
    let (mut delivered, mut waited, mut time) = (0.0, 0.0, 0.0);
    for step in steps {
        let capacity = stretch(step.capacity);
        // Copa decides by the queue of a round trip ago, and sees the jitter as queue.
        let standing = rtt_min + queueing;
        let upwards = window * delta * (queueing + path.jitter) <= standing;
        let turns = step.length / standing;
        if upwards == up {
            rounds += turns;
            if rounds >= ROUNDS_BEFORE_DOUBLING && velocity < velocity_max {
                velocity = (velocity * libm::exp2(turns)).min(velocity_max);
            }
        } else {
            (up, velocity, rounds) = (upwards, 1.0, 0.0);
        }
        let moved = (velocity / delta * turns).min(window * turns.min(1.0));
        window = if upwards { window + moved } else { (window - moved).max(2.0) };
        let room = capacity * rtt_min;
        queueing = (window - room).max(0.0) / capacity;
        let sent = window / (rtt_min + queueing) * step.length;
        delivered += sent;
        waited += sent * (rtt_min + queueing);
        time += step.length;
    }
    Point {
        throughput: delivered / time.max(1e-9),
        delay: if delivered > 0.0 { waited / delivered } else { rtt_min },
        loss: 0.0,
    }
}
