//! The C core of CUBIC, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::cores::core;
use super::switch_core::CorePath;
use crate::knobs::Words;

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_cubic_root(of: u64) -> u32;
        pub(super) safe fn tt_cubic_is_astray(packets: u32) -> bool;
    }
}

/// The whole part of the cube root of a number below 2^63.
pub(super) fn root(of: u64) -> u32 {
    c::tt_cubic_root(of)
}

/// Whether a window or a threshold is none that CUBIC gave.
pub(super) fn is_astray(packets: u32) -> bool {
    c::tt_cubic_is_astray(packets)
}

core! {
    /// `struct tt_cubic` and its functions.
    CoreCubic, tt_host_cubic_size;
    mut {
        set_knobs = tt_host_cubic_knobs(knobs: &Words);
        /// Whether slow start ends. The fields are those of `struct tt_round`, then the threshold.
        leaves = tt_host_cubic_rtt(fields: &[u64; 7]) -> bool;
        on_ack = tt_host_cubic_ack(window: u32, threshold: u32, acked: u32, now_us: u64) -> u32;
        on_loss = tt_host_cubic_loss(window: u32) -> u32;
        /// The window and the threshold to go on with when the kernel's went astray; before the cut it was this.
        put_right = tt_host_cubic_put_right(before: u32) -> u32;
        on_timeout = tt_cubic_reset();
        on_first_sent = tt_cubic_on_first_sent(now_us: u64, last_sent_us: u64);
    }
    ref {}
}

impl CoreCubic {
    pub(super) fn new(knobs: &Words) -> Self {
        let mut core = Self::zero();
        core.set_knobs(knobs);
        core
    }

    /// Goes on with this window, which is its threshold, by what is known of the path.
    pub(super) fn take_over(&mut self, path: &CorePath, window: u32) {
        unsafe extern "C" {
            fn tt_host_cubic_take_over(c: *mut u64, path: *const u64, window: u32);
        }
        // SAFETY: as for the calls above; `path` is a struct of C's, too.
        unsafe { tt_host_cubic_take_over(self.memory.as_mut_ptr(), path.as_ptr(), window) };
    }
}
