//! What a connection knows of its path, whichever algorithm runs.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::filter::{WindowedMaxRate, WindowedMin};
use crate::round::Round;
use crate::{Ack, Discarded, Loss, Marked, Sent, Timeout};

/// How long a round-trip time or a delivery rate counts.
const WINDOW: Duration = Duration::from_secs(10);
/// And a delivery rate for so many round trips at least.
const ROUNDS: u64 = 10;
/// A recent delivery rate is of so many round trips at least, and of twice as many at most: BBR's own
/// filter has ten (Linux `bbr_bw_rtts`).
const RECENT_ROUNDS: u64 = 5;
/// Losses that come at a smoothed round-trip time of less than 9/8 of the least one came without a queue: Floo's
/// smallest buffer of 0.3 bandwidth-delay products makes 1.3 of it when it overflows, its largest jitter of a fifth
/// 1.1 on the mean.
const QUEUE: (u64, u64) = (9, 8);
/// A round-trip time is at least this: rates stay finite on a link without delay.
const RTT_FLOOR: Duration = Duration::from_micros(1);

/// Filters at the connection's level, because not every algorithm has them (Floo §3.4): fed by the
/// same events as the algorithm, before it. What is older than its window stays until something newer
/// is known: after a pause it is the best guess.
#[derive(Clone, Debug)]
pub struct PathView {
    min_rtt: WindowedMin,
    bandwidth: WindowedMaxRate,
    recent: Recent,
    /// Lowest round-trip time of the connection's life.
    least_rtt: Duration,
    srtt: Duration,
    inflight: Bytes,
    delivered: Bytes,
    in_recovery: bool,
    /// When a mark was last answered, until something that was sent since arrives.
    marked_at: Option<Time>,
    lost_without_queue: bool,
    round: Round,
    /// Lost and acknowledged bytes of the last round trip and of this one.
    tally: [(Bytes, Bytes); 2],
}

impl PathView {
    /// Of a new connection.
    pub fn new() -> Self {
        Self {
            min_rtt: WindowedMin::new(),
            bandwidth: WindowedMaxRate::new(),
            recent: Recent::default(),
            least_rtt: Duration::MAX,
            srtt: RTT_FLOOR,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            in_recovery: false,
            marked_at: None,
            lost_without_queue: false,
            round: Round::default(),
            tally: [(Bytes::ZERO, Bytes::ZERO); 2],
        }
    }

    /// A packet left.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.inflight = sent.inflight;
    }

    /// Data was acknowledged.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt.max(RTT_FLOOR);
        self.inflight = ack.inflight;
        self.delivered = ack.delivered;
        self.in_recovery = ack.in_recovery;
        self.marked_at = self.marked_at.filter(|&at| ack.newest_sent_at <= at);
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.max(RTT_FLOOR);
            self.min_rtt.update(ack.now, WINDOW, rtt);
            self.least_rtt = self.least_rtt.min(rtt);
        }
        if let Some(sample) = &ack.rate {
            let rate = sample.rate();
            if !sample.app_limited || rate >= self.recent.get() {
                self.recent.update(ack.now, self.srtt * RECENT_ROUNDS, rate);
            }
            // A slow application says little about the path, unless it beats the estimate.
            if !sample.app_limited || self.bandwidth.get().is_none_or(|known| rate >= known) {
                self.bandwidth.update(ack.now, WINDOW.max(self.srtt * ROUNDS), rate);
            }
        }
        if self.round.ends(ack) {
            self.tally = [self.tally[1], (Bytes::ZERO, Bytes::ZERO)];
        }
        self.tally[1].1 += ack.acked;
    }

    /// Packets were declared lost.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.tally[1].0 += loss.lost;
        self.inflight = loss.inflight;
        self.on_congestion();
    }

    /// The path marked packets. A queue did, wherever it is: a window that is cut for it says what the path carries.
    pub fn on_marked(&mut self, marked: &Marked) {
        self.inflight = marked.inflight;
        if !self.in_recovery() {
            self.lost_without_queue = false;
        }
        let before = self.marked_at.filter(|&at| marked.newest_sent_at <= at);
        self.marked_at = Some(before.unwrap_or(marked.now));
    }

    /// Packets left flight without a signal.
    pub fn on_discarded(&mut self, discarded: &Discarded) {
        self.inflight = discarded.inflight;
    }

    /// Everything in flight was written off.
    pub fn on_timeout(&mut self, timeout: &Timeout) {
        self.inflight = timeout.inflight;
        self.on_congestion();
        self.marked_at = None;
    }

    /// A loss of the first round trip of an episode: a window that is cut for it was as large as it
    /// could be, or was not.
    fn on_congestion(&mut self) {
        if !self.in_recovery()
            && let Some((min_rtt, _)) = self.min_rtt()
        {
            self.lost_without_queue = self.srtt * QUEUE.1 < min_rtt * QUEUE.0;
        }
        self.in_recovery = true;
    }

    /// Another algorithm takes over: what was lost before is not what cuts its window.
    pub(super) fn forget_losses(&mut self) {
        self.lost_without_queue = false;
    }

    /// Lowest round-trip time of the last 10 s, and when it was measured.
    pub fn min_rtt(&self) -> Option<(Duration, Time)> {
        self.min_rtt.get_at()
    }

    /// Highest delivery rate of the last 10 s and 10 round trips, samples that the application limited
    /// left out unless they are higher.
    pub fn bandwidth(&self) -> Option<Rate> {
        self.bandwidth.get()
    }

    /// Highest delivery rate of the last five to ten round trips, by the same rule.
    pub fn recent_bandwidth(&self) -> Option<Rate> {
        Some(self.recent.get()).filter(|rate| !rate.is_zero())
    }

    /// Whether the minimum of the last 10 s is within an eighth of the lowest round-trip time of the
    /// connection's life. Then it is the path's: the queue was gone at some time since.
    pub fn saw_empty_queue(&self) -> bool {
        self.min_rtt.get().is_some_and(|min_rtt| min_rtt * QUEUE.1 <= self.least_rtt * QUEUE.0)
    }

    /// Smoothed round-trip time; a microsecond before the first.
    pub fn srtt(&self) -> Duration {
        self.srtt
    }

    /// Bytes in flight.
    pub fn inflight(&self) -> Bytes {
        self.inflight
    }

    /// Bytes delivered over the life of the connection.
    pub fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// Share of the packets of the last two round trips that was lost, 0 to 1.
    pub fn loss(&self) -> f64 {
        let [(lost_before, acked_before), (lost, acked)] = self.tally;
        let lost = lost_before + lost;
        lost.as_f64() / (lost + acked_before + acked).as_f64().max(1.0)
    }

    /// Whether the last losses since the running algorithm began came without a queue, so that a
    /// window that was cut for them says nothing of what the path carries.
    pub fn lost_without_queue(&self) -> bool {
        self.lost_without_queue
    }

    /// Whether losses are being repaired, or a mark was answered less than a round trip ago.
    pub fn in_recovery(&self) -> bool {
        self.in_recovery || self.marked_at.is_some()
    }
}

/// The highest rate of this span of time and the one before. What is older stays until something
/// newer is known.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    rates: [Rate; 2],
    since: Time,
}

impl Recent {
    fn update(&mut self, now: Time, span: Duration, rate: Rate) {
        if now.since(self.since) > span {
            *self = Self { rates: [self.rates[1], Rate::ZERO], since: now };
        }
        self.rates[1] = self.rates[1].max(rate);
    }

    fn get(&self) -> Rate {
        self.rates[0].max(self.rates[1])
    }
}

impl Default for PathView {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSample;
    use crate::testing::acked;

    const MSS: Bytes = Bytes::new(1500);

    fn seen(path: &mut PathView, at_ms: u64, rtt_ms: u64, packets_per_sec: u64, app_limited: bool) {
        let now = Time::from_millis(at_ms);
        let rtt = Duration::from_millis(rtt_ms);
        let rate = Some(RateSample {
            delivered: MSS * packets_per_sec,
            interval: Duration::from_secs(1),
            prior_delivered: Bytes::ZERO,
            app_limited,
            tx_in_flight: MSS,
            lost: Bytes::ZERO,
        });
        path.on_ack(&Ack { rate, ..acked(now, now - rtt, MSS, rtt) });
    }

    /// A link that fades: after ten round trips only what it carries now is recent. A slow
    /// application is no fading.
    #[test]
    fn what_is_recent_is_of_ten_round_trips_at_most() {
        let mut path = PathView::new();
        assert_eq!(path.recent_bandwidth(), None);
        let rate = |packets: u64| Some(Rate::from_bytes_per_sec(1500 * packets));
        for at in (1000..2000).step_by(20) {
            seen(&mut path, at, 20, 4000, false);
        }
        for at in (2000..2220).step_by(20) {
            seen(&mut path, at, 20, 1000, true);
            assert_eq!(path.recent_bandwidth(), rate(4000), "the application's, at {at}");
        }
        let mut faded = None;
        for at in (2220..2600).step_by(20) {
            seen(&mut path, at, 20, 1000, false);
            if path.recent_bandwidth() == rate(1000) {
                faded = faded.or(Some(at));
            }
        }
        assert!(faded.is_some_and(|at| (2320..=2440).contains(&at)), "{faded:?}");
        assert_eq!(path.bandwidth(), rate(4000), "that of 10 s is what it was");
    }

    /// 10 s of a queue hide the path's delay; 22 ms instead of 20 ms do not.
    #[test]
    fn an_empty_queue_is_known_by_the_least_of_all() {
        let mut path = PathView::new();
        assert!(!path.saw_empty_queue(), "nothing is known");
        seen(&mut path, 1000, 20, 1000, false);
        assert!(path.saw_empty_queue());
        for (rtt, is_empty) in [(22, true), (23, false)] {
            let mut path = path.clone();
            for at in (2000..=14_000).step_by(50) {
                seen(&mut path, at, rtt, 1000, false);
            }
            assert_eq!(path.saw_empty_queue(), is_empty, "{rtt} ms");
        }
    }

    #[test]
    fn keeps_ten_seconds_of_round_trips_and_rates() {
        let mut path = PathView::new();
        assert_eq!((path.min_rtt(), path.bandwidth()), (None, None));
        seen(&mut path, 1000, 20, 4000, false);
        for at in (2000..=11_000).step_by(50) {
            seen(&mut path, at, 40, 1000, false);
        }
        let at = Time::from_millis(1000);
        assert_eq!(path.min_rtt(), Some((Duration::from_millis(20), at)));
        assert_eq!(path.bandwidth(), Some(Rate::from_bytes_per_sec(6_000_000)));
        for at in (11_050..=12_300).step_by(50) {
            seen(&mut path, at, 40, 1000, false);
        }
        assert_eq!(path.min_rtt().map(|(rtt, _)| rtt), Some(Duration::from_millis(40)));
        assert_eq!(path.bandwidth(), Some(Rate::from_bytes_per_sec(1_500_000)));
    }

    #[test]
    fn a_slow_application_counts_only_where_it_beats_the_estimate() {
        let mut path = PathView::new();
        seen(&mut path, 1000, 20, 1000, false);
        seen(&mut path, 1050, 20, 500, true);
        assert_eq!(path.bandwidth(), Some(Rate::from_bytes_per_sec(1_500_000)));
        seen(&mut path, 1100, 20, 2000, true);
        assert_eq!(path.bandwidth(), Some(Rate::from_bytes_per_sec(3_000_000)));
    }

    /// Ten round trips of 2 s are longer than 10 s.
    #[test]
    fn a_rate_counts_for_ten_round_trips_at_least() {
        let mut path = PathView::new();
        seen(&mut path, 2000, 2000, 4000, false);
        for at in (4000..=21_000).step_by(500) {
            seen(&mut path, at, 2000, 1000, false);
        }
        assert_eq!(path.bandwidth(), Some(Rate::from_bytes_per_sec(6_000_000)));
    }

    #[test]
    fn loss_is_that_of_the_last_two_round_trips() {
        let mut path = PathView::new();
        let rtt = Duration::from_millis(20);
        let mut now = Time::from_millis(20);
        let mut round = |path: &mut PathView, lost: u64| {
            now += rtt;
            path.on_loss(&Loss { lost: MSS * lost, ..crate::testing::lost(now, now - rtt) });
            path.on_ack(&acked(now, now - Duration::from_millis(1), MSS * (10 - lost), rtt));
        };
        round(&mut path, 2);
        assert!((path.loss() - 0.2).abs() < 1e-9, "{}", path.loss());
        round(&mut path, 0);
        round(&mut path, 0);
        assert_eq!(path.loss(), 0.0);
    }

    use crate::testing::{lost, timed_out};

    fn marked(ms: u64, sent: u64) -> Marked {
        let (now, newest_sent_at) = (Time::from_millis(ms), Time::from_millis(sent));
        Marked { now, newest_sent_at, inflight: MSS * 7, prior_inflight: MSS * 8 }
    }

    /// Floo's smallest buffer makes 1.3 of the least round-trip time when it overflows, its jitter
    /// 1.1: losses below 9/8 of it came without a queue.
    #[test]
    fn losses_below_nine_eighths_of_the_least_came_without_a_queue() {
        let us = Duration::from_micros;
        for (srtt, without) in [(20_000, true), (22_499, true), (22_500, false), (40_000, false)] {
            let mut path = PathView::new();
            let now = Time::from_millis(100);
            let ack = acked(now, now - us(20_000), MSS, us(20_000));
            path.on_ack(&Ack { srtt: us(srtt), ..ack });
            path.on_loss(&lost(now, now));
            assert_eq!((path.lost_without_queue(), path.in_recovery()), (without, true), "{srtt}");
            // A later loss of the episode is judged by its first, and what takes over begins anew.
            path.srtt = us(if without { 40_000 } else { 20_000 });
            path.on_timeout(&timed_out(now));
            assert_eq!(path.lost_without_queue(), without);
            path.forget_losses();
            assert!(!path.lost_without_queue());
        }
    }

    /// A mark is answered until something that was sent since arrives (RFC 9002 §7.3.1).
    #[test]
    fn a_mark_counts_as_recovery_for_a_round_trip() {
        let mut path = PathView::new();
        let (at, rtt) = (Time::from_millis, Duration::from_millis(20));
        path.on_ack(&acked(at(20), at(0), MSS, rtt));
        path.on_marked(&marked(30, 10));
        assert_eq!((path.in_recovery(), path.inflight()), (true, MSS * 7));
        path.on_marked(&marked(40, 30));
        path.on_ack(&acked(at(50), at(30), MSS, rtt));
        assert!(path.in_recovery(), "sent in the instant of the first mark, as the second was");
        path.on_ack(&acked(at(51), at(31), MSS, rtt));
        assert!(!path.in_recovery());
        path.on_marked(&marked(60, 40));
        path.on_marked(&marked(70, 61));
        path.on_ack(&acked(at(82), at(62), MSS, rtt));
        assert!(path.in_recovery(), "the second one is of the next round trip");
        path.on_timeout(&timed_out(at(90)));
        path.on_ack(&acked(at(120), at(100), MSS, rtt));
        assert!(!path.in_recovery(), "a timeout writes off what was marked");
    }

    /// A queue wrote the mark: a window that is cut for it is no sign of random loss.
    #[test]
    fn a_mark_tells_of_a_queue() {
        let mut path = PathView::new();
        let (at, rtt) = (Time::from_millis, Duration::from_millis(20));
        path.on_ack(&acked(at(20), at(0), MSS, rtt));
        path.on_loss(&lost(at(30), at(10)));
        path.on_marked(&marked(31, 11));
        assert!(path.lost_without_queue(), "the loss came first, in the same episode");
        let mut path = PathView::new();
        path.on_ack(&acked(at(20), at(0), MSS, rtt));
        path.on_loss(&lost(at(30), at(10)));
        path.on_ack(&acked(at(60), at(40), MSS, rtt));
        assert!(path.lost_without_queue() && !path.in_recovery());
        path.on_marked(&marked(61, 41));
        assert!(!path.lost_without_queue());
    }

    #[test]
    fn what_is_in_flight_and_delivered_is_what_was_told_last() {
        let mut path = PathView::default();
        assert_eq!((path.srtt(), path.inflight()), (RTT_FLOOR, Bytes::ZERO));
        let now = Time::from_millis(20);
        path.on_sent(&Sent { now, bytes: MSS, inflight: MSS * 3, app_limited: false });
        assert_eq!(path.inflight(), MSS * 3);
        let ack = acked(now, Time::ZERO, MSS * 2, Duration::ZERO);
        path.on_ack(&Ack { inflight: MSS, delivered: MSS * 2, ..ack });
        assert_eq!((path.inflight(), path.delivered(), path.srtt()), (MSS, MSS * 2, RTT_FLOOR));
        assert_eq!(path.min_rtt(), Some((RTT_FLOOR, now)), "a link without delay");
        path.on_loss(&Loss { inflight: MSS * 5, ..lost(now, now) });
        assert_eq!(path.inflight(), MSS * 5);
        path.on_timeout(&timed_out(now));
        assert_eq!(path.inflight(), Bytes::ZERO);
    }
}
