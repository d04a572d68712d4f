//! The C core of BBRv3, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::cores::core;
use super::switch_core::CorePath;
use crate::knobs::Words;

/// Numbers of fields of `struct tt_bbr3_ack` and `struct tt_bbr3_lost`.
pub(super) const ACK_FIELDS: usize = 16;
pub(super) const LOST_FIELDS: usize = 7;

core! {
    /// `struct tt_bbr3` and its functions.
    CoreBbr3, tt_host_bbr3_size;
    mut {
        init = tt_host_bbr3_init(knobs: &Words, mss: u32, initial: u32, window: u64, srtt_us: u32);
        set_knobs = tt_host_bbr3_knobs(knobs: &Words);
        on_ack = tt_host_bbr3_ack(fields: &[u64; ACK_FIELDS]);
        on_lost = tt_host_bbr3_lost(fields: &[u64; LOST_FIELDS]);
        /// When it arrived, when the newest packet was sent, and packets in flight before it.
        on_marked = tt_bbr3_on_marked(now_us: u64, newest_sent_us: u64, prior_inflight: u32);
        /// So many packets are left in flight.
        on_timeout = tt_bbr3_on_timeout(now_us: u64, inflight: u32);
        on_spurious_loss = tt_bbr3_on_spurious_loss();
        on_idle = tt_bbr3_on_idle(now_us: u64);
        on_first_sent = tt_bbr3_on_first_sent(now_us: u64, app_limited: bool);
        /// How long the next probe waits: a round more or not, and the share of half a wait more.
        draw = tt_host_bbr3_draw(round: bool, share_q32: u32);
    }
    ref {
        /// In bytes.
        window = tt_bbr3_window() -> u64;
        /// In bytes per second.
        pacing = tt_host_bbr3_pacing() -> u64;
        /// As a slot has it.
        phase = tt_bbr3_phase() -> u32;
        /// `enum tt_bbr3_mode`.
        mode = tt_host_bbr3_mode() -> u32;
        is_bounded = tt_host_bbr3_is_bounded() -> bool;
        is_converged = tt_bbr3_is_converged() -> bool;
        /// Packets that it hands over.
        operating_window = tt_bbr3_operating_window(srtt_us: u32, inflight: u32) -> u32;
        /// Whether the last draw was used.
        is_drawn = tt_host_bbr3_drawn() -> bool;
    }
}

impl CoreBbr3 {
    /// A new connection; a round-trip time of 0 is none.
    pub(super) fn new(knobs: &Words, mss: u64, window: u64, srtt_us: u64) -> Self {
        let mut core = Self::zero();
        core.init(knobs, mss as u32, 10, window, srtt_us as u32);
        core
    }

    /// Goes on by what is known of the path: now, the window in bytes, smoothed round-trip time,
    /// packets delivered and in flight. The others are used instead of the path's: the bandwidth,
    /// where not 0, the share that was lost in 1/65536, whether an empty queue was seen, and whether
    /// the old algorithm was of BBR's family.
    pub(super) fn take_over(&mut self, path: &CorePath, fields: &[u64; 9]) {
        unsafe extern "C" {
            fn tt_host_bbr3_take_over(b: *mut u64, path: *const u64, fields: &[u64; 9]);
        }
        // SAFETY: as for the calls above; `path` is a struct of C's, too.
        unsafe { tt_host_bbr3_take_over(self.memory.as_mut_ptr(), path.as_ptr(), fields) };
    }
}

core! {
    /// `struct tt_sent` and its functions.
    CoreSent, tt_host_sent_size;
    mut {
        /// So many packets were delivered, in flight and lost just before an acknowledgement.
        note = tt_host_sent_note(now: u64, srtt: u32, delivered: u32, inflight: u32, lost: u32);
    }
    ref {
        find_both = tt_host_sent_find(prior_delivered: u32) -> u64;
    }
}

impl CoreSent {
    pub(super) fn new() -> Self {
        Self::zero()
    }

    /// Packets in flight, and lost before, when one was sent with so many delivered.
    pub(super) fn find(&self, prior_delivered: u32) -> (u32, u32) {
        let both = self.find_both(prior_delivered);
        ((both >> 32) as u32, both as u32)
    }
}
