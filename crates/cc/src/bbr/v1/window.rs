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
        if !self.full_pipe.reached() {
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
        let window = if self.full_pipe.reached() {
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
