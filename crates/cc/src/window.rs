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
    /// The window of a new connection.
    pub(crate) initial: Bytes,
    /// The window.
    pub(crate) size: Bytes,
    /// Slow start ends here; [`Bytes::MAX`] until it is known.
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

    /// The window of another algorithm, and congestion avoidance from there on: the threshold is the
    /// window, and no earlier reduction can be undone.
    pub(crate) fn take_over(&mut self, size: Bytes) {
        self.set(size);
        self.ssthresh = self.size;
        self.credit = Bytes::ZERO;
        self.before = None;
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

    /// Rounds the window down to whole packets, as Linux counts it.
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

    /// Takes back the last reduction; whether there was one. What the window gained since stays.
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

/// The methods of [`CongestionControl`](crate::CongestionControl) that tell what the fields `window`
/// and `episode` of an algorithm are.
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
