//! The window that a CUBIC flow would have in this place, for algorithms that make room for others
//! and next to such flows would get none: Copa and GCC.
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
const LASTS: Duration = Duration::from_secs(3);
/// … and so many round trips after that. With 10 s and 20 round trips, flows of this kind alone on a
/// link got 3% less out of it, and no CUBIC flow next to one got more.
const LASTS_ROUNDS: u64 = 5;

/// The window, by the growth of Linux's CUBIC (`cubic/linux.rs`).
#[derive(Clone, Debug)]
pub(crate) struct Rival {
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
    pub(crate) fn new(limits: &Config, window: Bytes, min_rtt: Duration, now: Time) -> Self {
        let mut own = Window::new(limits);
        own.set(window);
        let mut curve = LinuxCurve::new();
        curve.take_over(own.size.get() / own.mss.get(), min_rtt);
        let tuning = Tuning::linux();
        Self { window: own, curve, tuning, searches: false, met: false, needed_at: now }
    }

    pub(crate) fn window(&self) -> Bytes {
        self.window.size
    }

    /// Others fill the queue, and the sender's own window is this one.
    pub(crate) fn meet(&mut self, window: Bytes) {
        self.window.set(self.window.size.max(window));
        self.searches |= !self.met;
        self.met = true;
    }

    /// Grows by what was acknowledged while this window limited the sender.
    pub(crate) fn grow(&mut self, acked: Bytes, now: Time) {
        if self.searches {
            self.window.set(self.window.size + acked / SEARCH);
        } else {
            self.curve.grow(&mut self.window, acked, now, &self.tuning);
        }
    }

    /// Packets were lost while the sender's own window was this one.
    pub(crate) fn on_loss(&mut self, own: Bytes) {
        self.searches = false;
        self.window.set(self.window.size.min(own));
        let reduced = self.curve.on_loss(&self.window, &self.tuning);
        self.window.set(reduced);
    }

    /// Nothing was sent since `from`: its clock stood still (RFC 9438 §5.8).
    pub(crate) fn on_pause(&mut self, from: Time, now: Time) {
        self.curve.on_sent(from, false);
        self.curve.on_sent(now, true);
    }

    /// Packets have another size.
    pub(crate) fn on_mtu(&mut self, limits: &Config) {
        self.window.resize(limits);
    }

    /// Others fill the queue, or it has dropped packets.
    pub(crate) fn is_needed(&mut self, now: Time) {
        self.needed_at = now;
    }

    /// Whether it is old news.
    pub(crate) fn is_past(&self, now: Time, srtt: Duration) -> bool {
        now.since(self.needed_at) > LASTS.max(srtt * LASTS_ROUNDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::Migrate as _;
    use crate::testing::link::MSS;
    use crate::testing::{acked, hand_over, lost};
    use crate::{CongestionControl as _, Controller, Spec};
    use std::vec::Vec;

    const RTT: Duration = Duration::from_millis(20);

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// One that begins at 30 s with so many packets, as `hand_over` says of its path.
    fn begins(packets: u64) -> Rival {
        Rival::new(&Config::with_mss(MSS, 0), MSS * packets, RTT, Time::from_secs(30))
    }

    /// The windows of a rival in packets, after a loss and acknowledgements of a packet each
    /// millisecond that stop for so long after a second.
    fn windows(pause: u64) -> Vec<u64> {
        let mut rival = begins(100);
        rival.on_loss(MSS * 100);
        let mut seen = Vec::new();
        for i in 0..8000 {
            let now = at(30_021 + i + if i < 1000 { 0 } else { pause });
            if i == 1000 && pause > 0 {
                rival.on_pause(at(30_020 + i), now);
            }
            rival.grow(MSS, now);
            seen.push(rival.window().get() / MSS.get());
        }
        seen
    }

    /// Its curve is that of `cubic:linux` on the same path, packet by packet.
    #[test]
    fn the_window_is_that_of_linux_cubic() {
        let spec: Spec = "cubic:linux".parse().unwrap();
        let mut cubic = spec.build(&Config::with_mss(MSS, 0));
        let Controller::Cubic(inner) = &mut cubic else { panic!("it is CUBIC") };
        inner.take_over(&hand_over(MSS * 100, RTT));
        cubic.on_loss(&lost(at(30_000), at(29_980)));
        let mut theirs = Vec::new();
        for i in 0..8000 {
            let now = at(30_021 + i);
            cubic.on_ack(&acked(now, now - RTT, MSS, RTT));
            theirs.push(cubic.window().get() / MSS.get());
        }
        assert_eq!(windows(0), theirs);
        assert_eq!((theirs[0], theirs[7999] > 100), (70, true), "717/1024, and past the plateau");
    }

    /// RFC 9438 §5.8: the curve has no time while nothing is in flight.
    #[test]
    fn its_clock_stands_still_in_a_pause() {
        assert_eq!(windows(2000), windows(0));
    }

    /// The first time that others are met, until a loss; and no more after that.
    #[test]
    fn it_searches_until_the_first_loss_once() {
        let mut rival = begins(100);
        rival.meet(MSS * 100);
        rival.grow(MSS * 8, at(30_001));
        assert_eq!(rival.window(), MSS * 102, "a quarter of what is acknowledged");
        rival.on_loss(MSS * 102);
        assert_eq!(rival.window(), MSS * 71, "102 · 717/1024");
        rival.meet(MSS * 40);
        assert_eq!(rival.window(), MSS * 71, "it falls to no lesser one");
        rival.meet(MSS * 90);
        rival.grow(MSS * 8, at(30_002));
        assert_eq!(rival.window(), MSS * 90, "CUBIC's curve grows less than two packets by that");
    }

    /// Losses while the sender's own window is less show what fits.
    #[test]
    fn a_loss_counts_from_the_lesser_window() {
        let mut rival = begins(100);
        rival.on_loss(MSS * 50);
        assert_eq!(rival.window(), MSS * 35);
        let mut rival = begins(100);
        rival.on_loss(MSS * 200);
        assert_eq!(rival.window(), MSS * 70);
    }

    #[test]
    fn it_is_past_after_three_seconds_and_five_round_trips() {
        let mut rival = begins(100);
        assert!(!rival.is_past(at(33_000), RTT) && rival.is_past(at(33_001), RTT));
        let long = Duration::from_secs(1);
        assert!(!rival.is_past(at(35_000), long) && rival.is_past(at(35_001), long));
        rival.is_needed(at(32_000));
        assert!(!rival.is_past(at(35_000), RTT) && rival.is_past(at(35_001), RTT));
    }

    #[test]
    fn packets_of_another_size_leave_its_bytes() {
        let mut rival = begins(100);
        rival.on_mtu(&Config::with_mss(MSS * 2, 0));
        assert_eq!(rival.window(), MSS * 100);
        rival.on_loss(MSS * 100);
        assert_eq!(rival.window(), MSS * 70, "35 of 50 packets");
    }
}
