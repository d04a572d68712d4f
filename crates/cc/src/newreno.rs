//! `NewReno`: additive increase of one packet per round trip, halving on loss.
//!
//! Read first: RFC 5681 (TCP), RFC 9002 §7 (the same for QUIC, by bytes and packet numbers).

use trimtab_units::{Bytes, Time};

use crate::episode::Episode;
use crate::window::Window;
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
    window: Window,
    episode: Episode,
}

impl NewReno {
    /// No knobs: the standard fixes everything.
    pub const KNOBS: &'static [Knob] = &[];

    /// A new connection.
    pub fn new(config: &Config) -> Self {
        Self { window: Window::new(config), episode: Episode::default() }
    }
}

impl CongestionControl for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        let recovering = self.episode.on_ack(ack);
        // No growth while in recovery (RFC 9002 §7.3.2), nor of a window that is not used (§7.8).
        if !recovering && ack.cwnd_limited {
            self.window.grow_reno(ack.acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.episode.on_loss(loss) {
            self.window.reduce(self.window.size.mul_f64(REDUCTION));
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let new = self.episode.on_timeout(timeout.now);
        self.window.collapse(new.then(|| self.window.size.mul_f64(REDUCTION)));
    }

    fn on_spurious_loss(&mut self, _now: Time) {
        if self.window.undo() {
            self.episode.cancel();
        }
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.window.restart(idle);
    }

    fn window(&self) -> Bytes {
        self.window.size
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.threshold()
    }

    fn phase(&self) -> Phase {
        Phase::of_window(&self.window, &self.episode)
    }

    fn knobs(&self) -> &'static [Knob] {
        Self::KNOBS
    }

    fn knob(&self, _index: usize) -> Option<f64> {
        None
    }

    fn apply_knob(&mut self, _index: usize, _value: f64) {}
}
