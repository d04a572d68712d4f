//! The growth of RFC 9438: cubic function, Reno-friendly estimate, fast convergence.

use libm::cbrt;
use trimtab_units::{Bytes, Duration, Time};

use super::Tuning;
use crate::Ack;
use crate::window::Window;

/// What CUBIC knows of the window that was too much, and where on the curve it is. Windows are in
/// packets, fractions kept.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// Where the plateau of the curve lies; 0 when nothing is known (start, timeout).
    w_max: f64,
    /// The window when the threshold was last set: before the last reduction, or at the end of
    /// slow start.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// When the clock of the epoch was last moved on.
    ticked: Time,
    /// What the window has grown beyond a whole byte.
    fraction: f64,
}

/// A stretch of congestion avoidance between two reductions.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Time in congestion avoidance while the window limited the sender: `t`.
    elapsed: Duration,
    /// Time to reach the plateau, in seconds.
    k: f64,
    /// Where Reno would be: `W_est`.
    w_est: f64,
}

impl Curve {
    pub(super) fn new() -> Self {
        Self { w_max: 0.0, cwnd_prior: 0.0, epoch: None, ticked: Time::ZERO, fraction: 0.0 }
    }

    /// Slow start ended without loss: `W_max` is the window then (RFC 9438 §4.10), from which
    /// growth is convex, and at least Reno's.
    pub(super) fn on_slow_start_exit(&mut self, window: f64) {
        self.w_max = window;
        self.cwnd_prior = window;
        self.end_epoch();
    }

    /// A reduction at `window` (RFC 9438 §4.6, §4.7).
    pub(super) fn on_loss(&mut self, window: f64, tuning: &Tuning) {
        self.cwnd_prior = window;
        self.w_max = if tuning.values.fast_convergence && window < self.w_max {
            window * (1.0 + tuning.values.beta) / 2.0
        } else {
            window
        };
        self.end_epoch();
    }

    /// The next epoch starts at the plateau: `K` = 0, `W_max` the window then (RFC 9438 §4.8).
    pub(super) fn on_timeout(&mut self) {
        self.w_max = 0.0;
        self.end_epoch();
    }

    /// The next growth starts a new epoch at the window that it finds.
    pub(super) fn end_epoch(&mut self) {
        self.epoch = None;
        self.fraction = 0.0;
    }

    /// The clock of the epoch stands still while nothing is in flight (RFC 9438 §5.8).
    pub(super) fn skip_idle(&mut self, now: Time) {
        self.ticked = self.ticked.max(now);
    }

    /// And while the application limits the sender (RFC 9438 §5.8).
    pub(super) fn skip_app_limited(&mut self, now: Time) {
        self.ticked = now;
    }

    /// Grows the window in congestion avoidance (RFC 9438 §4.2 to §4.5).
    pub(super) fn grow(&mut self, window: &mut Window, acked: Bytes, ack: &Ack, tuning: &Tuning) {
        // On the path of every acknowledgement: one division.
        let cwnd = (window.size.as_f64() + self.fraction) * window.packets_per_byte;
        let mut epoch = match self.epoch {
            Some(mut epoch) => {
                epoch.elapsed += ack.now - self.ticked;
                epoch
            }
            None => self.start(cwnd, tuning),
        };
        self.ticked = ack.now;

        let acked_share = acked.as_f64() * window.packets_per_byte / cwnd;
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { tuning.alpha };
        epoch.w_est += alpha * acked_share; // §4.3, eq. 4
        self.epoch = Some(epoch);

        let t = epoch.elapsed.as_secs_f64();
        let grown = if self.w_cubic(t, &epoch, tuning) < epoch.w_est {
            cwnd.max(epoch.w_est) // §4.3: the Reno-friendly region
        } else {
            let ahead = self.w_cubic(t + ack.srtt.as_secs_f64(), &epoch, tuning);
            let target = ahead.clamp(cwnd, 1.5 * cwnd); // §4.2
            cwnd + (target - cwnd) * acked_share // §4.4, §4.5
        };
        let bytes = grown * window.mss.as_f64();
        let whole = Bytes::new(bytes as u64);
        self.fraction = bytes - whole.as_f64();
        window.set(whole);
    }

    fn start(&mut self, cwnd: f64, tuning: &Tuning) -> Epoch {
        let k = if self.w_max > cwnd {
            cbrt((self.w_max - cwnd) / tuning.values.c) // §4.2, eq. 2
        } else {
            self.w_max = cwnd;
            0.0
        };
        Epoch { elapsed: Duration::ZERO, k, w_est: cwnd }
    }

    /// `W_cubic(t)` (§4.2, eq. 1).
    fn w_cubic(&self, t: f64, epoch: &Epoch, tuning: &Tuning) -> f64 {
        let offset = t - epoch.k;
        tuning.values.c * offset * offset * offset + self.w_max
    }

    #[cfg(test)]
    pub(super) fn plateau(&self) -> (f64, Option<f64>) {
        (self.w_max, self.epoch.map(|e| e.k))
    }
}
