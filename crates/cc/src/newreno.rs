//! `NewReno`: additive increase of one packet per round trip, halving on loss.
//!
//! Read first: RFC 5681 (TCP), RFC 9002 §7 (the same for QUIC, by bytes and packet numbers).

use trimtab_units::{Bytes, Time};

use crate::{Ack, Config, CongestionControl, Idle, Knob, Loss, Phase, Timeout};

/// RFC 9002 §7.3.2 (`kLossReductionFactor`), RFC 5681 eq. 4.
const REDUCTION: f64 = 0.5;

/// The `NewReno` state machine.
///
/// ```text
///             first loss                     window >= ssthresh
///  SlowStart ────────────▶ Recovery ◀──────────── (growth)
///      │                      │ packet sent after the reduction acknowledged
///      └── window ≥ ssthresh ─┴▶ Steady ── loss ──▶ Recovery
/// ```
#[derive(Clone, Debug)]
pub struct NewReno {
    mss: Bytes,
    min_window: Bytes,
    initial_window: Bytes,
    window: Bytes,
    ssthresh: Bytes,
    /// Bytes acknowledged in congestion avoidance that have not yet grown the window.
    acked_credit: Bytes,
    /// When the current loss episode began: losses of packets sent before are part of it.
    recovery_start: Option<Time>,
    in_recovery: bool,
}

impl NewReno {
    /// No knobs: the standard fixes everything.
    pub const KNOBS: &'static [Knob] = &[];

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        Self {
            mss: config.mss,
            min_window: config.min_window,
            initial_window: config.initial_window,
            window: config.initial_window,
            ssthresh: Bytes::MAX,
            acked_credit: Bytes::ZERO,
            recovery_start: None,
            in_recovery: false,
        }
    }

    fn reduce(&mut self, window: Bytes) {
        self.ssthresh = self.window.mul_f64(REDUCTION).max(self.mss * 2).max(self.min_window);
        self.window = window.max(self.min_window);
        self.acked_credit = Bytes::ZERO;
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        if self.recovery_start.is_some_and(|start| ack.newest_sent_at <= start) {
            return; // RFC 9002 §7.3.2: no growth while in recovery
        }
        self.in_recovery = false;
        if !ack.cwnd_limited {
            return; // RFC 9002 §7.8
        }
        if self.window < self.ssthresh {
            self.window += ack.acked; // RFC 5681 §3.1
            return;
        }
        // One packet per window acknowledged (RFC 5681 §3.1, eq. 3, by byte counting).
        self.acked_credit += ack.acked;
        while self.acked_credit >= self.window {
            self.acked_credit -= self.window;
            self.window += self.mss;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.recovery_start.is_some_and(|start| loss.newest_sent_at <= start) {
            return; // the same episode
        }
        self.recovery_start = Some(loss.now);
        self.in_recovery = true;
        self.reduce(self.window.mul_f64(REDUCTION).max(self.mss * 2));
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.reduce(self.min_window); // RFC 5681 §3.1 (loss window), RFC 9002 §7.6.2
        self.recovery_start = Some(timeout.now);
        self.in_recovery = false;
    }

    fn on_idle(&mut self, _idle: &Idle) {
        self.window = self.window.min(self.initial_window); // RFC 5681 §4.1 (restart window)
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn ssthresh(&self) -> Option<Bytes> {
        (self.ssthresh != Bytes::MAX).then_some(self.ssthresh)
    }

    fn phase(&self) -> Phase {
        if self.in_recovery {
            Phase::Recovery
        } else if self.window < self.ssthresh {
            Phase::SlowStart
        } else {
            Phase::Steady
        }
    }

    fn knobs(&self) -> &'static [Knob] {
        Self::KNOBS
    }

    fn knob(&self, _index: usize) -> Option<f64> {
        None
    }

    fn apply_knob(&mut self, _index: usize, _value: f64) {}
}
