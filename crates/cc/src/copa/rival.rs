//! The window that a CUBIC flow would have in this place.
//!
//! Copa's competitive mode (§2.4) moves 1/delta like Reno's window, but the window that follows from
//! it depends on the queueing delay that others make: next to one CUBIC flow it gets a tenth of its
//! share at 150 ms. And in its default mode Copa hardly answers losses, so in a buffer of a quarter
//! of the path it takes twenty times what CUBIC gets. With the knob `competitive` at 2 it keeps
//! CUBIC's window instead: as its own while others fill the queue, and as a bound on its own after
//! a full queue dropped packets.

use trimtab_units::{Bytes, Duration, Time};

use crate::Config;
use crate::cubic::{LinuxCurve, Tuning};
use crate::window::Window;

/// The first time that others are met, the window grows by this share of what is acknowledged, until
/// the first loss shows what the path holds: a quarter.
const SEARCH: u64 = 4;
/// It is forgotten so long after the last loss of a full queue, and after the last time that others
/// filled it …
const LASTS: Duration = Duration::from_secs(10);
/// … and so many round trips after that.
const LASTS_ROUNDS: u64 = 20;

/// The window, by the growth of Linux's CUBIC (`cubic/linux.rs`).
#[derive(Clone, Debug)]
pub(super) struct Rival {
    window: Window,
    curve: LinuxCurve,
    tuning: Tuning,
    /// There was no loss yet since others were met the first time.
    searches: bool,
    /// Others were met before.
    met: bool,
    needed_at: Time,
}

impl Rival {
    /// Begins at a window of the sender's own, on a path with this round-trip time.
    pub(super) fn new(limits: &Config, window: Bytes, min_rtt: Duration, now: Time) -> Self {
        let mut own = Window::new(limits);
        own.set(window);
        let mut curve = LinuxCurve::new();
        curve.take_over(own.size.get() / own.mss.get(), min_rtt);
        let tuning = Tuning::linux();
        Self { window: own, curve, tuning, searches: false, met: false, needed_at: now }
    }

    pub(super) fn window(&self) -> Bytes {
        self.window.size
    }

    /// Others fill the queue, and the sender's own window is this one.
    pub(super) fn meet(&mut self, window: Bytes) {
        self.window.set(self.window.size.max(window));
        self.searches |= !self.met;
        self.met = true;
    }

    /// Grows by what was acknowledged while this window limited the sender.
    pub(super) fn grow(&mut self, acked: Bytes, now: Time) {
        if self.searches {
            self.window.set(self.window.size + acked / SEARCH);
        } else {
            self.curve.grow(&mut self.window, acked, now, &self.tuning);
        }
    }

    /// Packets were lost while the sender's own window was this one.
    pub(super) fn on_loss(&mut self, own: Bytes) {
        self.searches = false;
        self.window.set(self.window.size.min(own));
        let reduced = self.curve.on_loss(&self.window, &self.tuning);
        self.window.set(reduced);
    }

    /// Nothing was sent since `from`: its clock stood still (RFC 9438 §5.8).
    pub(super) fn on_pause(&mut self, from: Time, now: Time) {
        self.curve.on_sent(from, false);
        self.curve.on_sent(now, true);
    }

    /// Packets have another size.
    pub(super) fn on_mtu(&mut self, limits: &Config) {
        self.window.resize(limits);
    }

    /// Others fill the queue, or it has dropped packets.
    pub(super) fn is_needed(&mut self, now: Time) {
        self.needed_at = now;
    }

    /// Whether it is old news.
    pub(super) fn is_past(&self, now: Time, srtt: Duration) -> bool {
        now.since(self.needed_at) > LASTS.max(srtt * LASTS_ROUNDS)
    }
}
