//! The C core of CUBIC, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::switch_core::CorePath;
use crate::knobs::Words;

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_host_cubic_size() -> u64;
        pub(super) safe fn tt_host_cubic_root(of: u64) -> u32;
        pub(super) safe fn tt_host_cubic_astray(packets: u32) -> u32;
        pub(super) fn tt_host_cubic_put_right(c: *mut u64, before: u32) -> u32;
        pub(super) fn tt_host_cubic_knobs(c: *mut u64, knobs: *const u32);
        pub(super) fn tt_host_cubic_rtt(c: *mut u64, fields: *const u64) -> u32;
        pub(super) fn tt_host_cubic_ack(c: *mut u64, w: u32, t: u32, acked: u32, now: u64) -> u32;
        pub(super) fn tt_host_cubic_loss(c: *mut u64, window: u32) -> u32;
        pub(super) fn tt_host_cubic_timeout(c: *mut u64);
        pub(super) fn tt_host_cubic_take_over(c: *mut u64, path: *const u64, window: u32);
        pub(super) fn tt_host_cubic_first_sent(c: *mut u64, now_us: u64, last_sent_us: u64);
    }
}

/// The whole part of the cube root of a number below 2^63.
pub(super) fn root(of: u64) -> u32 {
    c::tt_host_cubic_root(of)
}

/// Whether a window or a threshold is none that CUBIC gave.
pub(super) fn is_astray(packets: u32) -> bool {
    c::tt_host_cubic_astray(packets) != 0
}

/// `struct tt_cubic` and its functions.
pub(super) struct CoreCubic {
    /// As many words as the struct has, aligned as its widest field is.
    memory: Vec<u64>,
}

// SAFETY, for every call below: `memory` is as large as the struct and aligned for it, all zero is a new connection, `&mut`
// keeps others away, and the arrays have the lengths that `host.c` reads. The functions keep no pointer.
impl CoreCubic {
    pub(super) fn new(knobs: &Words) -> Self {
        let mut core = Self { memory: vec![0; (c::tt_host_cubic_size() as usize).div_ceil(8)] };
        core.set_knobs(knobs);
        core
    }

    pub(super) fn set_knobs(&mut self, knobs: &Words) {
        // SAFETY: see above.
        unsafe { c::tt_host_cubic_knobs(self.memory.as_mut_ptr(), knobs.as_ptr()) };
    }

    /// Whether slow start ends. The fields are those of `struct tt_round`, then the threshold.
    pub(super) fn leaves(&mut self, fields: &[u64; 7]) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_cubic_rtt(self.memory.as_mut_ptr(), fields.as_ptr()) != 0 }
    }

    pub(super) fn on_ack(&mut self, window: u32, threshold: u32, acked: u32, now_us: u64) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_cubic_ack(self.memory.as_mut_ptr(), window, threshold, acked, now_us) }
    }

    pub(super) fn on_loss(&mut self, window: u32) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_cubic_loss(self.memory.as_mut_ptr(), window) }
    }

    /// The window and the threshold to go on with when the kernel's went astray; before the cut it was this.
    pub(super) fn put_right(&mut self, before: u32) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_cubic_put_right(self.memory.as_mut_ptr(), before) }
    }

    pub(super) fn on_timeout(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_cubic_timeout(self.memory.as_mut_ptr()) };
    }

    pub(super) fn on_first_sent(&mut self, now_us: u64, last_sent_us: u64) {
        // SAFETY: see above.
        unsafe {
            c::tt_host_cubic_first_sent(self.memory.as_mut_ptr(), now_us, last_sent_us);
        }
    }

    /// Goes on with this window, which is its threshold, by what is known of the path.
    pub(super) fn take_over(&mut self, path: &CorePath, window: u32) {
        // SAFETY: see above; `path` is a struct of C's, too.
        unsafe { c::tt_host_cubic_take_over(self.memory.as_mut_ptr(), path.as_ptr(), window) };
    }
}
