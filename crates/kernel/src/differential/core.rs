//! The C core, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::switch_core::CorePath;
use crate::knobs::Words;

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_host_copa_size() -> u64;
        pub(super) fn tt_host_copa_init(
            c: *mut u64,
            knobs: *const u32,
            mss: u32,
            least: u32,
            window: u64,
        );
        pub(super) fn tt_host_copa_knobs(c: *mut u64, knobs: *const u32);
        pub(super) fn tt_host_copa_ack(c: *mut u64, fields: *const u64);
        pub(super) fn tt_host_copa_loss(c: *mut u64, now_us: u64, lost: u64, newest_sent_us: u64);
        pub(super) fn tt_host_copa_marked(c: *mut u64, now_us: u64, newest_sent_us: u64);
        pub(super) fn tt_host_copa_timeout(c: *mut u64, now_us: u64);
        pub(super) fn tt_host_copa_idle(c: *mut u64);
        pub(super) fn tt_host_copa_first_sent(c: *mut u64, now_us: u64);
        pub(super) fn tt_host_copa_window_bytes(c: *const u64) -> u64;
        pub(super) fn tt_host_copa_pacing_bytes_per_s(c: *const u64) -> u64;
        pub(super) fn tt_host_copa_slow_start(c: *const u64) -> u32;
        pub(super) fn tt_host_copa_inverse_q16(c: *const u64) -> u32;
        pub(super) fn tt_host_copa_converged(c: *const u64) -> u32;
        pub(super) fn tt_host_copa_inherit(c: *mut u64);
        pub(super) fn tt_host_copa_take_over(c: *mut u64, path: *const u64, fields: *const u64);
    }
}

/// Number of fields of `struct tt_ack`.
pub(super) const ACK_FIELDS: usize = 9;

/// `struct tt_copa` and its functions.
pub(super) struct CoreCopa {
    /// As many words as the struct has, aligned as its widest field is.
    memory: Vec<u64>,
}

// SAFETY, for every call below: `memory` is as large as the struct and aligned for it, `init` has set it, `&mut` keeps
// others away, and the arrays have the lengths that `host.c` reads. The functions keep no pointer.
impl CoreCopa {
    pub(super) fn new(knobs: &Words, mss: u32, least: u32, window: u64) -> Self {
        let mut memory = vec![0; (c::tt_host_copa_size() as usize).div_ceil(8)];
        // SAFETY: see above.
        unsafe { c::tt_host_copa_init(memory.as_mut_ptr(), knobs.as_ptr(), mss, least, window) };
        Self { memory }
    }

    pub(super) fn set_knobs(&mut self, knobs: &Words) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_knobs(self.memory.as_mut_ptr(), knobs.as_ptr()) };
    }

    pub(super) fn on_ack(&mut self, fields: &[u64; ACK_FIELDS]) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_ack(self.memory.as_mut_ptr(), fields.as_ptr()) };
    }

    pub(super) fn on_loss(&mut self, now_us: u64, lost: u64, newest_sent_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_loss(self.memory.as_mut_ptr(), now_us, lost, newest_sent_us) };
    }

    pub(super) fn on_marked(&mut self, now_us: u64, newest_sent_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_marked(self.memory.as_mut_ptr(), now_us, newest_sent_us) };
    }

    pub(super) fn on_timeout(&mut self, now_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_timeout(self.memory.as_mut_ptr(), now_us) };
    }

    pub(super) fn on_idle(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_idle(self.memory.as_mut_ptr()) };
    }

    pub(super) fn on_first_sent(&mut self, now_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_first_sent(self.memory.as_mut_ptr(), now_us) };
    }

    pub(super) fn window(&self) -> u64 {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_window_bytes(self.memory.as_ptr()) }
    }

    pub(super) fn pacing(&self) -> u64 {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_pacing_bytes_per_s(self.memory.as_ptr()) }
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_slow_start(self.memory.as_ptr()) != 0 }
    }

    /// 1/delta in force, in 1/65536 packets.
    pub(super) fn inverse_delta(&self) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_inverse_q16(self.memory.as_ptr()) }
    }

    pub(super) fn is_converged(&self) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_converged(self.memory.as_ptr()) != 0 }
    }

    /// Goes on with the window that it has, by what is known of the path: now, that window, smoothed round-trip time,
    /// bytes delivered and in flight.
    pub(super) fn take_over(&mut self, path: &CorePath, fields: &[u64; 5]) {
        // SAFETY: see above; `path` is a struct of C's, too.
        unsafe {
            c::tt_host_copa_take_over(self.memory.as_mut_ptr(), path.as_ptr(), fields.as_ptr());
        }
    }

    pub(super) fn inherit(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_copa_inherit(self.memory.as_mut_ptr()) };
    }
}
