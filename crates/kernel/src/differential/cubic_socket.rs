//! CUBIC in the kernel's hands.
//!
//! Of a socket with CUBIC the kernel keeps window and threshold and decides what a loss episode is;
//! the core says how the window grows, when slow start ends and what a loss leaves. So this plays
//! the kernel.

use trimtab_units::Bytes;

use super::cubic_core::CoreCubic;
use super::driver::{Acked, Path};
use super::switch_core::CorePath;
use crate::knobs::Words;

/// A finite threshold in packets may be any; this one is of a socket that has none.
const NO_THRESHOLD: u32 = u32::MAX;

pub(super) struct SocketCubic {
    pub(super) core: CoreCubic,
    pub(super) window: u32,
    pub(super) threshold: u32,
    episode: Option<u64>,
    stalled: bool,
    /// Packets up to the first hole.
    cumulative: u64,
    /// Slow starts that HyStart ended.
    pub(super) exits: u64,
}

impl SocketCubic {
    pub(super) fn new(words: &Words, window: u32) -> Self {
        Self {
            core: CoreCubic::new(words),
            window,
            threshold: NO_THRESHOLD,
            episode: None,
            stalled: false,
            cumulative: 0,
            exits: 0,
        }
    }

    /// Goes on where another algorithm was, with the window that it has.
    pub(super) fn take_over(&mut self, path: &CorePath) {
        self.core.take_over(path, self.window);
        self.threshold = self.window;
    }

    /// An acknowledgement, before and after which the Rust algorithm was in recovery or not. In
    /// recovery the kernel's window is what is in flight.
    pub(super) fn on_ack(&mut self, path: &Path, acked: &Acked, before: bool, after: bool) {
        let stuck = before && self.episode.is_some_and(|start| acked.newest_sent_us < start);
        if !stuck {
            self.cumulative = path.gone;
        }
        self.stalled = false;
        let window = if after { acked.prior_inflight as u32 } else { self.window };
        let (threshold, sent_to) = (self.threshold.into(), path.sent_to());
        let round = [path.now, acked.rtt_us, self.cumulative, sent_to, window.into(), 1, threshold];
        if self.core.leaves(&round) {
            self.exits += 1;
            self.threshold = window;
            self.window = window;
        }
        if acked.ack.cwnd_limited && !after {
            let packets = acked.packets as u32;
            self.window = self.core.on_ack(self.window, self.threshold, packets, path.now);
        }
    }

    pub(super) fn on_loss(&mut self, path: &Path, newest_sent_us: u64) {
        if self.episode.is_none_or(|start| newest_sent_us > start) {
            self.episode = Some(path.now);
            self.threshold = self.core.on_loss(self.window);
            self.window = self.threshold;
        }
    }

    /// The Rust algorithm was in recovery before it, or not.
    pub(super) fn on_timeout(&mut self, path: &Path, before: bool) {
        if !before && !self.stalled {
            self.threshold = self.core.on_loss(self.window);
        }
        self.core.on_timeout();
        self.window = 1;
        self.episode = Some(path.now);
        self.stalled = true;
        self.cumulative = path.gone;
    }

    /// Whether an idle time leaves of the window what the Rust algorithm does: of other windows
    /// Rust keeps three quarters in bytes as the threshold, and the kernel in whole packets.
    pub(super) fn idles_alike(&self) -> bool {
        self.window.is_multiple_of(4)
    }

    /// What an idle time leaves is the kernel's rule, which is the Rust algorithm's.
    pub(super) fn adopt(&mut self, window: Bytes, threshold: Option<Bytes>, mss: u64) {
        self.window = (window.get() / mss) as u32;
        self.threshold = packets_of(threshold, mss);
    }
}

/// A threshold of the Rust algorithm as the kernel has it.
pub(super) fn packets_of(threshold: Option<Bytes>, mss: u64) -> u32 {
    threshold.map_or(NO_THRESHOLD, |bytes| (bytes.get() / mss) as u32)
}
