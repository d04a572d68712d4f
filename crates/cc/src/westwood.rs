//! Westwood+: as Reno, but after a loss the window is what the path was measured to carry, so random
//! loss does not halve it. A congestion mark (ECN) is no random loss, so it does: RFC 3168 §6.1.2, where Linux
//! takes the measure too, which at 1% of marked packets gives it nearly three times what CUBIC gets.
//!
//! Read first: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and
//! Vegas TCP congestion control" (2004); constants as in Linux's `net/ipv4/tcp_westwood.c`.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::episode::Episode;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};
use crate::window::{Window, repair_methods, window_methods};
use crate::{Ack, Algorithm, Config, CongestionControl, Idle, Knob, Loss, Marked, Timeout};

/// The rate is sampled over one round-trip time, but this at least (tcp_westwood.c
/// `TCP_WESTWOOD_RTT_MIN`).
const SAMPLE_MIN: Duration = Duration::from_millis(50);

/// Its entry in the table of all algorithms.
pub(crate) const ENTRY: Algorithm = Algorithm {
    name: "westwood",
    about: "as newreno, but a loss leaves the window that the path was measured to carry",
    source: "Grieco and Mascolo, 2004 (Westwood+); Linux tcp_westwood.c",
    knobs: Westwood::KNOBS,
    presets: &[],
    build: |config| Westwood::new(config).into(),
};

/// The Westwood+ state machine: that of `NewReno` with another window after losses.
#[derive(Clone, Debug)]
pub struct Westwood {
    window: Window,
    episode: Episode,
    bandwidth: Bandwidth,
    /// Start of the present sample and what was acknowledged in it.
    sample_start: Option<Time>,
    sample_acked: Bytes,
    rtt_min: Duration,
    /// After a timeout the path may be another: the next round-trip time is the least.
    rtt_min_stale: bool,
}

/// Two low-pass filters in a row, in bytes per second (tcp_westwood.c `westwood_filter()`).
#[derive(Clone, Copy, Debug, Default)]
struct Bandwidth {
    first: f64,
    estimate: f64,
}

impl Bandwidth {
    fn add(&mut self, sample: f64) {
        if self.first == 0.0 && self.estimate == 0.0 {
            *self = Self { first: sample, estimate: sample };
        } else {
            // tcp_westwood.c `westwood_do_filter()`.
            self.first = (7.0 * self.first + sample) / 8.0;
            self.estimate = (7.0 * self.estimate + self.first) / 8.0;
        }
    }
}

impl Westwood {
    /// No knobs.
    pub const KNOBS: &'static [Knob] = &[];

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        Self {
            window: Window::new(config),
            episode: Episode::default(),
            bandwidth: Bandwidth::default(),
            sample_start: None,
            sample_acked: Bytes::ZERO,
            rtt_min: Duration::MAX,
            rtt_min_stale: false,
        }
    }

    /// tcp_westwood.c `westwood_update_window()`.
    fn measure(&mut self, ack: &Ack) {
        let Some(start) = self.sample_start else {
            self.sample_start = Some(ack.now);
            return;
        };
        self.sample_acked += ack.acked;
        let elapsed = ack.now - start;
        if elapsed > ack.rtt.unwrap_or(ack.srtt).max(SAMPLE_MIN) {
            self.bandwidth.add(self.sample_acked.as_f64() / elapsed.as_secs_f64());
            self.sample_start = Some(ack.now);
            self.sample_acked = Bytes::ZERO;
        }
    }

    /// What the path carries with an empty queue (tcp_westwood.c `tcp_westwood_bw_rttmin()`); half
    /// the window before anything is measured.
    fn carried(&self) -> Bytes {
        if self.bandwidth.estimate > 0.0 && self.rtt_min != Duration::MAX {
            Bytes::from_f64(self.bandwidth.estimate * self.rtt_min.as_secs_f64())
        } else {
            self.window.size / 2
        }
    }
}

impl CongestionControl for Westwood {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = if self.rtt_min_stale { rtt } else { self.rtt_min.min(rtt) };
            self.rtt_min_stale = false;
        }
        self.measure(ack);
        if !self.episode.on_ack(ack) && ack.cwnd_limited {
            self.window.grow_reno(ack.acked);
        }
    }

    /// Linux raises the window to what the path carries where it is below; a loss is no reason for
    /// more (RFC 5681 §3.1).
    fn on_loss(&mut self, loss: &Loss) {
        if self.episode.on_loss(loss) {
            self.window.reduce(self.carried().min(self.window.size));
        }
    }

    /// RFC 3168 §6.1.2; see above.
    fn on_marked(&mut self, marked: &Marked) {
        if self.episode.opens(marked.now, marked.newest_sent_at) {
            self.window.reduce(self.carried().min(self.window.size / 2));
        }
    }

    /// tcp_westwood.c `tcp_westwood_event()`, `CA_EVENT_LOSS`.
    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        self.window.collapse(new.then(|| self.carried()));
        self.rtt_min_stale = true;
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
        self.sample_start = None; // the pause is no measure of the path
        self.sample_acked = Bytes::ZERO;
    }

    window_methods!(self);

    repair_methods!(self);
}

impl Migrate for Westwood {
    /// Its own bandwidth is an average, so the connection's maximum goes before it.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let estimate = self.bandwidth.estimate;
        OperatingPoint {
            bandwidth: (estimate > 0.0).then(|| Rate::from_bytes_per_sec_f64(estimate)),
            ..OperatingPoint::of_cut_window(self.window.size, path)
        }
    }

    fn take_over(&mut self, from: &HandOver) {
        self.episode = Episode::default();
        self.window.take_over(from.window);
        let bandwidth = from.bandwidth.bytes_per_sec() as f64;
        self.bandwidth = Bandwidth { first: bandwidth, estimate: bandwidth };
        self.sample_start = Some(from.now);
        self.sample_acked = Bytes::ZERO;
        (self.rtt_min, self.rtt_min_stale) = (from.min_rtt, false);
    }

    fn inherit(&mut self, window: Bytes, _srtt: Duration) {
        self.window.set(window);
    }

    /// The losses of the jump stay those of one episode. Its average knows little yet, so what was
    /// validated goes before it.
    fn retreat(&mut self, from: &HandOver, ssthresh: Bytes) {
        self.window.retreat(from.window, ssthresh);
        let bandwidth = from.bandwidth.bytes_per_sec() as f64;
        self.bandwidth = Bandwidth { first: bandwidth, estimate: bandwidth };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;
    use crate::testing::link::MSS;
    use crate::testing::{acked, lost, timed_out};

    /// expected.md W1 and W3.
    #[test]
    fn filters_in_a_row() {
        let mut b = Bandwidth::default();
        b.add(100.0);
        assert_eq!((b.first, b.estimate), (100.0, 100.0), "W3");
        for (first, estimate) in [
            (112.5, 101.5625),
            (123.4375, 104.2969),
            (133.0078, 107.8857),
            (141.3818, 112.0728),
            (148.7091, 116.6523),
        ] {
            b.add(200.0);
            assert!((b.first - first).abs() < 1e-4 && (b.estimate - estimate).abs() < 1e-4);
        }
    }

    /// A flow at 12 Mbit/s (a packet each ms) and 20 ms for two seconds.
    fn measured() -> (Westwood, Time) {
        let mut westwood = Westwood::new(&Config::with_mss(MSS, 0));
        let mut now = Time::ZERO;
        for _ in 0..2000 {
            now += Duration::from_millis(1);
            let sent = now - Duration::from_millis(20);
            westwood.on_ack(&acked(now, sent, MSS, Duration::from_millis(20)));
        }
        (westwood, now)
    }

    /// expected.md W2.
    #[test]
    fn a_loss_leaves_what_the_path_carries() {
        let (mut westwood, now) = measured();
        assert!(westwood.window() > MSS * 100);
        westwood.on_loss(&lost(now, now));
        assert_eq!(westwood.window(), MSS * 20);
        assert_eq!(westwood.phase(), Phase::Recovery);
    }

    /// Here the window is a quarter of what the path carries, after a timeout.
    #[test]
    fn a_loss_never_raises_the_window() {
        let (mut westwood, now) = measured();
        westwood.on_timeout(&timed_out(now));
        let later = now + Duration::from_millis(20);
        westwood.on_ack(&acked(later, now, MSS * 3, Duration::from_millis(20)));
        assert_eq!(westwood.window(), MSS * 5);
        westwood.on_loss(&lost(later, later));
        assert_eq!((westwood.window(), westwood.ssthresh()), (MSS * 5, Some(MSS * 5)));
    }

    #[test]
    fn a_timeout_leaves_it_as_the_threshold_and_forgets_the_least_rtt() {
        let (mut westwood, now) = measured();
        westwood.on_timeout(&timed_out(now));
        assert_eq!((westwood.window(), westwood.ssthresh()), (MSS * 2, Some(MSS * 20)));
        let longer = Duration::from_millis(40);
        westwood.on_ack(&acked(now + longer, now, MSS, longer));
        assert_eq!(westwood.rtt_min, longer);
    }

    #[test]
    fn before_any_measure_a_loss_halves() {
        let mut westwood = Westwood::new(&Config::with_mss(MSS, 0));
        westwood.on_loss(&lost(Time::ZERO, Time::ZERO));
        assert_eq!(westwood.window(), MSS * 5);
    }

    /// migration.md E-6: with what the connection measured, a loss leaves what the path carries; a
    /// part switch, which measured nothing, halves.
    #[test]
    fn a_loss_after_a_hand_over_leaves_what_the_path_carries() {
        let srtt = Duration::from_micros(37_500);
        let loss = lost(Time::from_secs(31), Time::from_secs(31));
        let mut westwood = Westwood::new(&Config::with_mss(MSS, 0));
        westwood.take_over(&crate::testing::hand_over(MSS * 150, srtt));
        assert!(westwood.is_converged());
        assert_eq!((westwood.bandwidth.first, westwood.bandwidth.estimate), (6e6, 6e6));
        westwood.on_loss(&loss);
        assert_eq!((westwood.window(), westwood.ssthresh()), (MSS * 80, Some(MSS * 80)));
        let mut part = Westwood::new(&Config::with_mss(MSS, 0));
        part.inherit(MSS * 150, srtt);
        assert_eq!((part.phase(), part.ssthresh()), (Phase::SlowStart, None));
    }

    use proptest::prelude::*;

    /// tcp_westwood.c `westwood_update_window()`: a sample spans a round trip, and 50 ms at least.
    #[test]
    fn a_sample_spans_a_round_trip_and_fifty_milliseconds() {
        let ms = Duration::from_millis;
        for (rtt, want) in [(20, 51), (50, 51), (80, 81)] {
            let mut westwood = Westwood::new(&Config::with_mss(MSS, 0));
            let start = Time::from_millis(1000);
            let sampled = (0..200).find(|i| {
                let now = start + ms(*i);
                westwood.on_ack(&acked(now, now - ms(rtt), MSS, ms(rtt)));
                westwood.bandwidth.estimate > 0.0
            });
            assert_eq!(sampled, Some(want), "{rtt} ms");
            // A packet per millisecond: what opened the sample does not count.
            assert!((westwood.bandwidth.estimate - 1.5e6).abs() < 1.0);
        }
    }

    /// The bandwidth is what arrived, not what was sent: a pause is no part of a sample.
    #[test]
    fn a_pause_is_no_measure_of_the_path() {
        let ms = Duration::from_millis;
        let (mut westwood, now) = measured();
        let before = westwood.bandwidth.estimate;
        let later = now + ms(10_000);
        westwood.on_idle(&Idle { now: later, idle: ms(10_000), rto: ms(200) });
        for i in 0..300 {
            let at = later + ms(i);
            westwood.on_ack(&acked(at, at - ms(20), MSS, ms(20)));
        }
        assert!((westwood.bandwidth.estimate / before - 1.0).abs() < 1e-6);
    }

    /// RFC 3168 §6.1.2: a mark halves at least, where a loss takes what the path carries.
    #[test]
    fn a_mark_halves_where_a_loss_does_not() {
        let (mut westwood, now) = measured();
        westwood.window.set(MSS * 24);
        let mut lossy = westwood.clone();
        lossy.on_loss(&lost(now, now));
        assert_eq!(lossy.window(), MSS * 20);
        let (inflight, prior_inflight) = (MSS * 24, MSS * 24);
        let marked = Marked { now, newest_sent_at: now, inflight, prior_inflight };
        westwood.on_marked(&marked);
        assert_eq!((westwood.window(), westwood.phase()), (MSS * 12, Phase::Recovery));
        westwood.on_marked(&marked);
        assert_eq!(westwood.window(), MSS * 12, "once in a round trip");
        westwood.on_spurious_loss(now);
        assert_eq!(westwood.window(), MSS * 24);
        westwood.window.set(MSS * 100);
        let later = now + Duration::from_millis(1);
        westwood.on_marked(&Marked { now: later, newest_sent_at: later, ..marked });
        assert_eq!(westwood.window(), MSS * 20, "what the path carries is less than half");
    }

    proptest! {
        /// Grieco and Mascolo: two low-pass filters with a gain of 1/8. The estimate stays within
        /// what was sampled, and comes to rest at a sample that stays.
        #[test]
        fn the_estimate_stays_within_its_samples(
            samples in prop::collection::vec(1.0f64..1e9, 1..60),
            last in 1.0f64..1e9,
        ) {
            let mut bandwidth = Bandwidth::default();
            let (mut least, mut most) = (f64::MAX, 0.0f64);
            for sample in samples {
                (least, most) = (least.min(sample), most.max(sample));
                bandwidth.add(sample);
                prop_assert!(bandwidth.estimate >= least * (1.0 - 1e-9));
                prop_assert!(bandwidth.estimate <= most * (1.0 + 1e-9));
            }
            for _ in 0..400 {
                bandwidth.add(last);
            }
            prop_assert!((bandwidth.estimate / last - 1.0).abs() < 1e-6);
        }
    }
}
