//! When audio is heard, after libwebrtc's NetEq (`DelayManager`, `Histogram`): so late that 97 of
//! 100 packets are in time.

use std::collections::VecDeque;

use trimtab_units::{Duration, Time};

/// Length of a frame of audio, and of a bucket (`kBucketSizeMs`).
pub(super) const FRAME: Duration = Duration::from_millis(20);
/// Buckets (`kDelayBuckets`).
const BUCKETS: usize = 100;
/// The share of packets that the delay is to suffice for (`quantile`).
const QUANTILE: f64 = 0.97;
/// What remains of a packet's weight with the next (`forget_factor`).
const FORGET: f64 = 0.983;
/// The delay at the start (`kStartDelayMs`).
const START: Duration = Duration::from_millis(80);
/// Packets over which the shortest delay is looked for (two seconds, `kMaxHistoryMs`).
const HISTORY: usize = 100;

/// The playout of audio.
#[derive(Clone, Debug)]
pub(super) struct Sound {
    recent: VecDeque<Duration>,
    histogram: [f64; BUCKETS],
    delay: Duration,
}

impl Sound {
    pub(super) fn new() -> Self {
        Self { recent: VecDeque::new(), histogram: [0.0; BUCKETS], delay: START }
    }

    /// A frame arrived. When it is heard; `None` if that is past.
    pub(super) fn play(&mut self, now: Time, captured_at: Time) -> Option<Time> {
        let took = now.since(captured_at);
        self.recent.push_back(took);
        if self.recent.len() > HISTORY {
            self.recent.pop_front();
        }
        let least = self.recent.iter().fold(took, |least, &took| least.min(took));
        let at = captured_at + least + self.delay;
        let bucket = ((took - least).as_nanos() / FRAME.as_nanos()) as usize;
        self.histogram.iter_mut().for_each(|weight| *weight *= FORGET);
        self.histogram[bucket.min(BUCKETS - 1)] += 1.0 - FORGET;
        let enough = self.histogram.iter().sum::<f64>() * QUANTILE;
        let mut sum = 0.0;
        let reached = self.histogram.iter().position(|weight| {
            sum += weight;
            sum >= enough
        });
        self.delay = FRAME * (reached.unwrap_or(0) as u64 + 1);
        (at >= now).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_in_time(late: impl Fn(u64) -> u64) -> f64 {
        let mut sound = Sound::new();
        let frames = 1000;
        let heard = (0..frames).filter(|&i| {
            let captured_at = Time::from_millis(20 * i);
            let now = captured_at + Duration::from_millis(30 + late(i));
            sound.play(now, captured_at).is_some()
        });
        heard.count() as f64 / frames as f64
    }

    #[test]
    fn nearly_all_of_a_jittery_path_is_in_time() {
        assert_eq!(share_in_time(|_| 0), 1.0);
        assert!(share_in_time(|i| i * 7919 % 90) > 0.95);
        // One in 50 is 400 ms late: too few to wait for.
        let rare = share_in_time(|i| if i % 50 == 49 { 400 } else { 0 });
        assert!((0.97..0.99).contains(&rare), "{rare}");
    }
}
