//! The C core, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::cores::core;
use super::switch_core::CorePath;
use crate::knobs::Words;

/// Number of fields of `struct tt_ack`.
pub(super) const ACK_FIELDS: usize = 9;

core! {
    /// `struct tt_copa` and its functions.
    CoreCopa, tt_host_copa_size;
    mut {
        init = tt_host_copa_init(knobs: &Words, mss: u32, least: u32, window: u64);
        set_knobs = tt_host_copa_knobs(knobs: &Words);
        on_ack = tt_host_copa_ack(fields: &[u64; ACK_FIELDS]);
        on_loss = tt_copa_on_loss(now_us: u64, lost: u64, newest_sent_us: u64);
        on_marked = tt_copa_on_marked(now_us: u64, newest_sent_us: u64);
        on_timeout = tt_copa_on_timeout(now_us: u64);
        on_idle = tt_copa_on_idle();
        on_first_sent = tt_copa_on_first_sent(now_us: u64);
        inherit = tt_copa_inherit();
    }
    ref {
        window = tt_copa_window_bytes() -> u64;
        pacing = tt_copa_pacing_bytes_per_s() -> u64;
        is_in_slow_start = tt_host_copa_slow_start() -> bool;
        /// 1/delta in force, in 1/65536 packets.
        inverse_delta = tt_copa_inverse_q16() -> u32;
        is_converged = tt_copa_is_converged() -> bool;
    }
}

impl CoreCopa {
    pub(super) fn new(knobs: &Words, mss: u32, least: u32, window: u64) -> Self {
        let mut core = Self::zero();
        core.init(knobs, mss, least, window);
        core
    }

    /// Goes on with the window that it has, by what is known of the path: now, that window, smoothed round-trip time,
    /// bytes delivered and in flight.
    pub(super) fn take_over(&mut self, path: &CorePath, fields: &[u64; 5]) {
        unsafe extern "C" {
            fn tt_host_copa_take_over(c: *mut u64, path: *const u64, fields: &[u64; 5]);
        }
        // SAFETY: as for the calls above; `path` is a struct of C's, too.
        unsafe { tt_host_copa_take_over(self.memory.as_mut_ptr(), path.as_ptr(), fields) };
    }
}
