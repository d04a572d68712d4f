//! The congestion window and slow start threshold, with the rules that the loss-based algorithms
//! share: slow start, Reno's additive increase, reduction, undo, restart after idle.

use trimtab_units::Bytes;

use crate::{Config, Idle};

/// No window grows past this (1 TiB): arithmetic on windows cannot overflow, and no path needs it.
pub(crate) const WINDOW_MAX: Bytes = Bytes::new(1 << 40);

/// A window and its threshold.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// A full-size packet; never zero.
    pub(crate) mss: Bytes,
    /// The window never falls below this.
    pub(crate) min: Bytes,
    /// Packets per byte: what comes with every acknowledgement is multiplied, not divided.
    pub(crate) packets_per_byte: f64,
    /// The window of a new connection (RFC 6928, RFC 9002 §7.2).
    pub(crate) initial: Bytes,
    /// The window.
    pub(crate) size: Bytes,
    /// Slow start ends here (RFC 5681 §3.1); [`Bytes::MAX`] until it is known.
    pub(crate) ssthresh: Bytes,
    /// Bytes acknowledged in congestion avoidance that have not yet grown the window.
    credit: Bytes,
    /// Window and threshold before the last reduction.
    before: Option<(Bytes, Bytes)>,
}

impl Window {
    /// That of a new connection.
    pub(crate) fn new(config: &Config) -> Self {
        let mss = config.mss.max(Bytes::new(1));
        let min = config.min_window.max(mss);
        Self {
            mss,
            min,
            packets_per_byte: 1.0 / mss.as_f64(),
            initial: config.initial_window.max(min),
            size: config.initial_window.max(min),
            ssthresh: Bytes::MAX,
            credit: Bytes::ZERO,
            before: None,
        }
    }

    /// Packets have another size ([`CongestionControl::on_mtu`](crate::CongestionControl::on_mtu)).
    pub(crate) fn resize(&mut self, limits: &Config) {
        let Self { mss, min, packets_per_byte, initial, .. } = Self::new(limits);
        (self.mss, self.min, self.packets_per_byte) = (mss, min, packets_per_byte);
        self.initial = initial;
        self.set(self.size);
        self.ssthresh = self.ssthresh.max(min);
        if let Some((size, ssthresh)) = &mut self.before {
            (*size, *ssthresh) = ((*size).max(min), (*ssthresh).max(min));
        }
    }

    /// The window of another algorithm, and congestion avoidance from there on: the threshold is the
    /// window, and no earlier reduction can be undone.
    pub(crate) fn take_over(&mut self, size: Bytes) {
        self.set(size);
        self.ssthresh = self.size;
        self.credit = Bytes::ZERO;
        self.before = None;
    }

    /// What is left after a jump that the path did not bear (RFC 9959 §3.5): this window, and slow
    /// start up to the threshold. No earlier reduction can be undone.
    pub(crate) fn retreat(&mut self, size: Bytes, ssthresh: Bytes) {
        self.take_over(size);
        self.ssthresh = ssthresh.max(self.min);
    }

    /// Whether the window is below its threshold.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.size < self.ssthresh
    }

    /// The threshold, when it is known.
    pub(crate) fn threshold(&self) -> Option<Bytes> {
        (self.ssthresh != Bytes::MAX).then_some(self.ssthresh)
    }

    /// The window in packets.
    pub(crate) fn packets(&self) -> f64 {
        self.size.ratio(self.mss)
    }

    /// Sets the window, within its limits.
    pub(crate) fn set(&mut self, size: Bytes) {
        self.size = size.clamp(self.min, WINDOW_MAX);
    }

    /// Rounds the window down to whole packets, as Linux counts it (`snd_cwnd`,
    /// `tcp_cong_avoid_ai()`).
    pub(crate) fn align(&mut self) {
        self.set(self.mss * (self.size.get() / self.mss.get()));
    }

    /// Grows the window by `bytes`, up to the threshold (RFC 5681 §3.1). Gives what is left over
    /// for congestion avoidance.
    pub(crate) fn slow_start(&mut self, bytes: Bytes) -> Bytes {
        let room = self.ssthresh - self.size;
        let used = bytes.min(room);
        self.set(self.size + used);
        bytes - used
    }

    /// Reno's growth: slow start, then one packet per window acknowledged (RFC 5681 §3.1, eq. 3,
    /// by byte counting).
    pub(crate) fn grow_reno(&mut self, acked: Bytes) {
        let acked = if self.in_slow_start() { self.slow_start(acked) } else { acked };
        // No acknowledgement is for more than a few windows; the bound keeps the loop short.
        self.credit += acked.min(self.size * 8);
        while self.credit >= self.size {
            self.credit -= self.size;
            self.set(self.size + self.mss);
        }
    }

    /// Reduces window and threshold to `ssthresh` (at least 2 packets: RFC 5681 eq. 4).
    pub(crate) fn reduce(&mut self, ssthresh: Bytes) {
        self.remember();
        self.ssthresh = ssthresh.max(self.mss * 2).max(self.min);
        self.set(self.ssthresh);
        self.credit = Bytes::ZERO;
    }

    /// The window after a timeout: the least (RFC 5681 §3.1 "loss window", RFC 9002 §7.6.2). The
    /// threshold becomes `ssthresh` where the timeout opens a new episode.
    pub(crate) fn collapse(&mut self, ssthresh: Option<Bytes>) {
        if let Some(ssthresh) = ssthresh {
            self.remember();
            self.ssthresh = ssthresh.max(self.mss * 2).max(self.min);
        }
        self.set(self.min);
        self.credit = Bytes::ZERO;
    }

    fn remember(&mut self) {
        self.before = Some((self.size, self.ssthresh));
    }

    /// Takes back the last reduction (RFC 9438 §4.9; Linux `tcp_reno_undo_cwnd()`); whether there
    /// was one. What the window gained since stays.
    pub(crate) fn undo(&mut self) -> bool {
        let Some((size, ssthresh)) = self.before.take() else { return false };
        self.set(self.size.max(size));
        self.ssthresh = self.ssthresh.max(ssthresh);
        true
    }

    /// The window after an idle time: halved for each retransmission timeout that passed, down to
    /// the initial window (RFC 2861 §3.1; RFC 5681 §4.1 would go there at once). Three quarters of
    /// the window stay as the threshold, so that slow start finds it again quickly. What Linux
    /// does with `tcp_slow_start_after_idle`.
    pub(crate) fn restart(&mut self, idle: &Idle) {
        let floor = self.initial.min(self.size);
        self.ssthresh = self.ssthresh.max(self.size.mul_f64(0.75));
        let mut left = idle.idle - idle.rto;
        while !left.is_zero() && self.size > floor {
            self.size = (self.size / 2).max(floor);
            left -= idle.rto;
        }
        self.credit = Bytes::ZERO;
    }
}

/// The methods of [`CongestionControl`](crate::CongestionControl) that tell what the fields
/// `window` and `episode` of an algorithm are.
macro_rules! window_methods {
    ($self:ident) => {
        fn window(&$self) -> trimtab_units::Bytes {
            $self.window.size
        }

        fn ssthresh(&$self) -> Option<trimtab_units::Bytes> {
            $self.window.threshold()
        }

        fn phase(&$self) -> $crate::Phase {
            $crate::Phase::of_window(&$self.window, &$self.episode)
        }
    };
}
pub(crate) use window_methods;

/// The methods of [`CongestionControl`](crate::CongestionControl) that change the fields
/// `window` and `episode` of an algorithm: packets have another size, a loss was spurious.
macro_rules! repair_methods {
    ($self:ident) => {
        fn on_mtu(&mut $self, limits: &$crate::Config) {
            $self.window.resize(limits);
        }

        /// RFC 9438 §4.9 has it for CUBIC; Linux has it for all (`tcp_reno_undo_cwnd()`).
        fn on_spurious_loss(&mut $self, _now: trimtab_units::Time) {
            $self.episode.undo(&mut $self.window);
        }
    };
}
pub(crate) use repair_methods;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trimtab_units::{Duration, Time};

    const MSS: Bytes = Bytes::new(1500);

    /// A window of so many packets whose threshold is `ssthresh` packets.
    fn window(packets: u64, ssthresh: u64) -> Window {
        let config = Config { initial_window: MSS * packets, ..Config::with_mss(MSS, 0) };
        Window { ssthresh: MSS * ssthresh, ..Window::new(&config) }
    }

    fn idle(idle_ms: u64, rto_ms: u64) -> Idle {
        let ms = Duration::from_millis;
        Idle { now: Time::from_secs(9), idle: ms(idle_ms), rto: ms(rto_ms) }
    }

    /// RFC 9002 §7.2: ten packets first, two at least; a limit below one packet means one packet.
    #[test]
    fn packets_of_another_size_leave_the_window_and_change_its_growth() {
        let mut window = Window::new(&Config::with_mss(Bytes::new(1200), 0));
        window.reduce(Bytes::new(9000));
        window.resize(&Config::with_mss(Bytes::new(1500), 0));
        assert_eq!((window.size, window.packets()), (Bytes::new(9000), 6.0));
        window.grow_reno(Bytes::new(9000));
        assert_eq!(window.size, Bytes::new(10_500), "a packet in a round trip");
        window.collapse(None);
        assert_eq!(window.size, Bytes::new(3000));
        window.resize(&Config::with_mss(Bytes::new(9000), 0));
        assert_eq!(window.size, Bytes::new(18_000), "never below the new minimum");
    }

    #[test]
    fn a_new_window_keeps_the_limits_of_the_transport() {
        let new = Window::new(&Config::with_mss(MSS, 0));
        assert_eq!((new.size, new.min, new.initial), (MSS * 10, MSS * 2, MSS * 10));
        assert_eq!((new.threshold(), new.in_slow_start(), new.packets()), (None, true, 10.0));
        assert_eq!(new.packets_per_byte * 1500.0, 1.0);
        let narrow = Config { initial_window: MSS, min_window: MSS * 4, ..Config::default() };
        assert_eq!(Window::new(&narrow).size, MSS * 4, "never below the minimum");
        let nothing = Config {
            mss: Bytes::ZERO,
            initial_window: Bytes::ZERO,
            min_window: Bytes::ZERO,
            ..Config::default()
        };
        let least = Window::new(&nothing);
        assert_eq!(
            (least.mss, least.min, least.size),
            (Bytes::new(1), Bytes::new(1), Bytes::new(1))
        );
    }

    /// RFC 5681 §3.1: slow start grows by what is acknowledged, and ends at the threshold.
    #[test]
    fn slow_start_ends_at_the_threshold_and_leaves_the_rest() {
        let mut w = window(10, 14);
        assert_eq!(w.slow_start(MSS * 3), Bytes::ZERO);
        assert_eq!((w.size, w.in_slow_start()), (MSS * 13, true));
        assert_eq!(w.slow_start(MSS * 3), MSS * 2, "one fitted below the threshold");
        assert_eq!((w.size, w.in_slow_start()), (MSS * 14, false));
        assert_eq!(w.threshold(), Some(MSS * 14));
    }

    /// RFC 5681 §3.1, eq. 3: a window acknowledged is a packet more.
    #[test]
    fn a_window_acknowledged_is_a_packet_more() {
        let mut w = window(10, 10);
        w.grow_reno(MSS * 10 - Bytes::new(1));
        assert_eq!(w.size, MSS * 10, "one byte is missing");
        w.grow_reno(Bytes::new(1));
        assert_eq!(w.size, MSS * 11);
        w.grow_reno(MSS * (11 + 12));
        assert_eq!(w.size, MSS * 13, "two windows, of eleven and of twelve");
        // Across the threshold: 2 packets are slow start's, and 12 grow the window by one.
        let mut w = window(10, 12);
        w.grow_reno(MSS * 14);
        assert_eq!((w.size, w.threshold()), (MSS * 13, Some(MSS * 12)));
    }

    /// No acknowledgement counts for more than eight windows: 8 × 10 packets pay for windows of
    /// 10, 11, 12, 13, 14 and 15, which are 75.
    #[test]
    fn one_acknowledgement_counts_for_eight_windows_at_most() {
        let mut w = window(10, 10);
        w.grow_reno(MSS * 10_000);
        assert_eq!(w.size, MSS * 16);
    }

    /// RFC 5681 eq. 4: at least two packets are left, and credit for growth is not.
    #[test]
    fn a_reduction_leaves_two_packets_at_least_and_no_credit() {
        let mut w = window(10, 10);
        w.grow_reno(MSS * 9);
        w.reduce(MSS * 5);
        assert_eq!((w.size, w.threshold()), (MSS * 5, Some(MSS * 5)));
        w.grow_reno(MSS * 4);
        assert_eq!(w.size, MSS * 5, "the nine packets of before do not count");
        w.reduce(MSS);
        assert_eq!((w.size, w.ssthresh), (MSS * 2, MSS * 2));
        let mut wide = Window { min: MSS * 6, ..window(10, 10) };
        wide.reduce(MSS * 5);
        assert_eq!((wide.size, wide.ssthresh), (MSS * 6, MSS * 6), "the transport's minimum");
        // TCP's loss window is one packet, but the threshold is two (RFC 5681 eq. 4).
        let mut tcp = Window { min: MSS, ..window(10, 10) };
        tcp.collapse(Some(MSS));
        assert_eq!((tcp.size, tcp.ssthresh), (MSS, MSS * 2));
    }

    /// RFC 5681 §3.1: a second timeout without an acknowledgement holds the threshold.
    #[test]
    fn a_timeout_leaves_the_least_window_and_lowers_the_threshold_once() {
        let mut w = window(40, 40);
        w.collapse(Some(MSS * 20));
        assert_eq!((w.size, w.threshold(), w.in_slow_start()), (MSS * 2, Some(MSS * 20), true));
        w.collapse(None);
        assert_eq!((w.size, w.threshold()), (MSS * 2, Some(MSS * 20)));
        assert!(w.undo());
        assert_eq!((w.size, w.threshold()), (MSS * 40, Some(MSS * 40)));
        // Credit from before the timeout is gone, too.
        let mut w = window(10, 10);
        w.grow_reno(MSS * 9);
        w.collapse(None);
        w.ssthresh = w.size;
        w.grow_reno(MSS);
        assert_eq!(w.size, MSS * 2);
    }

    /// RFC 9438 §4.9: what was taken comes back, once; what was gained meanwhile stays.
    #[test]
    fn a_reduction_is_undone_once() {
        let mut w = window(10, 12);
        assert!(!w.undo(), "there was none");
        w.reduce(MSS * 5);
        assert!(w.undo());
        assert_eq!((w.size, w.ssthresh), (MSS * 10, MSS * 12));
        assert!(!w.undo());
        w.reduce(MSS * 5);
        w.set(MSS * 30);
        w.ssthresh = MSS * 31;
        assert!(w.undo());
        assert_eq!((w.size, w.ssthresh), (MSS * 30, MSS * 31));
    }

    /// RFC 2861 §3.1 as in Linux's `tcp_cwnd_restart`: a halving for each timeout beyond the first,
    /// down to the initial window; three quarters stay as the threshold (`tcp_current_ssthresh`).
    #[test]
    fn an_idle_time_halves_the_window_for_each_timeout_that_passed() {
        for (idle_ms, left) in [
            (100, 160),
            (200, 160),
            (201, 80),
            (400, 80),
            (401, 40),
            (601, 20),
            (801, 10),
            (9000, 10),
        ] {
            let mut w = Window { size: MSS * 160, ..window(10, 20) };
            w.restart(&idle(idle_ms, 200));
            assert_eq!(w.size, MSS * left, "{idle_ms} ms");
            assert_eq!(w.ssthresh, MSS * 120, "{idle_ms} ms");
        }
        let mut small = Window { size: MSS * 4, ..window(10, 20) };
        small.restart(&idle(9000, 200));
        assert_eq!((small.size, small.ssthresh), (MSS * 4, MSS * 20), "it is no reason to grow");
        // What was acknowledged before the pause grows nothing after it.
        let mut w = window(10, 10);
        w.grow_reno(MSS * 9);
        w.restart(&idle(100, 200));
        w.grow_reno(MSS);
        assert_eq!(w.size, MSS * 10);
    }

    #[test]
    fn a_window_of_another_algorithm_is_its_own_threshold() {
        let mut w = window(10, 12);
        w.reduce(MSS * 5);
        w.grow_reno(MSS * 4);
        w.take_over(MSS * 40);
        assert_eq!((w.size, w.threshold()), (MSS * 40, Some(MSS * 40)));
        w.grow_reno(MSS * 39);
        assert_eq!(w.size, MSS * 40, "no credit came along");
        assert!(!w.undo(), "and no reduction");
        w.take_over(MSS);
        assert_eq!(w.threshold(), Some(MSS * 2), "within the limits");
    }

    #[test]
    fn a_window_is_rounded_down_to_packets() {
        let mut w = window(10, 10);
        for (bytes, packets) in [(15_000, 10), (14_999, 9), (4_499, 2), (1, 2)] {
            w.size = Bytes::new(bytes);
            w.align();
            assert_eq!(w.size, MSS * packets, "{bytes}");
        }
        w.set(Bytes::MAX);
        assert_eq!(w.size, WINDOW_MAX);
    }

    proptest! {
        /// Byte counting (RFC 5681 §3.1): how the acknowledgements cut the bytes is nothing to the
        /// growth.
        #[test]
        fn growth_does_not_depend_on_how_acknowledgements_cut_the_bytes(
            packets in 2u64..200,
            cuts in prop::collection::vec(1u64..6000, 1..80),
        ) {
            let (mut one, mut parts) = (window(packets, packets), window(packets, packets));
            let all: u64 = cuts.iter().sum();
            prop_assume!(all <= packets * 1500 * 8);
            one.grow_reno(Bytes::new(all));
            for cut in cuts {
                parts.grow_reno(Bytes::new(cut));
            }
            prop_assert_eq!(one.size, parts.size);
        }

        /// A flow that loses nothing grows by at most a packet in each window (RFC 5681 §3.1), and
        /// an undo never lowers anything.
        #[test]
        fn undo_gives_back_at_least_what_was_taken(
            packets in 2u64..1000,
            keep in 0u64..1000,
            gained in 0u64..5000,
        ) {
            let mut w = window(packets, packets);
            let before = w.size;
            w.reduce(MSS * keep.min(packets));
            prop_assert!(w.size <= before);
            w.grow_reno(MSS * gained);
            let grown = w.size;
            prop_assert!(w.undo());
            prop_assert!(w.size >= before && w.size >= grown && w.ssthresh >= before);
        }
    }
}
