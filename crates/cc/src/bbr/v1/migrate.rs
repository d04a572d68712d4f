//! BBR takes over: it empties the queue that it finds, in Drain where the path's delay is known and
//! in ProbeRTT where it is not, then goes on in ProbeBW.

use trimtab_units::{Bytes, Duration};

use super::min_rtt::MinRtt;
use super::window::Recovery;
use super::{Bbr, Cycle, FullBw, Mode};
use crate::Ack;
use crate::bbr::full_bw::shows_queue;
use crate::bbr::gain::Gain;
use crate::bbr::probe_rtt::ProbeRtt;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};

impl Migrate for Bbr {
    fn is_converged(&self) -> bool {
        matches!(self.mode, Mode::ProbeBw(_)) && self.recovery == Recovery::Open && !self.conserve
    }

    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        OperatingPoint::of_model(self.bw(), self.window, path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.max_bw.reset(self.rounds.count, from.recent_bandwidth);
        // Not marked expired: the first sample would replace an expired value, and the old
        // algorithm's queue is still in it. In ProbeRTT whatever is lower takes its place.
        self.min_rtt = MinRtt::known(from.min_rtt, from.now);
        self.rounds.restart(from.delivered);
        self.delivered = from.delivered;
        self.policer.reset();
        self.recovery = Recovery::Open;
        self.conserve = false;
        self.seen_rtt = true;
        self.idle_restart = false;
        self.searches = from.starved;
        if from.starved {
            self.search(from);
            return;
        }
        self.full_bw = FullBw::filled_at(from.recent_bandwidth);
        self.prior_window = from.window.min(self.bdp(from.recent_bandwidth, self.tuning.cwnd_gain));
        self.window = self.prior_window.max(self.min_window);
        if from.queue_is_known_small() {
            self.mode = Mode::ProbeBw(Cycle::random(from.now, &mut self.rng));
        } else if from.saw_empty_queue {
            // Where the delay is known there is nothing to measure, only a queue to drain. The
            // minimum keeps its age, so that ProbeRTT comes when it is due.
            self.min_rtt = MinRtt::known(from.min_rtt, from.min_rtt_at);
            self.mode = Mode::Drain;
            self.pace(self.tuning.drain_gain);
            return;
        } else {
            self.mode = Mode::ProbeRtt(ProbeRtt::default());
            self.window = from.window.min(self.probe_rtt_window()).max(self.min_window);
        }
        self.pace(Gain::UNIT);
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.window = window.max(self.min_window);
        if !srtt.is_zero() {
            self.seen_rtt = true;
            self.init_pacing_rate(srtt);
        }
    }
}

impl Bbr {
    /// Nobody has filled the pipe, so it is Startup's to do: ProbeBW would raise the rate by a
    /// quarter every eight round trips. There is no queue to empty first.
    fn search(&mut self, from: &HandOver) {
        self.full_bw = FullBw::default();
        self.mode = Mode::Startup;
        self.prior_window = Bytes::ZERO;
        self.window = from.window.max(self.min_window);
        self.pacing_rate = self.paced(from.recent_bandwidth, self.tuning.startup_gain);
    }

    /// A search over another algorithm's rate began since there was no queue. Where there is one,
    /// it is over: Startup would go on for three round trips.
    pub(super) fn check_search(&mut self, ack: &Ack) {
        if self.searches && self.mode == Mode::Startup && shows_queue(ack, self.min_rtt.get()) {
            self.full_bw.declare();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{acked, hand_over};
    use crate::{Ack, Config, CongestionControl, Loss, Phase, RateSample};
    use trimtab_units::{Rate, Time};

    const MSS: Bytes = Bytes::new(1500);
    const SRTT: Duration = Duration::from_micros(37_500);
    const BANDWIDTH: Rate = Rate::from_bytes_per_sec(6_000_000);

    fn after_cubic() -> (Bbr, HandOver) {
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        let record = hand_over(MSS * 150, SRTT);
        bbr.take_over(&record);
        (bbr, record)
    }

    /// migration.md E-1 and §8.5: ProbeRTT with the connection's bandwidth and minimum RTT, paced
    /// within 5% of the rate that it was handed.
    #[test]
    fn enters_probe_rtt_with_what_is_known() {
        let (bbr, _) = after_cubic();
        assert_eq!(bbr.phase(), Phase::ProbeRtt);
        assert_eq!((bbr.window(), bbr.prior_window), (MSS * 4, MSS * 150));
        assert_eq!((bbr.bw(), bbr.min_rtt.get()), (BANDWIDTH, Some(Duration::from_millis(20))));
        assert!(bbr.full_bw.reached() && !bbr.is_converged());
        let kept = (bbr.pacing_rate * SRTT).ratio(MSS * 150);
        assert!((kept - 1.0).abs() < 0.05, "{kept}");
    }

    /// Where the path's delay is known the queue drains at once, and ProbeRTT comes 10 s after the
    /// minimum was measured.
    #[test]
    fn drains_where_the_delay_is_known() {
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        let record = HandOver { saw_empty_queue: true, ..hand_over(MSS * 150, SRTT) };
        bbr.take_over(&record);
        assert_eq!((bbr.phase(), bbr.window()), (Phase::Drain, MSS * 150));
        let gain = bbr.pacing_rate.ratio(BANDWIDTH);
        assert!((gain - 0.99 / 2.885).abs() < 0.01, "{gain}");
        let ack = |bbr: &mut Bbr, now: Time, inflight: u64| {
            bbr.on_ack(&Ack { inflight: MSS * inflight, ..acked(now, now - SRTT, MSS, SRTT) });
            bbr.phase()
        };
        assert_eq!(ack(&mut bbr, record.now, 149), Phase::Drain);
        assert_eq!(ack(&mut bbr, record.now + SRTT, 80), Phase::Steady);
        let due = record.min_rtt_at + Duration::from_secs(10);
        assert_eq!(ack(&mut bbr, due, 80), Phase::Steady);
        assert_eq!(ack(&mut bbr, due + Duration::from_millis(1), 80), Phase::ProbeRtt);
    }

    /// It goes by what the path carries now, not by what it did 10 s ago.
    #[test]
    fn a_link_that_faded_is_taken_as_it_is() {
        let now = Rate::from_bytes_per_sec(1_500_000);
        let record = HandOver { recent_bandwidth: now, ..hand_over(MSS * 150, SRTT) };
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        bbr.take_over(&record);
        assert_eq!((bbr.bw(), bbr.prior_window), (now, MSS * 40));
        let starved = HandOver { starved: true, ..record };
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        bbr.take_over(&starved);
        assert!((bbr.pacing_rate.ratio(now) - 2.885 * 0.99).abs() < 0.01);
    }

    /// A search ends with the first sign of a queue, which Startup on a new connection does not.
    #[test]
    fn a_search_is_over_when_there_is_a_queue() {
        let record = HandOver { starved: true, ..hand_over(MSS * 10, Duration::from_millis(20)) };
        for (rtt, phase) in [(25, Phase::SlowStart), (26, Phase::Drain)] {
            let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
            bbr.take_over(&record);
            let (now, rtt) = (record.now + SRTT, Duration::from_millis(rtt));
            let inflight = MSS * 200;
            bbr.on_ack(&Ack { inflight, ..acked(now, now - rtt, MSS, rtt) });
            assert_eq!(bbr.phase(), phase, "{rtt}");
        }
        let mut new = Bbr::new(&Config::with_mss(MSS, 0));
        for (ms, rtt) in [(20, 20), (100, 80)] {
            let (now, rtt) = (Time::from_millis(ms), Duration::from_millis(rtt));
            new.on_ack(&Ack { inflight: MSS * 200, ..acked(now, now - rtt, MSS, rtt) });
        }
        assert_eq!(new.phase(), Phase::SlowStart);
    }

    /// No more than twice the bandwidth-delay product comes back.
    #[test]
    fn a_larger_window_is_cut_to_twice_the_path() {
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        bbr.take_over(&hand_over(MSS * 400, Duration::from_millis(100)));
        assert_eq!(bbr.prior_window, MSS * 160);
    }

    /// migration.md E-1: 36.5 ms until 4 packets are in flight, 200 ms and a round there, then the
    /// window again, in ProbeBW, with nothing of the queue taken for the path.
    #[test]
    fn leaves_probe_rtt_with_the_window_it_was_handed() {
        let (mut bbr, record) = after_cubic();
        let (mut now, mut delivered) = (record.now, record.delivered);
        let mut ack = |bbr: &mut Bbr, gap: Duration, rtt: Duration, inflight: u64| {
            now += gap;
            delivered += MSS;
            bbr.on_ack(&Ack {
                delivered,
                inflight: MSS * inflight,
                prior_inflight: MSS * (inflight + 1),
                rate: Some(RateSample {
                    delivered: MSS * 4,
                    interval: rtt,
                    prior_delivered: delivered - MSS * (inflight + 1),
                    app_limited: false,
                    tx_in_flight: MSS * 4,
                    lost: Bytes::ZERO,
                }),
                ..acked(now, now - rtt, MSS, rtt)
            });
            now
        };
        for inflight in (4..150).rev() {
            ack(&mut bbr, Duration::from_micros(250), SRTT, inflight);
            assert_eq!(bbr.min_rtt.get(), Some(Duration::from_millis(20)));
        }
        let drained = record.now + Duration::from_micros(36_500);
        let mut ended = Time::ZERO;
        while bbr.phase() == Phase::ProbeRtt {
            assert_eq!(bbr.window(), MSS * 4);
            ended = ack(&mut bbr, Duration::from_millis(5), Duration::from_millis(20), 4);
            assert!(ended < drained + Duration::from_millis(300), "it never ends");
        }
        assert!(ended >= drained + Duration::from_millis(200));
        assert_eq!(bbr.phase(), Phase::Steady);
        assert!(bbr.window() >= (MSS * 150).mul_f64(0.9), "{}", bbr.window());
        assert_eq!(bbr.bw(), BANDWIDTH, "rates measured in ProbeRTT do not count");
    }

    /// migration.md E-4: X = min(160, max(84, 4000/s x 21 ms)).
    #[test]
    fn hands_over_what_is_in_flight_not_its_allowance() {
        let mut path = PathView::new();
        let now = Time::from_secs(30);
        path.on_ack(&acked(now, now, MSS, Duration::from_millis(21)));
        for (inflight, want) in [(84, 84), (0, 84), (120, 120), (200, 160)] {
            path.on_loss(&Loss { inflight: MSS * inflight, ..crate::testing::lost(now, now) });
            let point = OperatingPoint::of_model(BANDWIDTH, MSS * 160, &path);
            assert_eq!((point.window, point.rate), (MSS * want, BANDWIDTH));
        }
    }

    /// Startup from the rate that it was handed, not from what it would start with, and no ProbeRTT.
    #[test]
    fn after_an_algorithm_that_losses_held_back_it_starts_up() {
        let record = HandOver { starved: true, ..hand_over(MSS * 10, Duration::from_millis(20)) };
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        bbr.take_over(&record);
        assert_eq!((bbr.phase(), bbr.window()), (Phase::SlowStart, MSS * 10));
        assert!(!bbr.full_bw.reached());
        assert_eq!(bbr.min_rtt.get(), Some(Duration::from_millis(20)));
        let gain = bbr.pacing_rate.ratio(BANDWIDTH);
        assert!((gain - 2.885 * 0.99).abs() < 0.01, "{gain}");
    }

    /// migration.md §7: BBR and BBRv3 know each other's minimum, while it is fresh.
    #[test]
    fn after_its_own_kind_it_goes_on_in_probe_bw() {
        let record = HandOver { modelled: true, ..hand_over(MSS * 84, Duration::from_millis(21)) };
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        bbr.take_over(&record);
        assert_eq!((bbr.phase(), bbr.window()), (Phase::Steady, MSS * 84));
        let stale = HandOver { min_rtt_at: Time::from_secs(25), ..record };
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        bbr.take_over(&stale);
        assert_eq!(bbr.phase(), Phase::ProbeRtt);
    }

    /// migration.md §10, the control: Startup at 2.885 times the rate.
    #[test]
    fn a_part_switch_starts_up_on_the_queue() {
        let mut bbr = Bbr::new(&Config::with_mss(MSS, 0));
        bbr.inherit(MSS * 150, SRTT);
        assert_eq!((bbr.phase(), bbr.window()), (Phase::SlowStart, MSS * 150));
        let gain = bbr.pacing_rate.ratio(BANDWIDTH);
        assert!((gain - 2.885 * 0.99).abs() < 0.01, "{gain}");
    }
}
