//! How much later than expected frames may come: libwebrtc's jitter estimator.
//!
//! A Kalman filter explains the variation of frame delays by that of frame sizes (the slope is the
//! time that a byte takes); what it does not explain is noise. The estimate is what the largest
//! frame takes more than the mean one, and 2.33 standard deviations of the noise (the 99th
//! percentile) less 30 ms. Constants and steps are those of libwebrtc's `JitterEstimator` and
//! `FrameDelayVariationKalmanFilter`.

use trimtab_units::{Bytes, Duration};

/// Of the mean frame size (`kPhi`), and of the largest one (`kPsi`).
const PHI: f64 = 0.97;
const PSI: f64 = 0.9999;
/// The most samples that the noise is averaged over (`kAlphaCountMax`).
const SAMPLES_MAX: f64 = 400.0;
/// A variation counts up to so many standard deviations of the noise and this
/// (`kDefaultMaxTimestampDeviationInSigmas`): a frame that waited in a queue hardly moves the slope.
const VARIATION: f64 = 3.5;
const VARIATION_PLUS_MS: f64 = 0.5;
/// Deviations of more than so many standard deviations are outliers (`kNumStdDevDelayOutlier`).
const OUTLIER: f64 = 15.0;
/// A frame of so many standard deviations above the mean size is none (`kNumStdDevSizeOutlier`).
const LARGE: f64 = 3.0;
/// Noise to delay (`kNoiseStdDevs`, `kNoiseStdDevOffset`).
const NOISE_DEVIATIONS: f64 = 2.33;
const NOISE_OFFSET_MS: f64 = 30.0;
/// The least estimate, and what is added for the operating system (`OPERATING_SYSTEM_JITTER`).
const JITTER_MIN_MS: f64 = 1.0;
const SYSTEM_JITTER_MS: f64 = 10.0;
/// The largest estimate (`kMaxJitterEstimate`).
const JITTER_MAX_MS: f64 = 10_000.0;
/// Frames with retransmissions from which on the estimate has this share of a round trip more, up to
/// so much (`kNackLimit`, `kRttMult`, `kRttMultAddCap`), and how long they count
/// (`kNackCountTimeout`).
const REPAIRS: u32 = 3;
const REPAIR_ROUNDS: f64 = 0.9;
const REPAIR_MAX: Duration = Duration::from_millis(200);
const REPAIRS_KEPT: Duration = Duration::from_secs(60);
/// Process noise of slope and offset (`kProcessNoiseCov`).
const PROCESS_NOISE: [f64; 2] = [2.5e-10, 1e-10];

/// The estimator of one stream.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    /// Slope in ms per byte, and offset in ms.
    estimate: [f64; 2],
    covariance: [[f64; 2]; 2],
    mean_size: f64,
    size_variance: f64,
    max_size: f64,
    previous_size: Option<f64>,
    noise_mean: f64,
    noise_variance: f64,
    samples: f64,
    repairs: u32,
    repaired_at: Duration,
}

impl Jitter {
    pub(super) fn new() -> Self {
        Self {
            // libwebrtc writes 512 kbit/s in seconds per byte here, where milliseconds are meant.
            estimate: [8.0 / 512e3, 0.0],
            covariance: [[1e-4, 0.0], [0.0, 1e2]],
            mean_size: 500.0,
            size_variance: 100.0,
            max_size: 500.0,
            previous_size: None,
            noise_mean: 0.0,
            noise_variance: 4.0,
            samples: 1.0,
            repairs: 0,
            repaired_at: Duration::ZERO,
        }
    }

    /// A frame was completed `delay_ms` later, compared with the one before it, than captures were
    /// apart. `elapsed` is the media's time.
    pub(super) fn on_frame(&mut self, elapsed: Duration, delay_ms: f64, bytes: Bytes) {
        if elapsed > self.repaired_at + REPAIRS_KEPT {
            self.repairs = 0;
        }
        let size = bytes.as_f64();
        let previous = self.previous_size.replace(size);
        let deviation_of_sizes = libm::sqrt(self.size_variance);
        if size < self.mean_size + 2.0 * deviation_of_sizes {
            self.mean_size = PHI * self.mean_size + (1.0 - PHI) * size;
        }
        let off = size - self.mean_size;
        self.size_variance = (PHI * self.size_variance + (1.0 - PHI) * off * off).max(1.0);
        self.max_size = (PSI * self.max_size).max(size);
        let Some(previous) = previous else { return };
        let change = size - previous;
        let noise = libm::sqrt(self.noise_variance);
        let capped = VARIATION * noise + VARIATION_PLUS_MS;
        let delay_ms = delay_ms.clamp(-capped, capped);
        let most = OUTLIER * noise;
        let deviation = delay_ms - (self.estimate[0] * change + self.estimate[1]);
        if deviation.abs() < most || size > self.mean_size + LARGE * deviation_of_sizes {
            self.learn_noise(deviation);
            // After a large frame the queue drains: nothing is learnt from that.
            if change > -0.25 * self.max_size {
                self.filter(delay_ms, change);
            }
        } else {
            self.learn_noise(most.copysign(deviation));
        }
    }

    /// A frame came by retransmission.
    pub(super) fn on_repaired(&mut self, elapsed: Duration) {
        self.repairs = (self.repairs + 1).min(REPAIRS);
        self.repaired_at = elapsed;
    }

    fn learn_noise(&mut self, deviation: f64) {
        self.samples = (self.samples + 1.0).min(SAMPLES_MAX);
        let keep = (self.samples - 1.0) / self.samples;
        self.noise_mean = keep * self.noise_mean + (1.0 - keep) * deviation;
        let off = deviation - self.noise_mean;
        self.noise_variance = (keep * self.noise_variance + (1.0 - keep) * off * off).max(1.0);
    }

    fn filter(&mut self, delay_ms: f64, change: f64) {
        let Self { estimate, covariance: p, .. } = self;
        p[0][0] += PROCESS_NOISE[0];
        p[1][1] += PROCESS_NOISE[1];
        let innovation = delay_ms - (estimate[0] * change + estimate[1]);
        // The larger the change of size is, the more it tells.
        let spread = 300.0 * libm::exp(-change.abs() / self.max_size) + 1.0;
        let noise = (spread * libm::sqrt(self.noise_variance)).max(1.0);
        let ph = [p[0][0] * change + p[0][1], p[1][0] * change + p[1][1]];
        let total = ph[0] * change + ph[1] + noise;
        let gain = [ph[0] / total, ph[1] / total];
        estimate[0] = (estimate[0] + gain[0] * innovation).max(1e-6);
        estimate[1] += gain[1] * innovation;
        let before = *p;
        p[0][0] = (1.0 - gain[0] * change) * before[0][0] - gain[0] * before[1][0];
        p[0][1] = (1.0 - gain[0] * change) * before[0][1] - gain[0] * before[1][1];
        p[1][0] = (1.0 - gain[1]) * before[1][0] - gain[1] * change * before[0][0];
        p[1][1] = (1.0 - gain[1]) * before[1][1] - gain[1] * change * before[0][1];
    }

    /// How late frames may be. `rtt` is that of a retransmission.
    pub(super) fn delay(&self, rtt: Duration) -> Duration {
        let largest = self.estimate[0] * (self.max_size - self.mean_size);
        let noise = NOISE_DEVIATIONS * libm::sqrt(self.noise_variance) - NOISE_OFFSET_MS;
        let jitter = (largest + noise.max(1.0)).clamp(JITTER_MIN_MS, JITTER_MAX_MS);
        let repaired = self.repairs >= REPAIRS;
        let repair =
            if repaired { rtt.mul_f64(REPAIR_ROUNDS).min(REPAIR_MAX) } else { Duration::ZERO };
        Duration::from_millis_f64(jitter + SYSTEM_JITTER_MS) + repair
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 5000 B, each tenth of 15000, over a path of so many ms per kB.
    fn run(per_kb: f64, noise: impl Fn(u64) -> f64) -> Jitter {
        let mut jitter = Jitter::new();
        let size = |i: u64| if i.is_multiple_of(10) { 15_000.0 } else { 5_000.0 };
        let delay = |i: u64| size(i) / 1000.0 * per_kb + noise(i);
        for i in 1..2000u64 {
            let variation = delay(i) - delay(i - 1);
            let elapsed = Duration::from_millis(33 * i);
            jitter.on_frame(elapsed, variation, Bytes::from_f64(size(i)));
        }
        jitter
    }

    #[test]
    fn large_frames_are_waited_for() {
        // 4 Mbit/s is 2 ms per kB: the large frame takes 20 ms more than the small one, and some
        // 18 ms more than the mean one; 1 ms of noise and 10 ms for the system come on top.
        let noisy = |i: u64| if i * 7919 % 13 < 6 { 6.0 } else { -6.0 };
        let delay = run(2.0, noisy).delay(Duration::ZERO).as_millis_f64();
        assert!((26.0..33.0).contains(&delay), "{delay}");
        // Without noise 20 ms count as 3.5 times the least deviation of 1 ms, and 0.5 ms.
        let delay = run(2.0, |_| 0.0).delay(Duration::ZERO).as_millis_f64();
        assert!((14.0..16.0).contains(&delay), "{delay}");
        let fast = run(0.2, |_| 0.0).delay(Duration::ZERO).as_millis_f64();
        assert!(fast < 16.0, "{fast}");
    }

    #[test]
    fn noise_is_waited_for_up_to_its_99th_percentile() {
        // ±30 ms: the variation's standard deviation is 42 ms where they are independent, and 60 ms
        // where they take turns.
        let noisy = run(0.2, |i| if i * 7919 % 13 < 6 { 30.0 } else { -30.0 });
        let delay = noisy.delay(Duration::ZERO).as_millis_f64();
        assert!((55.0..140.0).contains(&delay), "2.33·42 − 30 + 10 to that of 60: {delay}");
    }

    #[test]
    fn retransmissions_are_waited_for_after_three() {
        let mut jitter = run(0.2, |_| 0.0);
        let rtt = Duration::from_millis(80);
        let before = jitter.delay(rtt);
        (0..3).for_each(|_| jitter.on_repaired(Duration::from_secs(66)));
        assert_eq!(jitter.delay(rtt), before + rtt * 9 / 10);
        assert_eq!(jitter.delay(rtt * 10), before + Duration::from_millis(200));
        jitter.on_frame(Duration::from_secs(127), 0.0, Bytes::new(5000));
        assert!(jitter.delay(rtt) < before + rtt / 2, "a minute later no more");
    }
}
