//! The bitrate that arrives: samples over 150 ms, weighted by how far they are from what was
//! expected (libwebrtc `bitrate_estimator.cc`, `acknowledged_bitrate_estimator.cc`).

use trimtab_units::{Bytes, Duration, Rate, Time};

/// Length of the first sample (`kInitialRateWindowMs`), and of the others (`kRateWindowMs`).
const FIRST_WINDOW: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_millis(150);
/// Variance of the estimate at first, and what each sample adds, in (kbit/s)² as libwebrtc has it.
const VARIANCE: f64 = 50.0;
const VARIANCE_MORE: f64 = 5.0;
/// What the end of an application-limited region adds (`ExpectFastRateChange()`).
const VARIANCE_CHANGE: f64 = 200.0;
/// Uncertainty of a sample by its relative distance (`uncertainty_scale_`).
const UNCERTAINTY: f64 = 10.0;

/// The estimate.
#[derive(Clone, Debug)]
pub(super) struct Acked {
    sum: Bytes,
    /// How much of the window has passed.
    window: Duration,
    last: Option<Time>,
    kbps: Option<f64>,
    variance: f64,
}

impl Default for Acked {
    fn default() -> Self {
        let (sum, window) = (Bytes::ZERO, Duration::ZERO);
        Self { sum, window, last: None, kbps: None, variance: VARIANCE }
    }
}

impl Acked {
    /// `None` in the first half second.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.kbps.map(|kbps| Rate::from_mbps(kbps * 1e-3))
    }

    /// `ExpectFastRateChange()`.
    pub(super) fn expect_change(&mut self) {
        self.variance += VARIANCE_CHANGE;
    }

    /// What arrives is known by other means.
    pub(super) fn assume(&mut self, rate: Rate) {
        self.kbps = Some(rate.mbps() * 1e3);
    }

    /// A packet arrived (`Update()`). Libwebrtc sorts a feedback's packets by arrival and begins
    /// anew when time runs backward; here a packet that was overtaken counts as arrived with the
    /// newest.
    pub(super) fn add(&mut self, arrival: Time, bytes: Bytes) {
        let Some(sample) = self.sample(arrival, bytes) else { return };
        let Some(estimate) = self.kbps else {
            self.kbps = Some(sample);
            return;
        };
        let uncertainty = UNCERTAINTY * (estimate - sample).abs() / estimate.max(1e-9);
        let noise = uncertainty * uncertainty;
        let predicted = self.variance + VARIANCE_MORE;
        self.kbps = Some((noise * estimate + predicted * sample) / (noise + predicted));
        self.variance = noise * predicted / (noise + predicted);
    }

    /// The window's bitrate in kbit/s, where this packet ends one (`UpdateWindow()`).
    fn sample(&mut self, arrival: Time, bytes: Bytes) -> Option<f64> {
        let length = if self.kbps.is_none() { FIRST_WINDOW } else { WINDOW };
        let last = self.last.unwrap_or(arrival);
        let passed = arrival.since(last);
        self.last = Some(arrival.max(last));
        self.window += passed;
        if passed > length {
            // Nothing for a whole window: what came before it is of another time.
            self.sum = Bytes::ZERO;
            self.window = Duration::from_nanos(self.window.as_nanos() % length.as_nanos());
        }
        let mut sample = None;
        if self.window >= length {
            sample = Some(self.sum.bits() * 1e-3 / length.as_secs_f64());
            self.window -= length;
            self.sum = Bytes::ZERO;
        }
        self.sum += bytes;
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1250 bytes every 10 ms are 1 Mbit/s: known after half a second, and after 150 ms
    /// windows of 2 Mbit/s within a second.
    #[test]
    fn the_rate_that_arrives_is_known_after_half_a_second() {
        let (mut acked, packet) = (Acked::default(), Bytes::new(1250));
        let feed = |acked: &mut Acked, from: u64, to: u64, gap: u64| {
            for ms in (from..to).step_by(gap as usize) {
                acked.add(Time::from_millis(ms), packet);
            }
        };
        feed(&mut acked, 0, 500, 10);
        assert_eq!(acked.rate(), None);
        feed(&mut acked, 500, 3000, 10);
        let rate = acked.rate().expect("a rate");
        assert!((rate.mbps() - 1.0).abs() < 0.07, "{rate}");
        feed(&mut acked, 3000, 4000, 5);
        let rate = acked.rate().expect("a rate");
        assert!((rate.mbps() - 2.0).abs() < 0.2, "{rate}");
    }

    /// The update of a known sample: 1000 kbit/s expected with variance 50, 1500 seen. The noise is
    /// (10 · 500 / 1000)² = 25, and the estimate (25 · 1000 + 55 · 1500) / 80 = 1343.75.
    #[test]
    fn a_sample_counts_by_its_distance() {
        let mut acked = Acked { kbps: Some(1000.0), ..Acked::default() };
        acked.add(Time::from_millis(0), Bytes::new(28_125));
        acked.add(Time::from_millis(150), Bytes::new(1));
        assert_eq!(acked.rate(), Some(Rate::from_mbps(1.34375)));
        assert!((acked.variance - 25.0 * 55.0 / 80.0).abs() < 1e-9);
    }

    #[test]
    fn a_pause_is_not_a_rate() {
        let mut acked = Acked { kbps: Some(1000.0), ..Acked::default() };
        acked.add(Time::from_millis(0), Bytes::new(1000));
        acked.add(Time::from_millis(10_000), Bytes::new(1000));
        assert_eq!(acked.rate(), Some(Rate::from_mbps(1.0)), "the pause is no sample");
    }
}
