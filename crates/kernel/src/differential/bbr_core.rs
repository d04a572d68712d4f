//! The C core of BBR, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::switch_core::CorePath;
use crate::knobs::Words;

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_host_bbr_size() -> u64;
        pub(super) fn tt_host_bbr_knobs(b: *mut u64, knobs: *const u32);
        pub(super) fn tt_host_bbr_init(
            b: *mut u64,
            knobs: *const u32,
            mss: u32,
            window: u32,
            srtt_us: u32,
        );
        pub(super) fn tt_host_bbr_ack(b: *mut u64, fields: *const u64);
        pub(super) fn tt_host_bbr_loss(b: *mut u64);
        pub(super) fn tt_host_bbr_timeout(
            b: *mut u64,
            now_us: u64,
            inflight: u32,
            delivered: u32,
            lost: u32,
        );
        pub(super) fn tt_host_bbr_spurious_loss(b: *mut u64);
        pub(super) fn tt_host_bbr_idle(b: *mut u64, now_us: u64);
        pub(super) fn tt_host_bbr_first_sent(b: *mut u64, now_us: u64, app_limited: u32);
        pub(super) fn tt_host_bbr_window(b: *const u64) -> u32;
        pub(super) fn tt_host_bbr_pacing_bytes_per_s(b: *const u64) -> u64;
        pub(super) fn tt_host_bbr_phase(b: *const u64) -> u32;
        pub(super) fn tt_host_bbr_policed(b: *const u64) -> u32;
        pub(super) fn tt_host_bbr_converged(b: *const u64) -> u32;
        pub(super) fn tt_host_bbr_operating_window(
            b: *const u64,
            srtt_us: u32,
            inflight: u32,
        ) -> u32;
        pub(super) fn tt_host_bbr_take_over(b: *mut u64, path: *const u64, fields: *const u64);
        pub(super) fn tt_host_bbr_drawn(b: *const u64) -> u32;
        pub(super) fn tt_host_bbr_draw(b: *mut u64, draw: u32);
    }
}

/// Number of fields of `struct tt_bbr_ack`.
pub(super) const ACK_FIELDS: usize = 18;

/// `struct tt_bbr` and its functions.
pub(super) struct CoreBbr {
    /// As many words as the struct has, aligned as its widest field is.
    memory: Vec<u64>,
}

// SAFETY, for every call below: `memory` is as large as the struct and aligned for it, `init` has set it, `&mut` keeps
// others away, and the arrays have the lengths that `host.c` reads. The functions keep no pointer.
impl CoreBbr {
    /// Goes on from this window; a round-trip time of 0 is none.
    pub(super) fn new(knobs: &Words, mss: u64, window: u32, srtt_us: u64) -> Self {
        let mut memory = vec![0; (c::tt_host_bbr_size() as usize).div_ceil(8)];
        let (mss, srtt_us) = (mss as u32, srtt_us as u32);
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_init(memory.as_mut_ptr(), knobs.as_ptr(), mss, window, srtt_us) };
        Self { memory }
    }

    pub(super) fn set_knobs(&mut self, knobs: &Words) {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_knobs(self.memory.as_mut_ptr(), knobs.as_ptr()) };
    }

    pub(super) fn on_ack(&mut self, fields: &[u64; ACK_FIELDS]) {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_ack(self.memory.as_mut_ptr(), fields.as_ptr()) };
    }

    pub(super) fn on_loss(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_loss(self.memory.as_mut_ptr()) };
    }

    /// So much is left in flight, and was delivered and lost since the beginning, in packets.
    pub(super) fn on_timeout(&mut self, now_us: u64, inflight: u64, delivered: u64, lost: u64) {
        let (inflight, delivered, lost) = (inflight as u32, delivered as u32, lost as u32);
        // SAFETY: see above.
        unsafe {
            c::tt_host_bbr_timeout(self.memory.as_mut_ptr(), now_us, inflight, delivered, lost);
        }
    }

    pub(super) fn on_spurious_loss(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_spurious_loss(self.memory.as_mut_ptr()) };
    }

    pub(super) fn on_idle(&mut self, now_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_idle(self.memory.as_mut_ptr(), now_us) };
    }

    pub(super) fn on_first_sent(&mut self, now_us: u64, app_limited: bool) {
        // SAFETY: see above.
        unsafe {
            c::tt_host_bbr_first_sent(self.memory.as_mut_ptr(), now_us, app_limited.into());
        }
    }

    /// In packets.
    pub(super) fn window(&self) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_window(self.memory.as_ptr()) }
    }

    /// In bytes per second.
    pub(super) fn pacing(&self) -> u64 {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_pacing_bytes_per_s(self.memory.as_ptr()) }
    }

    /// As a slot has it.
    pub(super) fn phase(&self) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_phase(self.memory.as_ptr()) }
    }

    pub(super) fn is_policed(&self) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_policed(self.memory.as_ptr()) != 0 }
    }

    pub(super) fn is_converged(&self) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_converged(self.memory.as_ptr()) != 0 }
    }

    /// Packets that it hands over.
    pub(super) fn operating_window(&self, srtt_us: u64, inflight: u64) -> u32 {
        let (srtt_us, inflight) = (srtt_us as u32, inflight as u32);
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_operating_window(self.memory.as_ptr(), srtt_us, inflight) }
    }

    /// Goes on by what is known of the path: now, the window in bytes, smoothed round-trip time, packets delivered and in
    /// flight; and the bandwidth, where it is not 0 instead of the path's.
    pub(super) fn take_over(&mut self, path: &CorePath, fields: &[u64; 6]) {
        // SAFETY: see above; `path` is a struct of C's, too.
        unsafe {
            c::tt_host_bbr_take_over(self.memory.as_mut_ptr(), path.as_ptr(), fields.as_ptr());
        }
    }

    /// Whether the last draw of where the gain cycle begins was used.
    pub(super) fn is_drawn(&self) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_drawn(self.memory.as_ptr()) != 0 }
    }

    /// The next one.
    pub(super) fn draw(&mut self, next: u8) {
        // SAFETY: see above.
        unsafe { c::tt_host_bbr_draw(self.memory.as_mut_ptr(), next.into()) };
    }
}
