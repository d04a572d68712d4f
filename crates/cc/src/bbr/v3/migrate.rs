//! BBRv3 takes over: it lowers what is in flight, in Drain where the path's delay is known and in
//! ProbeRTT where it is not.

use trimtab_units::{Bytes, Duration};

use super::path::{MaxBw, MinRtt};
use super::{AckPhase, Anchors, Bbr3, ShortTerm, Signals, State, Undo};
use crate::Ack;
use crate::bbr::full_bw::{FullBw, shows_queue};
use crate::bbr::gain::Gain;
use crate::bbr::probe_rtt::ProbeRtt;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};

impl Migrate for Bbr3 {
    /// While it cruises or has just given room; refilling and probing are over within a few rounds.
    fn is_converged(&self) -> bool {
        matches!(self.state, State::Cruise | State::Down) && !self.in_recovery
    }

    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        OperatingPoint::of_model(self.bw, self.window, path)
    }

    fn take_over(&mut self, from: &HandOver) {
        self.max_bw = MaxBw::known(from.bandwidth);
        self.min_rtt = MinRtt::known(from.min_rtt, from.now);
        self.short_term = ShortTerm::NONE;
        // A path that was losing more than is tolerated holds no more than was in flight.
        let lossy = from.loss > self.tuning.values.loss_thresh && !from.starved;
        self.inflight_longterm = if lossy { from.window } else { Bytes::MAX };
        self.bw = from.bandwidth;
        self.rounds.restart(from.delivered);
        self.delivered = from.delivered;
        self.signals = Signals::default();
        self.undo = Undo::NOTHING;
        self.anchors = Anchors::default();
        self.ack_phase = AckPhase::Init;
        self.is_probe_sample = false;
        self.in_recovery = false;
        self.seen_rtt = true;
        self.idle_restart = false;
        self.prior_window = from.window;
        self.searches = from.starved;
        if from.starved {
            self.search(from);
            return;
        }
        self.full_bw = FullBw::filled_at(from.bandwidth);
        self.state = State::ProbeRtt(ProbeRtt::default());
        if from.queue_is_known_small() {
            self.window = from.window.max(self.min_window);
            self.start_down(from.now);
            self.enter(State::Cruise);
        } else if from.saw_empty_queue {
            // As [`Bbr`](crate::Bbr) does, but with the bandwidth of 10 s: its filter spans two
            // cycles, and it probes for more every few seconds only.
            self.window = from.window.max(self.min_window);
            self.state = State::Drain { start_round: self.rounds.count };
            self.pace(self.tuning.drain_gain);
            return;
        } else {
            self.window = from.window.min(self.probe_rtt_window()).max(self.min_window);
        }
        self.pace(Gain::UNIT);
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.window = window.max(self.min_window);
        if !srtt.is_zero() {
            self.seen_rtt = true;
            self.pacing_rate = self.startup_rate(self.window / srtt);
        }
    }
}

impl Bbr3 {
    /// Nobody has filled the pipe: as [`Bbr`](crate::Bbr) does then.
    fn search(&mut self, from: &HandOver) {
        self.full_bw = FullBw::default();
        self.state = State::Startup;
        self.prior_window = Bytes::ZERO;
        self.window = from.window.max(self.min_window);
        self.pacing_rate = self.startup_rate(from.bandwidth);
    }

    /// A search over another algorithm's rate is over when there is a queue, as
    /// [`Bbr`](crate::Bbr)'s is.
    pub(super) fn check_search(&mut self, ack: &Ack) {
        if self.searches && self.state == State::Startup && shows_queue(ack, self.min_rtt.get()) {
            self.full_bw.declare();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hand_over;
    use crate::{Config, CongestionControl, Phase};
    use trimtab_units::Rate;

    const MSS: Bytes = Bytes::new(1500);

    fn after(record: &HandOver) -> Bbr3 {
        let mut bbr = Bbr3::new(&Config::with_mss(MSS, 0));
        bbr.take_over(record);
        bbr
    }

    /// migration.md §5: ProbeRTT at half a bandwidth-delay product, no bounds from before.
    #[test]
    fn enters_probe_rtt_with_what_is_known() {
        let record = hand_over(MSS * 150, Duration::from_micros(37_500));
        let bbr = after(&record);
        assert_eq!((bbr.phase(), bbr.window()), (Phase::ProbeRtt, MSS * 40));
        assert_eq!((bbr.prior_window, bbr.inflight_longterm), (MSS * 150, Bytes::MAX));
        assert_eq!(bbr.max_bw.get(), Rate::from_mbps(48.0));
        assert_eq!(bbr.min_rtt.get(), Some(Duration::from_millis(20)));
        assert!((bbr.pacing_rate.ratio(Rate::from_mbps(48.0)) - 0.99).abs() < 1e-3);
    }

    #[test]
    fn drains_where_the_delay_is_known() {
        let record = hand_over(MSS * 150, Duration::from_micros(37_500));
        let bbr = after(&HandOver { saw_empty_queue: true, ..record });
        assert_eq!((bbr.phase(), bbr.window()), (Phase::Drain, MSS * 150));
        assert!(bbr.pacing_rate < Rate::from_mbps(48.0 / 2.0));
    }

    #[test]
    fn a_search_is_over_when_there_is_a_queue() {
        let starved = HandOver { starved: true, ..hand_over(MSS * 10, Duration::from_millis(20)) };
        for (rtt, phase) in [(25, Phase::SlowStart), (26, Phase::Drain)] {
            let mut bbr = after(&starved);
            let rtt = Duration::from_millis(rtt);
            let now = starved.now + rtt;
            let ack = crate::testing::acked(now, now - rtt, MSS, rtt);
            bbr.on_ack(&Ack { inflight: MSS * 200, ..ack });
            assert_eq!(bbr.phase(), phase, "{rtt:?}");
        }
    }

    #[test]
    fn recent_loss_bounds_what_is_in_flight() {
        let record = hand_over(MSS * 150, Duration::from_micros(37_500));
        assert_eq!(after(&HandOver { loss: 0.03, ..record }).inflight_longterm, MSS * 150);
        assert_eq!(after(&HandOver { loss: 0.01, ..record }).inflight_longterm, Bytes::MAX);
    }

    #[test]
    fn after_its_own_kind_it_cruises() {
        let record = HandOver { modelled: true, ..hand_over(MSS * 84, Duration::from_millis(21)) };
        let bbr = after(&record);
        assert_eq!((bbr.state, bbr.window()), (State::Cruise, MSS * 84));
        assert!(bbr.is_converged());
    }
}
