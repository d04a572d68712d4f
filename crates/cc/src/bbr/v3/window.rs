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
