//! The window: bandwidth-delay product, allowances, and what loss recovery does to it
//! (`bbr_set_cwnd`).
//!
//! Linux counts packets; here windows are bytes, rounded to whole packets where Linux rounds.

use trimtab_units::{Bytes, Duration, Rate};

use super::super::gain::Gain;
use super::{Bbr, Mode, Step};

/// The window never ends an acknowledgement below this (`bbr_cwnd_min_target`): with an
/// acknowledgement for every second packet, fewer would stop the flow.
const PACKETS_MIN: u64 = 4;
/// Rates below 1.2 Mbit/s send single packets (`bbr_min_tso_rate`).
const LOW_RATE: Rate = Rate::from_bits_per_sec(1_200_000);
/// A send quantum is what leaves in 1/1024 s (`sk_pacing_shift`)…
const QUANTA_PER_SECOND: u64 = 1024;
/// …but no more than a TSO packet holds (`GSO_MAX_SIZE - 1 - MAX_TCP_HEADER`).
const QUANTUM_MAX: Bytes = Bytes::new(65_536 - 1 - 320);
/// …nor than 127 packets.
const QUANTUM_PACKETS_MAX: u64 = 127;
/// The allowance for aggregation is at most what arrives in this time (`bbr_extra_acked_max_us`).
const EXTRA_ACKED_MAX: Duration = Duration::from_millis(100);

/// The state of loss recovery, as the transport reports it (Linux `TCP_CA_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// No loss is being repaired.
    Open,
    /// Losses found by acknowledgements are being repaired.
    Repairing,
    /// A retransmission timeout was the last resort.
    Timeout,
}

/// The most whole packets that fit.
pub(super) fn whole_packets(bytes: Bytes, mss: Bytes) -> Bytes {
    mss * (bytes / mss.get().max(1)).get()
}

impl Bbr {
    /// Bandwidth times minimum round-trip time times gain, rounded up to whole packets so that
    /// rounding cannot shrink the estimate round by round (`bbr_bdp`). Before any round-trip time
    /// is known, the initial window.
    pub(super) fn bdp(&self, bw: Rate, gain: Gain) -> Bytes {
        match self.min_rtt.get() {
            Some(min_rtt) => {
                let bdp = gain.of_bytes(bw * min_rtt);
                self.mss * bdp.get().div_ceil(self.mss.get().max(1))
            }
            None => self.initial_window,
        }
    }

    /// What to have in flight for that bandwidth and gain (`bbr_inflight`).
    pub(super) fn inflight_target(&self, bw: Rate, gain: Gain) -> Bytes {
        self.quantise(self.bdp(bw, gain))
    }

    /// Adds what batching in the end hosts holds back, rounds up to an even number of packets (one
    /// acknowledgement comes for two), and two packets for the probe so that it exceeds even a tiny
    /// bandwidth-delay product (`bbr_quantization_budget`).
    fn quantise(&self, window: Bytes) -> Bytes {
        let budget = self.tuning.quantum_budget.of_bytes(self.send_quantum());
        let pair = self.mss * 2;
        let even = pair * (window + budget).get().div_ceil(pair.get().max(1));
        match self.mode {
            Mode::ProbeBw(cycle) if cycle.is_probing() => even + pair,
            _ => even,
        }
    }

    /// What a sender with segmentation offload hands over at once (`bbr_tso_segs_goal`).
    pub(super) fn send_quantum(&self) -> Bytes {
        let least = if self.pacing_rate < LOW_RATE { 1 } else { 2 };
        let bytes = Bytes::new(self.pacing_rate.bytes_per_sec() / QUANTA_PER_SECOND);
        let bytes = whole_packets(bytes.min(QUANTUM_MAX), self.mss);
        bytes.max(self.mss * least).min(self.mss * QUANTUM_PACKETS_MAX)
    }

    /// The allowance for aggregated acknowledgements (`bbr_ack_aggregation_cwnd`).
    fn aggregation_allowance(&self) -> Bytes {
        if !self.full_bw.reached() {
            return Bytes::ZERO;
        }
        let most = whole_packets(self.bw() * EXTRA_ACKED_MAX, self.mss);
        self.tuning.extra_acked_gain.of_bytes(self.aggregation.extra()).min(most)
    }

    /// Keeps the window for when the reason to cut it is over (`bbr_save_cwnd`).
    pub(super) fn save_window(&mut self) {
        let temporary = self.recovery != Recovery::Open || matches!(self.mode, Mode::ProbeRtt(_));
        self.prior_window =
            if temporary { self.prior_window.max(self.window) } else { self.window };
    }

    /// The last step of an acknowledgement: the new window (`bbr_set_cwnd`).
    pub(super) fn set_window(&mut self, step: &Step<'_>) {
        if !step.ack.acked.is_zero() {
            self.window = match self.recover_or_restore(step) {
                Ok(window) => self.grow(window, step.ack.acked, step.ack.delivered),
                Err(conserved) => conserved,
            };
        }
        if matches!(self.mode, Mode::ProbeRtt(_)) {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.window = self.window.max(self.min_window);
    }

    /// Grows towards the target, or, once the pipe was full, cuts to it.
    fn grow(&self, window: Bytes, acked: Bytes, delivered: Bytes) -> Bytes {
        let bdp = self.bdp(self.bw(), self.cwnd_gain());
        let target = self.quantise(bdp + self.aggregation_allowance());
        let window = if self.full_bw.reached() {
            (window + acked).min(target)
        } else if window < target || delivered < self.initial_window {
            window + acked
        } else {
            window
        };
        window.max(self.mss * PACKETS_MIN)
    }

    /// In the first round of recovery one packet leaves for each that arrived; later rounds grow
    /// again, and the end of recovery restores the window from before it
    /// (`bbr_set_cwnd_to_recover_or_restore`). `Err` holds a window that is final.
    fn recover_or_restore(&mut self, step: &Step<'_>) -> Result<Bytes, Bytes> {
        let before = self.recovery;
        self.recovery = match (step.ack.in_recovery, before) {
            (false, _) => Recovery::Open,
            (true, Recovery::Timeout) => Recovery::Timeout,
            (true, _) => Recovery::Repairing,
        };
        let conserved = step.ack.inflight + step.ack.acked;
        let mut window = (self.window - step.losses).max(self.min_window);
        if self.recovery == Recovery::Repairing && before != Recovery::Repairing {
            self.conserve = true;
            self.rounds.restart(step.ack.delivered);
            window = conserved;
        } else if self.recovery == Recovery::Open && before != Recovery::Open {
            self.conserve = false;
            window = window.max(self.prior_window);
        }
        if self.conserve { Err(window.max(conserved)) } else { Ok(window) }
    }

    /// The window in ProbeRTT.
    pub(super) fn probe_rtt_window(&self) -> Bytes {
        self.tuning.probe_rtt_packets.of_bytes(self.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bbr::v1::{FullBw, MinRtt, ProbeRtt};
    use crate::testing::acked;
    use crate::{Ack, Config, set_knob};
    use trimtab_units::Time;

    const MSS: Bytes = Bytes::new(1500);

    /// 12 Mbit/s and 40 ms: 40 packets. Paced at one packet per millisecond.
    fn bbr() -> Bbr {
        let mut bbr = Bbr::new(&Config { min_window: MSS, ..Config::with_mss(MSS, 7) });
        bbr.min_rtt = MinRtt::known(Duration::from_millis(40), Time::ZERO);
        bbr.max_bw.reset(0, Rate::from_mbps(12.0));
        bbr.full_bw = FullBw::filled_at(Rate::from_mbps(12.0));
        bbr.pacing_rate = Rate::from_mbps(12.0);
        bbr.mode = Mode::Drain;
        bbr
    }

    fn step(ack: &Ack, losses: Bytes) -> Step<'_> {
        Step { ack, sample: None, losses }
    }

    /// An acknowledgement of so many packets with so many left in flight.
    fn ack(packets: u64, inflight: u64, in_recovery: bool) -> Ack {
        let (now, rtt) = (Time::from_secs(1), Duration::from_millis(40));
        let (inflight, delivered) = (MSS * inflight, MSS * 1000);
        Ack { inflight, in_recovery, delivered, ..acked(now, now - rtt, MSS * packets, rtt) }
    }

    /// `bbr_bdp`: rounded up to packets; `TCP_INIT_CWND` before any round-trip time.
    #[test]
    fn the_bandwidth_delay_product_is_rounded_up() {
        let bbr = bbr();
        let rate = Rate::from_mbps(12.0);
        assert_eq!(bbr.bdp(rate, Gain::UNIT), MSS * 40);
        assert_eq!(bbr.bdp(rate, Gain::ratio(5, 4)), MSS * 50);
        assert_eq!(bbr.bdp(rate + Rate::from_bytes_per_sec(25), Gain::UNIT), MSS * 41, "one byte");
        let new = Bbr::new(&Config::with_mss(MSS, 7));
        assert_eq!(new.bdp(rate, Gain::ratio(5, 4)), MSS * 10);
    }

    /// `bbr_quantization_budget`: three quanta, up to an even number, and two packets in the phase
    /// that probes.
    #[test]
    fn a_target_has_room_for_batches_and_is_even() {
        let mut bbr = bbr();
        // A quantum is two packets at least: 40 + 6.
        assert_eq!(bbr.inflight_target(Rate::from_mbps(12.0), Gain::UNIT), MSS * 46);
        assert_eq!(bbr.quantise(MSS * 41), MSS * 48, "47 is odd");
        let mut rng = bbr.rng.clone();
        let mut draw = |probing| loop {
            let cycle = crate::bbr::v1::Cycle::random(Time::ZERO, &mut rng);
            if cycle.is_probing() == probing {
                return cycle;
            }
        };
        let (probing, cruising) = (draw(true), draw(false));
        bbr.mode = Mode::ProbeBw(probing);
        assert_eq!(bbr.quantise(MSS * 40), MSS * 48);
        bbr.mode = Mode::ProbeBw(cruising);
        assert_eq!(bbr.quantise(MSS * 40), MSS * 46);
        set_knob(&mut bbr, "quantum_budget", 0.0).unwrap();
        assert_eq!(bbr.quantise(MSS * 40), MSS * 40);
    }

    /// `bbr_tso_segs_goal`: data of 1/1024 s, one packet below 1.2 Mbit/s, two above, 127 and what
    /// a segmentation offload holds at most.
    #[test]
    fn a_quantum_is_what_leaves_in_a_millisecond() {
        let mut bbr = bbr();
        for (mbps, packets) in
            [(1.19, 1), (1.2, 2), (12.0, 2), (36.9, 3), (100.0, 8), (10_000.0, 43)]
        {
            bbr.pacing_rate = Rate::from_mbps(mbps);
            assert_eq!(bbr.send_quantum(), MSS * packets, "{mbps} Mbit/s");
        }
        bbr.mss = Bytes::new(100);
        assert_eq!(bbr.send_quantum(), Bytes::new(12_700), "127 packets");
    }

    /// `bbr_ack_aggregation_cwnd`: what 100 ms carry at most, and nothing before the pipe was full.
    #[test]
    fn the_allowance_for_aggregation_is_100_ms_at_most() {
        let mut bbr = bbr();
        bbr.mss = MSS;
        let burst = |packets: u64| crate::bbr::v1::Acked {
            now: Time::from_secs(1),
            bytes: MSS * packets,
            bw: Rate::from_mbps(12.0),
            window: MSS * 1000,
            mss: MSS,
            round_started: false,
        };
        bbr.aggregation.update(&burst(30));
        assert_eq!(bbr.aggregation_allowance(), MSS * 30);
        set_knob(&mut bbr, "extra_acked_gain", 0.5).unwrap();
        assert_eq!(bbr.aggregation_allowance(), MSS * 15);
        set_knob(&mut bbr, "extra_acked_gain", 4.0).unwrap();
        assert_eq!(bbr.aggregation_allowance(), MSS * 100, "100 ms at a packet per millisecond");
        bbr.full_bw = FullBw::default();
        assert_eq!(bbr.aggregation_allowance(), Bytes::ZERO);
    }

    /// `bbr_set_cwnd`: cuts to the target once the pipe was full; grows without bound before.
    #[test]
    fn the_window_grows_to_its_target_or_is_cut_to_it() {
        let mut bbr = bbr();
        // Drain's window gain is Startup's: 40 × 739/256 is 115.5 packets, 122 with the budget.
        assert_eq!(bbr.grow(MSS * 100, MSS * 5, MSS * 1000), MSS * 105);
        assert_eq!(bbr.grow(MSS * 120, MSS * 5, MSS * 1000), MSS * 122);
        assert_eq!(bbr.grow(MSS * 500, MSS * 5, MSS * 1000), MSS * 122);
        bbr.full_bw = FullBw::default();
        assert_eq!(bbr.grow(MSS * 121, MSS * 5, MSS * 1000), MSS * 126);
        assert_eq!(bbr.grow(MSS * 122, MSS * 5, MSS * 1000), MSS * 122, "it is there");
        assert_eq!(bbr.grow(MSS * 122, MSS * 5, MSS * 9), MSS * 127, "a new connection");
        assert_eq!(bbr.grow(MSS, MSS, MSS * 1000), MSS * 4, "`bbr_cwnd_min_target`");
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: packet conservation for a round, then growth, then the
    /// window from before.
    #[test]
    fn recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
        let mut bbr = bbr();
        (bbr.window, bbr.prior_window) = (MSS * 60, MSS * 60);
        let first = ack(1, 50, true);
        bbr.set_window(&step(&first, MSS * 3));
        assert_eq!((bbr.window, bbr.conserve), (MSS * 51, true), "what is in flight and arrived");
        assert_eq!(bbr.recovery, Recovery::Repairing);
        let second = ack(2, 45, true);
        bbr.set_window(&step(&second, MSS));
        assert_eq!(bbr.window, MSS * 50, "one more was lost");
        bbr.conserve = false; // the round ended
        let third = ack(2, 40, true);
        bbr.set_window(&step(&third, Bytes::ZERO));
        assert_eq!(bbr.window, MSS * 52, "it grows again");
        let last = ack(2, 40, false);
        bbr.set_window(&step(&last, Bytes::ZERO));
        assert_eq!((bbr.window, bbr.recovery), (MSS * 62, Recovery::Open), "60, and what arrived");
        let nothing = Ack { acked: Bytes::ZERO, ..ack(0, 10, true) };
        bbr.set_window(&step(&nothing, Bytes::ZERO));
        assert_eq!((bbr.window, bbr.recovery), (MSS * 62, Recovery::Open), "it tells nothing");
    }

    /// `bbr_save_cwnd`: a window that recovery or ProbeRTT has cut is not the one to come back to.
    #[test]
    fn the_window_that_is_saved_is_one_that_was_not_cut() {
        let mut bbr = bbr();
        (bbr.window, bbr.prior_window) = (MSS * 30, MSS * 80);
        bbr.save_window();
        assert_eq!(bbr.prior_window, MSS * 30);
        for (recovery, mode) in [
            (Recovery::Repairing, Mode::Drain),
            (Recovery::Timeout, Mode::Drain),
            (Recovery::Open, Mode::ProbeRtt(ProbeRtt::default())),
        ] {
            (bbr.recovery, bbr.mode) = (recovery, mode);
            (bbr.window, bbr.prior_window) = (MSS * 30, MSS * 80);
            bbr.save_window();
            assert_eq!(bbr.prior_window, MSS * 80);
            bbr.window = MSS * 90;
            bbr.save_window();
            assert_eq!(bbr.prior_window, MSS * 90);
        }
        let last = ack(1, 30, false);
        bbr.recovery = Recovery::Open;
        bbr.set_window(&step(&last, Bytes::ZERO));
        assert_eq!(bbr.window, MSS * 4, "ProbeRTT's");
    }
}
