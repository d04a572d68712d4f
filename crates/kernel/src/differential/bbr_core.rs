//! The C core of BBR, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::cores::core;
use super::switch_core::CorePath;
use crate::knobs::Words;

/// Number of fields of `struct tt_bbr_ack`.
pub(super) const ACK_FIELDS: usize = 18;

core! {
    /// `struct tt_bbr` and its functions.
    CoreBbr, tt_host_bbr_size;
    mut {
        init = tt_host_bbr_init(knobs: &Words, mss: u32, window: u32, srtt_us: u32);
        set_knobs = tt_host_bbr_knobs(knobs: &Words);
        on_ack = tt_host_bbr_ack(fields: &[u64; ACK_FIELDS]);
        on_loss = tt_bbr_on_loss();
        /// So much is left in flight, and was delivered and lost since the beginning, in packets.
        on_timeout = tt_bbr_on_timeout(now_us: u64, inflight: u32, delivered: u32, lost: u32);
        on_spurious_loss = tt_bbr_on_spurious_loss();
        on_idle = tt_bbr_on_idle(now_us: u64);
        on_first_sent = tt_bbr_on_first_sent(now_us: u64, app_limited: bool);
        /// Where the gain cycle begins next.
        draw = tt_host_bbr_draw(next: u32);
    }
    ref {
        /// In packets.
        window = tt_host_bbr_window() -> u32;
        /// In bytes per second.
        pacing = tt_host_bbr_pacing() -> u64;
        /// As a slot has it.
        phase = tt_bbr_phase() -> u32;
        is_policed = tt_host_bbr_policed() -> bool;
        is_converged = tt_bbr_is_converged() -> bool;
        /// Packets that it hands over.
        operating_window = tt_bbr_operating_window(srtt_us: u32, inflight: u32) -> u32;
        /// Whether the last draw was used.
        is_drawn = tt_host_bbr_drawn() -> bool;
    }
}

impl CoreBbr {
    /// Goes on from this window; a round-trip time of 0 is none.
    pub(super) fn new(knobs: &Words, mss: u64, window: u32, srtt_us: u64) -> Self {
        let mut core = Self::zero();
        core.init(knobs, mss as u32, window, srtt_us as u32);
        core
    }

    /// Goes on by what is known of the path: now, the window in bytes, smoothed round-trip time,
    /// packets delivered and in flight. The others are used instead of the path's: the recent
    /// bandwidth, where not 0, whether an empty queue was seen, and whether the old algorithm was of
    /// BBR's family.
    pub(super) fn take_over(&mut self, path: &CorePath, fields: &[u64; 8]) {
        unsafe extern "C" {
            fn tt_host_bbr_take_over(b: *mut u64, path: *const u64, fields: &[u64; 8]);
        }
        // SAFETY: as for the calls above; `path` is a struct of C's, too.
        unsafe { tt_host_bbr_take_over(self.memory.as_mut_ptr(), path.as_ptr(), fields) };
    }
}
