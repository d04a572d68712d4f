//! What the C core knows of a path, and when it switches, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::cores::core;

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_cubic_is_converged(window: u32, threshold: u32, rec: bool) -> bool;
    }
}

/// Whether CUBIC has converged, by what the kernel has of it.
pub(super) fn cubic_is_converged(window: u32, threshold: u32, recovering: bool) -> bool {
    c::tt_cubic_is_converged(window, threshold, recovering)
}

core! {
    /// `struct tt_path` and its functions.
    CorePath, tt_host_path_size;
    mut {
        /// Now, the smoothed round-trip time, a sample of it, one of the delivery rate in bytes per
        /// second, and whether the application limited that.
        on_sample = tt_path_on_sample(now: u64, srtt: u64, rtt: u64, rate: u64, app_limited: bool);
        /// A window is cut for marks.
        on_marked = tt_path_on_marked();
        /// The running algorithm cuts its window for losses, at this smoothed round-trip time.
        on_cut = tt_path_on_cut(srtt_us: u64);
        /// Another algorithm runs from here on, after a switch of this kind (`TT_HOW_*`).
        on_taken_over = tt_path_taken_over(how: u32);
        note_converged = tt_host_path_converged(converged: bool);
    }
    ref {
        /// In bytes per second.
        bandwidth = tt_path_bandwidth() -> u64;
        recent_bandwidth = tt_path_recent_bandwidth() -> u64;
        saw_empty_queue = tt_path_saw_empty_queue() -> bool;
        least_rtt = tt_host_path_min_rtt_us() -> u32;
        least_rtt_at = tt_host_path_min_rtt_at_us() -> u32;
        /// Whether it is time for a switch that was asked for (`TT_HOW_*`).
        is_due = tt_host_switch_is_due(how: u32, converged: bool, recovering: bool) -> bool;
        /// Whether the new algorithm starts from the beginning.
        starts_over = tt_switch_starts_over(converged: bool, has_delivered: bool) -> bool;
    }
}

impl CorePath {
    pub(super) fn new() -> Self {
        Self::zero()
    }

    pub(super) fn as_ptr(&self) -> *const u64 {
        self.memory.as_ptr()
    }

    /// The least round-trip time, and when it was seen, modulo 2^32.
    pub(super) fn min_rtt(&self) -> Option<(u32, u32)> {
        let rtt = self.least_rtt();
        (rtt != 0).then(|| (rtt, self.least_rtt_at()))
    }
}
