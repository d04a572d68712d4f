//! What the C core knows of a path, and when it switches, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_host_path_size() -> u64;
        pub(super) safe fn tt_host_cubic_converged(window: u32, threshold: u32, rec: u32) -> u32;
        pub(super) fn tt_host_path_sample(path: *mut u64, fields: *const u64);
        pub(super) fn tt_host_path_marked(path: *mut u64);
        pub(super) fn tt_host_path_cut(path: *mut u64, srtt_us: u64);
        pub(super) fn tt_host_path_taken_over(path: *mut u64, how: u32);
        pub(super) fn tt_host_path_bandwidth(path: *const u64) -> u64;
        pub(super) fn tt_host_path_converged(path: *mut u64, converged: u32);
        pub(super) fn tt_host_path_min_rtt_us(path: *const u64) -> u32;
        pub(super) fn tt_host_path_min_rtt_at_us(path: *const u64) -> u32;
        pub(super) fn tt_host_switch_is_due(p: *const u64, how: u32, conv: u32, rec: u32) -> u32;
        pub(super) fn tt_host_switch_starts_over(p: *const u64, conv: u32, delivered: u32) -> u32;
    }
}

/// Whether CUBIC has converged, by what the kernel has of it.
pub(super) fn cubic_is_converged(window: u32, threshold: u32, recovering: bool) -> bool {
    c::tt_host_cubic_converged(window, threshold, recovering.into()) != 0
}

/// `struct tt_path` and its functions.
pub(super) struct CorePath {
    /// As many words as the struct has, aligned as its widest field is.
    memory: Vec<u64>,
}

// SAFETY, for every call below: `memory` is as large as the struct and aligned for it, all zero is a new connection, and
// `&mut` keeps others away. The functions keep no pointer.
impl CorePath {
    pub(super) fn new() -> Self {
        Self { memory: vec![0; (c::tt_host_path_size() as usize).div_ceil(8)] }
    }

    pub(super) fn as_ptr(&self) -> *const u64 {
        self.memory.as_ptr()
    }

    /// Now, the smoothed round-trip time, a sample of it, one of the delivery rate in bytes per second, and whether
    /// the application limited that.
    pub(super) fn on_sample(&mut self, fields: &[u64; 5]) {
        // SAFETY: see above, and the array has the length that `host.c` reads.
        unsafe { c::tt_host_path_sample(self.memory.as_mut_ptr(), fields.as_ptr()) };
    }

    /// A window is cut for marks.
    pub(super) fn on_marked(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_path_marked(self.memory.as_mut_ptr()) };
    }

    /// The running algorithm cuts its window for losses, at this smoothed round-trip time.
    pub(super) fn on_cut(&mut self, srtt_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_path_cut(self.memory.as_mut_ptr(), srtt_us) };
    }

    /// Another algorithm runs from here on, after a switch of this kind (`TT_HOW_*`).
    pub(super) fn on_taken_over(&mut self, how: u32) {
        // SAFETY: see above.
        unsafe { c::tt_host_path_taken_over(self.memory.as_mut_ptr(), how) };
    }

    /// In bytes per second.
    pub(super) fn bandwidth(&self) -> u64 {
        // SAFETY: see above.
        unsafe { c::tt_host_path_bandwidth(self.memory.as_ptr()) }
    }

    pub(super) fn note_converged(&mut self, converged: bool) {
        // SAFETY: see above.
        unsafe { c::tt_host_path_converged(self.memory.as_mut_ptr(), converged.into()) };
    }

    /// The least round-trip time, and when it was seen, modulo 2^32.
    pub(super) fn min_rtt(&self) -> Option<(u32, u32)> {
        // SAFETY: see above.
        let (rtt, at) = unsafe {
            let path = self.memory.as_ptr();
            (c::tt_host_path_min_rtt_us(path), c::tt_host_path_min_rtt_at_us(path))
        };
        (rtt != 0).then_some((rtt, at))
    }

    /// Whether it is time for a switch that was asked for (`TT_HOW_*`).
    pub(super) fn is_due(&self, how: u32, converged: bool, recovering: bool) -> bool {
        let (converged, recovering) = (converged.into(), recovering.into());
        // SAFETY: see above.
        unsafe { c::tt_host_switch_is_due(self.memory.as_ptr(), how, converged, recovering) != 0 }
    }

    /// Whether the new algorithm starts from the beginning.
    pub(super) fn starts_over(&self, converged: bool, has_delivered: bool) -> bool {
        let (converged, delivered) = (converged.into(), has_delivered.into());
        // SAFETY: see above.
        unsafe { c::tt_host_switch_starts_over(self.memory.as_ptr(), converged, delivered) != 0 }
    }
}
