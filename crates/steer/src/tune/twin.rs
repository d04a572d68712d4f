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

/// One of the flows that are replayed.
#[derive(Clone, Copy)]
struct Twin {
    delta: f64,
    /// In packets.
    window: f64,
    /// In seconds.
    queueing: f64,
    velocity: f64,
    up: bool,
    rounds: f64,
    /// Packets, and the sum of their round-trip times in seconds.
    delivered: f64,
    waited: f64,
}

impl Twin {
    /// At equilibrium with the capacity of the first step, in packets per second.
    fn new(delta: f64, capacity: f64, rtt_min: f64) -> Self {
        Self {
            delta,
            window: capacity * rtt_min + MEAN_QUEUE / delta,
            queueing: MEAN_QUEUE / delta / capacity.max(1.0),
            velocity: 1.0,
            up: true,
            rounds: 0.0,
            delivered: 0.0,
            waited: 0.0,
        }
    }

    /// A step of so many seconds, at so many packets per second.
    #[inline]
    fn step(&mut self, length: f64, capacity: f64, path: &Facts) {
        // Copa decides by the queue of a round trip ago, and sees the jitter as queue.
        let standing = path.rtt_min + self.queueing;
        let upwards = self.window * self.delta * (self.queueing + path.jitter) <= standing;
        let turns = length / standing;
        if upwards == self.up {
            self.rounds += turns;
            if self.rounds >= ROUNDS_BEFORE_DOUBLING && self.velocity < path.velocity_max {
                self.velocity = (self.velocity * libm::exp2(turns)).min(path.velocity_max);
            }
        } else {
            (self.up, self.velocity, self.rounds) = (upwards, 1.0, 0.0);
        }
        let moved = (self.velocity / self.delta * turns).min(self.window * turns.min(1.0));
        self.window = if upwards { self.window + moved } else { (self.window - moved).max(2.0) };
        let room = capacity * path.rtt_min;
        self.queueing = (self.window - room).max(0.0) / capacity;
        let sent = self.window / (path.rtt_min + self.queueing) * length;
        self.delivered += sent;
        self.waited += sent * (path.rtt_min + self.queueing);
    }

    /// What it got within so many seconds.
    fn point(&self, time: f64, rtt_min: f64) -> Point {
        Point {
            throughput: self.delivered / time.max(1e-9),
            delay: if self.delivered > 0.0 { self.waited / self.delivered } else { rtt_min },
            loss: 0.0,
        }
    }
}

/// What all twins of a path have in common.
struct Facts {
    /// In seconds.
    rtt_min: f64,
    jitter: f64,
    velocity_max: f64,
}

/// Replays the path's steps with each δ. Losses are not the twin's to tell.
///
/// All of them take a step before any takes the next: each waits for the divisions of its own last
/// step, and the processor does those of the others meanwhile.
pub(super) fn replay<const N: usize>(
    path: &Path,
    deltas: [f64; N],
    velocity_max: f64,
) -> [Point; N] {
    let steps = path.steps();
    let count = steps.len() as f64;
    let facts = Facts { rtt_min: path.rtt_min.max(1e-4), jitter: path.jitter, velocity_max };
    let mean = steps.clone().map(|s| s.capacity).sum::<f64>() / count.max(1.0);
    let stretch =
        |capacity: f64| (mean + VARIATION * (capacity - mean)).max(0.1 * capacity).max(1.0);
    let Some(first) = steps.clone().next() else { return [Point::default(); N] };
    let mut twins = deltas.map(|delta| Twin::new(delta, first.capacity, facts.rtt_min));
    let mut time = 0.0;
    for step in steps {
        let capacity = stretch(step.capacity);
        for twin in &mut twins {
            twin.step(step.length, capacity, &facts);
        }
        time += step.length;
    }
    twins.map(|twin| twin.point(time, facts.rtt_min))
}

#[cfg(test)]
mod tests {
    use trimtab_units::Time;

    use super::*;
    use crate::tune::tests::{Link, report, steady};

    /// A path of 20 ms whose capacity in packets per second is that of each of 96 reports.
    fn path(capacity: impl Fn(u32) -> f64) -> Path {
        let mut path = Path::new();
        for k in 0..96 {
            let link = Link { packets_per_s: capacity(k), queue_packets: 20.0, ..steady(1.0) };
            path.on_report(&report(Time::ZERO, link), 0.1);
        }
        path
    }

    fn varying(k: u32) -> f64 {
        if (k / 4).is_multiple_of(2) { 1_500.0 } else { 500.0 }
    }

    /// Copa §3: a lone flow keeps 1.25/δ packets waiting, and its link busy.
    #[test]
    fn on_a_steady_link_the_queue_is_copa_s() {
        let path = path(|_| 1_000.0);
        for delta in [0.04, 0.1, 0.25] {
            let [point] = replay(&path, [delta], 2.0);
            assert!((point.throughput / 1_000.0 - 1.0).abs() < 0.03, "{delta}: {point:?}");
            let queue = (point.delay - 0.020) * 1_000.0 * delta;
            assert!((0.7..1.4).contains(&queue), "{delta}: {queue}/δ packets");
            assert_eq!(point.loss, 0.0);
        }
    }

    #[test]
    fn on_a_link_that_varies_a_bolder_flow_gets_more_and_waits_longer() {
        let path = path(varying);
        let [shy, bold] = replay(&path, [0.1, 0.03], 2.0);
        assert!(bold.throughput > 1.05 * shy.throughput, "{bold:?} {shy:?}");
        assert!(bold.delay > 1.2 * shy.delay, "{bold:?} {shy:?}");
        assert!(bold.throughput < 1_000.0, "no more than there is: {bold:?}");
    }

    /// What varies within a step is stretched, so that the twin queues on it.
    #[test]
    fn variation_costs_throughput_and_delay() {
        let (steady, varying) = (path(|_| 1_000.0), path(varying));
        let [steady, varying] = [steady, varying].map(|path| replay(&path, [0.1], 2.0)[0]);
        assert!(varying.throughput < 0.97 * steady.throughput, "{varying:?} {steady:?}");
        assert!(varying.delay > 1.2 * steady.delay, "{varying:?} {steady:?}");
    }

    /// Copa takes jitter for queue, and keeps less.
    #[test]
    fn jitter_shortens_the_queue() {
        let calm = path(|_| 1_000.0);
        let mut jittery = calm.clone();
        jittery.jitter = 0.010;
        let [calm, jittery] = [calm, jittery].map(|path| replay(&path, [0.05], 2.0)[0]);
        assert!(jittery.delay < calm.delay - 0.004, "{jittery:?} {calm:?}");
    }

    /// A capacity that grows fourfold is sooner used up with more velocity.
    #[test]
    fn velocity_finds_new_capacity() {
        let path = path(|k| if k < 48 { 1_000.0 } else { 4_000.0 });
        let [slow, fast] = [1.0, 8.0].map(|most| replay(&path, [0.1], most)[0].throughput);
        assert!(fast > 1.01 * slow, "{fast} {slow}");
    }

    #[test]
    fn of_nothing_known_there_is_no_point() {
        assert_eq!(replay(&Path::new(), [0.1], 2.0), [Point::default()]);
    }
}
