//! How much may be in flight ("Congestion Window").

use trimtab_units::{Bytes, Duration, Rate};

use super::{Bbr3, State, Step};

/// `BBR.MinPipeCwnd`: with an acknowledgement for every second packet, fewer would stop the flow.
const MIN_PIPE_PACKETS: u64 = 4;
/// A send quantum is what leaves in this time ("Send Quantum")…
const QUANTUM_TIME: Duration = Duration::from_millis(1);
/// …but no more than an offloaded packet holds.
const QUANTUM_MAX: Bytes = Bytes::new(64 * 1024);

impl Bbr3 {
    /// `BBR.MinPipeCwnd`.
    pub(super) fn min_pipe(&self) -> Bytes {
        self.mss * MIN_PIPE_PACKETS
    }

    /// The bandwidth-delay product at that bandwidth; the initial window before any round-trip time
    /// is known (`BDPMultiple()`).
    pub(super) fn bdp(&self, bw: Rate) -> Bytes {
        self.min_rtt.get().map_or(self.initial_window, |min_rtt| bw * min_rtt)
    }

    /// What the flow wants in flight: a bandwidth-delay product, unless congestion cut the window
    /// (`TargetInflight()`).
    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp(self.bw).min(self.window)
    }

    /// `QuantizationBudget()`: enough for the hosts' batching and for pipelining, and for a probe to
    /// exceed even a tiny bandwidth-delay product.
    pub(super) fn quantise(&self, inflight: Bytes) -> Bytes {
        let budget = self.tuning.quantum_budget.of_bytes(self.send_quantum());
        let inflight = inflight.max(budget).max(self.min_pipe());
        match self.state {
            State::Up(_) => inflight + self.mss * 2,
            _ => inflight,
        }
    }

    /// `SetSendQuantum()`.
    fn send_quantum(&self) -> Bytes {
        (self.pacing_rate * QUANTUM_TIME).min(QUANTUM_MAX).max(self.mss * 2)
    }

    /// `SaveCwnd()`: the last window that neither recovery nor ProbeRTT cut.
    pub(super) fn save_window(&mut self) {
        let temporary = self.in_recovery || matches!(self.state, State::ProbeRtt(_));
        self.prior_window =
            if temporary { self.prior_window.max(self.window) } else { self.window };
    }

    /// `RestoreCwnd()`.
    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// `SetCwnd()`.
    pub(super) fn set_window(&mut self, step: &Step<'_>) {
        let acked = step.ack.acked;
        let bdp = self.cwnd_gain().of_bytes(self.bdp(self.bw));
        let max_inflight = self.quantise(bdp + self.aggregation.extra());
        if self.full_bw.reached() {
            self.window = (self.window + acked).min(max_inflight);
        } else if self.window < max_inflight || step.ack.delivered < self.initial_window {
            self.window += acked;
        }
        self.window = self.window.max(self.min_pipe());
        if matches!(self.state, State::ProbeRtt(_)) {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.window = self.window.min(self.model_bound()).max(self.min_window);
    }

    /// `ProbeRTTCwnd()`.
    pub(super) fn probe_rtt_window(&self) -> Bytes {
        self.tuning.probe_rtt_cwnd_gain.of_bytes(self.bdp(self.bw)).max(self.min_pipe())
    }

    /// `BoundCwndForModel()`: what recent loss says that the path holds.
    fn model_bound(&self) -> Bytes {
        let long_term = match self.state {
            State::Startup | State::Drain { .. } => Bytes::MAX,
            State::Down | State::Refill | State::Up(_) => self.inflight_longterm,
            State::Cruise | State::ProbeRtt(_) => self.inflight_with_headroom(),
        };
        long_term.min(self.short_term.inflight).max(self.min_pipe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bbr::v3::path::MinRtt;
    use crate::bbr::v3::{Growth, ProbeRtt};
    use crate::testing::acked;
    use crate::{Ack, Config, set_knob};
    use trimtab_units::Time;

    const MSS: Bytes = Bytes::new(1500);

    /// 12 Mbit/s and 40 ms: 40 packets. Paced at one packet per millisecond, it cruises.
    fn bbr() -> Bbr3 {
        let mut bbr = Bbr3::new(&Config { min_window: MSS, ..Config::with_mss(MSS, 7) });
        bbr.min_rtt = MinRtt::known(Duration::from_millis(40), Time::ZERO);
        (bbr.bw, bbr.pacing_rate) = (Rate::from_mbps(12.0), Rate::from_mbps(12.0));
        bbr.full_bw.declare();
        bbr.state = State::Cruise;
        bbr
    }

    /// The window, to the nearest packet, after an acknowledgement of so many packets.
    fn after(bbr: &mut Bbr3, packets: u64) -> u64 {
        let rtt = Duration::from_millis(40);
        let ack = acked(Time::from_secs(1), Time::ZERO, MSS * packets, rtt);
        let ack = Ack { delivered: MSS * 1000, ..ack };
        bbr.set_window(&Step { ack: &ack, sample: None, rate: Rate::ZERO });
        bbr.window.ratio(MSS).round() as u64
    }

    /// `BDPMultiple()` and `TargetInflight()`.
    #[test]
    fn the_target_is_a_bandwidth_delay_product_or_less() {
        let mut bbr = bbr();
        bbr.window = MSS * 100;
        assert_eq!((bbr.bdp(bbr.bw), bbr.target_inflight()), (MSS * 40, MSS * 40));
        bbr.window = MSS * 30;
        assert_eq!(bbr.target_inflight(), MSS * 30, "congestion has cut the window");
        let new = Bbr3::new(&Config::with_mss(MSS, 7));
        assert_eq!(new.bdp(Rate::from_mbps(100.0)), MSS * 10, "the initial window");
    }

    /// `SetSendQuantum()` and `QuantizationBudget()`.
    #[test]
    fn the_least_window_holds_three_quanta_and_four_packets() {
        let mut bbr = bbr();
        for (mbps, bytes) in [(1.0, 3000), (12.0, 3000), (100.0, 12_500), (1000.0, 65_536)] {
            bbr.pacing_rate = Rate::from_mbps(mbps);
            assert_eq!(bbr.send_quantum(), Bytes::new(bytes), "{mbps} Mbit/s");
            assert_eq!(bbr.quantise(MSS), Bytes::new(3 * bytes), "{mbps} Mbit/s");
        }
        bbr.pacing_rate = Rate::from_mbps(12.0);
        set_knob(&mut bbr, "quantum_budget", 1.0).unwrap();
        assert_eq!(bbr.quantise(MSS), MSS * 4, "`BBR.MinPipeCwnd`");
        assert_eq!(bbr.quantise(MSS * 50), MSS * 50);
        bbr.state = State::Up(Growth::new(bbr.window, MSS));
        assert_eq!(bbr.quantise(MSS * 50), MSS * 52, "a probe is two packets more");
    }

    /// `SetCwnd()`: two bandwidth-delay products, and no cut before the pipe was full.
    #[test]
    fn the_window_grows_to_its_target_or_is_cut_to_it() {
        let mut bbr = bbr();
        bbr.window = MSS * 70;
        assert_eq!((after(&mut bbr, 5), after(&mut bbr, 5), after(&mut bbr, 5)), (75, 80, 80));
        bbr.window = MSS * 200;
        assert_eq!(after(&mut bbr, 5), 80);
        let mut new = bbr.clone();
        (new.full_bw, new.state) = (Default::default(), State::Startup);
        new.window = MSS * 79;
        assert_eq!((after(&mut new, 5), after(&mut new, 5)), (84, 84));
    }

    /// `BoundCwndForModel()` and `InflightWithHeadroom()`: 15% of headroom in Cruise and ProbeRTT.
    #[test]
    fn what_was_lost_bounds_the_window_by_state() {
        let mut bbr = bbr();
        (bbr.window, bbr.inflight_longterm) = (MSS * 80, MSS * 60);
        assert_eq!(after(&mut bbr, 1), 51, "85% of 60");
        let up = State::Up(Growth::new(bbr.window, MSS));
        for (state, window) in
            [(State::Down, 60), (State::Refill, 60), (up, 60), (State::Startup, 80)]
        {
            (bbr.state, bbr.window) = (state, MSS * 80);
            assert_eq!(after(&mut bbr, 1).min(80), window, "{state:?}");
        }
        (bbr.state, bbr.short_term.inflight) = (State::Startup, MSS * 20);
        assert_eq!(after(&mut bbr, 1), 20, "the short-term bound holds in every state");
        bbr.short_term.inflight = MSS;
        assert_eq!(after(&mut bbr, 1), 4, "never below `BBR.MinPipeCwnd`");
    }

    /// `ProbeRTTCwnd()`: half a bandwidth-delay product, at least four packets.
    #[test]
    fn probe_rtt_leaves_half() {
        let mut bbr = bbr();
        bbr.state = State::ProbeRtt(ProbeRtt::default());
        bbr.window = MSS * 80;
        assert_eq!(after(&mut bbr, 1), 20);
        bbr.bw = Rate::from_mbps(1.2);
        assert_eq!((bbr.probe_rtt_window(), after(&mut bbr, 1)), (MSS * 4, 4));
    }

    /// `SaveCwnd()` and `RestoreCwnd()`.
    #[test]
    fn the_window_that_is_saved_is_one_that_was_not_cut() {
        let mut bbr = bbr();
        (bbr.window, bbr.prior_window) = (MSS * 30, MSS * 80);
        bbr.save_window();
        assert_eq!(bbr.prior_window, MSS * 30);
        for (in_recovery, state) in
            [(true, State::Cruise), (false, State::ProbeRtt(ProbeRtt::default()))]
        {
            (bbr.in_recovery, bbr.state) = (in_recovery, state);
            (bbr.window, bbr.prior_window) = (MSS * 30, MSS * 80);
            bbr.save_window();
            assert_eq!(bbr.prior_window, MSS * 80);
            bbr.restore_window();
            assert_eq!(bbr.window, MSS * 80);
            bbr.prior_window = MSS * 10;
            bbr.restore_window();
            assert_eq!(bbr.window, MSS * 80);
        }
    }
}
