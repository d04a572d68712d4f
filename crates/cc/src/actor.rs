//! What Orca and Astraea have in common: the reports of a patched Linux, and a network that answers
//! the last of them with a number.
//!
//! Read first: `tcp_deepcc.c` of Orca's patch of Linux 4.13 (`linux/` of `Soheil-ab/Orca`). Astraea
//! runs on the same file. The kernel has whole microseconds and packets; numbers here are real.

use core::fmt;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::{Ack, Loss, Timeout};

/// What a packet has on the wire over what it has for TCP. The kernel paces the first and counts the
/// second, and networks saw that in training.
const HEADERS: f64 = 1500.0 / 1448.0;

/// What decides.
pub trait Actor: fmt::Debug + Send + Sync {
    /// The action after a history of states, oldest first, from -1 to 1.
    fn act(&self, history: &[f64]) -> f64;
}

/// A state enters a history, and the oldest leaves it.
pub(crate) fn push(history: &mut [f64], state: &[f64]) {
    history.copy_within(state.len().., 0);
    let newest = history.len() - state.len();
    history[newest..].copy_from_slice(state);
}

/// A mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    samples: u32,
}

impl Mean {
    fn add(&mut self, sample: f64) {
        self.sum += sample;
        self.samples += 1;
    }

    fn get(self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / f64::from(self.samples))
    }
}

/// What is reported of an interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// How long it was, in s.
    pub(crate) elapsed: f64,
    /// Acknowledgements with a round-trip time.
    pub(crate) samples: u32,
    /// Mean round-trip time, in s.
    pub(crate) rtt: Option<f64>,
    /// Mean delivery rate, in bytes per second.
    pub(crate) rate: Option<f64>,
    /// The highest of these of all intervals so far, 0 before the first.
    pub(crate) most: f64,
    /// Bytes lost per second.
    pub(crate) loss: f64,
    /// Pacing rate in bytes per second, headers included.
    pub(crate) pacing: f64,
    /// Smoothed and least round-trip time, in s; 0 before the first.
    pub(crate) srtt: f64,
    pub(crate) min_rtt: f64,
    /// In flight at its end.
    pub(crate) inflight: Bytes,
    /// The application left the window unused.
    pub(crate) unused: bool,
}

impl Report {
    /// A rate over the highest one, 0 before that is known.
    pub(crate) fn share(&self, rate: f64) -> f64 {
        if self.most > 0.0 { rate / self.most } else { 0.0 }
    }
}

/// Gathers reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    began: Option<Time>,
    rtt: Mean,
    rate: Mean,
    most: f64,
    lost: Bytes,
    pacing: Option<Rate>,
    srtt: Duration,
    min_rtt: Duration,
    inflight: Bytes,
    unused: bool,
}

impl Monitor {
    /// An interval begins. What was not reported is forgotten.
    pub(crate) fn begin(&mut self, now: Time) {
        self.began = Some(now);
        (self.rtt, self.rate, self.lost, self.unused) = Default::default();
    }

    /// An interval begins, unless one is running.
    pub(crate) fn begin_first(&mut self, now: Time) {
        if self.began.is_none() {
            self.begin(now);
        }
    }

    /// Whether the interval is over.
    pub(crate) fn is_over(&self, now: Time, length: Duration) -> bool {
        self.began.is_some_and(|began| now.since(began) >= length)
    }

    /// Whether there is a round-trip time to report.
    pub(crate) fn has_samples(&self) -> bool {
        self.rtt.samples > 0
    }

    /// Whether the application left the window unused.
    pub(crate) fn is_unused(&self) -> bool {
        self.unused
    }

    /// The report of the interval; the next one begins.
    pub(crate) fn report(&mut self, now: Time) -> Report {
        let elapsed = now.since(self.began.unwrap_or(now)).as_secs_f64().max(1e-6);
        let rate = self.rate.get();
        self.most = self.most.max(rate.unwrap_or_default());
        let pacing = self.pacing.map_or(0.0, |rate| rate.bytes_per_sec() as f64);
        let report = Report {
            elapsed,
            samples: self.rtt.samples,
            rtt: self.rtt.get(),
            rate,
            most: self.most,
            loss: self.lost.as_f64() / elapsed,
            pacing: HEADERS * pacing,
            srtt: self.srtt.as_secs_f64(),
            min_rtt: self.min_rtt.as_secs_f64(),
            inflight: self.inflight,
            unused: self.unused,
        };
        self.begin(now);
        report
    }

    /// A packet leaves.
    pub(crate) fn on_sent(&mut self, inflight: Bytes, app_limited: bool) {
        self.inflight = inflight;
        self.unused |= app_limited;
    }

    /// `deepcc_pkts_acked()` and `deepcc_get_rate_sample()`.
    pub(crate) fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt.add(rtt.as_secs_f64());
        }
        if let Some(sample) = &ack.rate {
            self.rate.add(sample.rate().bytes_per_sec() as f64);
        }
        (self.srtt, self.min_rtt, self.inflight) = (ack.srtt, ack.min_rtt, ack.inflight);
    }

    /// `deepcc_update_pacing_rate()`: what is in flight, or the window where that is more, within a
    /// round trip.
    pub(crate) fn pace(&mut self, window: Bytes) {
        if !self.srtt.is_zero() {
            self.pacing = Some(window.max(self.inflight) / self.srtt);
        }
    }

    /// Packets were lost.
    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.lost;
        self.inflight = loss.inflight;
    }

    /// What was in flight counts as lost (Linux `tcp_enter_loss()`).
    pub(crate) fn on_timeout(&mut self, timeout: &Timeout) {
        self.lost += timeout.prior_inflight - timeout.inflight;
        self.inflight = timeout.inflight;
    }

    /// A connection that goes on with this window and round-trip time.
    pub(crate) fn inherit(&mut self, window: Bytes, srtt: Duration) {
        *self = Self { srtt, min_rtt: srtt, ..Self::default() };
        self.pace(window);
    }

    /// The rate to pace at; none before a round-trip time is known.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSample;
    use crate::testing::link::MSS;
    use crate::testing::{acked, lost, timed_out};

    fn ack(now_ms: u64, rtt_ms: u64, delivered: u64) -> Ack {
        let (now, rtt) = (Time::from_millis(now_ms), Duration::from_millis(rtt_ms));
        let sample = RateSample {
            delivered: Bytes::new(delivered),
            interval: Duration::from_millis(10),
            prior_delivered: Bytes::ZERO,
            app_limited: false,
            tx_in_flight: MSS,
            lost: Bytes::ZERO,
        };
        let inflight = MSS * 4;
        Ack { rate: Some(sample), inflight, ..acked(now, now - rtt, MSS, rtt) }
    }

    /// Means over acknowledgements, the highest mean rate so far, and losses per time.
    #[test]
    fn a_report_has_what_the_kernels_has() {
        let mut monitor = Monitor::default();
        monitor.begin(Time::from_millis(100));
        monitor.on_ack(&ack(105, 20, 10_000));
        monitor.on_ack(&ack(110, 40, 30_000));
        monitor.pace(MSS * 10);
        monitor.on_loss(&lost(Time::from_millis(112), Time::from_millis(90)));
        assert!(!monitor.is_over(Time::from_millis(119), Duration::from_millis(20)));
        assert!(monitor.is_over(Time::from_millis(120), Duration::from_millis(20)));
        let report = monitor.report(Time::from_millis(120));
        assert_eq!((report.samples, report.rtt, report.rate), (2, Some(0.03), Some(2_000_000.0)));
        assert_eq!((report.most, report.loss), (2_000_000.0, 75_000.0));
        let paced = (MSS * 10 / Duration::from_millis(40)).bytes_per_sec() as f64;
        assert!((report.pacing / paced - HEADERS).abs() < 1e-9, "{report:?}");
        monitor.on_ack(&ack(130, 20, 10_000));
        let report = monitor.report(Time::from_millis(140));
        assert_eq!((report.rate, report.most, report.loss), (Some(1e6), 2e6, 0.0));
        assert_eq!(report.share(report.rate.unwrap()), 0.5);
        let empty = monitor.report(Time::from_millis(160));
        assert_eq!((empty.samples, empty.rtt, empty.rate), (0, None, None));
    }

    /// Linux marks everything in flight as lost.
    #[test]
    fn a_timeout_loses_what_was_in_flight() {
        let mut monitor = Monitor::default();
        monitor.begin(Time::from_millis(100));
        let timeout = Timeout { prior_inflight: MSS * 8, ..timed_out(Time::from_millis(200)) };
        monitor.on_timeout(&timeout);
        let report = monitor.report(Time::from_millis(1100));
        assert_eq!((report.loss, report.inflight), ((MSS * 8).as_f64(), Bytes::ZERO));
    }

    #[test]
    fn a_history_forgets_its_oldest_state() {
        let mut history = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        push(&mut history, &[7.0, 8.0]);
        assert_eq!(history, [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    }
}
