//! The C core of Vivace, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use crate::knobs::Words;

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_host_vivace_size() -> u64;
        pub(super) fn tt_host_vivace_init(
            v: *mut u64,
            knobs: *const u32,
            mss: u32,
            window: u32,
            down_first: u32,
        );
        pub(super) fn tt_host_vivace_knobs(v: *mut u64, knobs: *const u32);
        pub(super) fn tt_host_vivace_established(v: *mut u64, rtt_us: u64);
        pub(super) fn tt_host_vivace_send(v: *mut u64, now_us: u64, sent: u32, app_limited: u32);
        pub(super) fn tt_host_vivace_ack(v: *mut u64, fields: *const u64);
        pub(super) fn tt_host_vivace_lost(v: *mut u64, sent_us: u64, packets: u32);
        pub(super) fn tt_host_vivace_marked(v: *mut u64, now: u64, newest: u64, inflight: u32);
        pub(super) fn tt_host_vivace_timeout(v: *mut u64);
        pub(super) fn tt_host_vivace_window(v: *const u64) -> u64;
        pub(super) fn tt_host_vivace_pacing_bytes_per_s(v: *const u64) -> u64;
        pub(super) fn tt_host_vivace_starting(v: *const u64) -> u32;
        pub(super) fn tt_host_vivace_operating_window(v: *const u64) -> u32;
        pub(super) fn tt_host_vivace_take_over(v: *mut u64, fields: *const u64);
        pub(super) fn tt_host_vivace_inherit(v: *mut u64, window_bytes: u64, srtt_us: u64);
    }
}

/// `struct tt_vivace` and its functions.
pub(super) struct CoreVivace {
    /// As many words as the struct has, aligned as its widest field is.
    memory: Vec<u64>,
}

// SAFETY, for every call below: `memory` is as large as the struct and aligned for it, `init` has set it, `&mut` keeps
// others away, and the arrays have the lengths that `host.c` reads. The functions keep no pointer.
impl CoreVivace {
    /// A new connection; of the first pair of probes the lower goes first or last.
    pub(super) fn new(knobs: &Words, mss: u64, window: u32, down_first: bool) -> Self {
        let mut memory = vec![0; (c::tt_host_vivace_size() as usize).div_ceil(8)];
        // SAFETY: see above.
        unsafe {
            c::tt_host_vivace_init(
                memory.as_mut_ptr(),
                knobs.as_ptr(),
                mss as u32,
                window,
                down_first.into(),
            );
        }
        Self { memory }
    }

    pub(super) fn set_knobs(&mut self, knobs: &Words) {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_knobs(self.memory.as_mut_ptr(), knobs.as_ptr()) };
    }

    pub(super) fn on_established(&mut self, rtt_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_established(self.memory.as_mut_ptr(), rtt_us) };
    }

    /// A packet leaves after so many.
    pub(super) fn on_send(&mut self, now_us: u64, sent: u64, app_limited: bool) {
        // SAFETY: see above.
        unsafe {
            c::tt_host_vivace_send(
                self.memory.as_mut_ptr(),
                now_us,
                sent as u32,
                app_limited.into(),
            );
        }
    }

    /// Now, when the newest was sent, round-trip time, smoothed, packets; and the delivery rate, packets in microseconds.
    pub(super) fn on_ack(&mut self, fields: &[u64; 7]) {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_ack(self.memory.as_mut_ptr(), fields.as_ptr()) };
    }

    pub(super) fn on_lost(&mut self, sent_us: u64, packets: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_lost(self.memory.as_mut_ptr(), sent_us, packets as u32) };
    }

    /// So many packets were in flight.
    pub(super) fn on_marked(&mut self, now: u64, newest_sent: u64, inflight: u64) {
        let memory = self.memory.as_mut_ptr();
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_marked(memory, now, newest_sent, inflight as u32) };
    }

    pub(super) fn on_timeout(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_timeout(self.memory.as_mut_ptr()) };
    }

    /// In packets.
    pub(super) fn window(&self) -> u64 {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_window(self.memory.as_ptr()) }
    }

    /// In bytes per second.
    pub(super) fn pacing(&self) -> u64 {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_pacing_bytes_per_s(self.memory.as_ptr()) }
    }

    pub(super) fn is_starting(&self) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_starting(self.memory.as_ptr()) != 0 }
    }

    /// Packets that it hands over.
    pub(super) fn operating_window(&self) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_operating_window(self.memory.as_ptr()) }
    }

    /// Now, window in bytes, smoothed round-trip time, bandwidth, least round-trip time, when that was, and whether losses starved the
    /// one before.
    pub(super) fn take_over(&mut self, fields: &[u64; 7]) {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_take_over(self.memory.as_mut_ptr(), fields.as_ptr()) };
    }

    pub(super) fn inherit(&mut self, window_bytes: u64, srtt_us: u64) {
        // SAFETY: see above.
        unsafe { c::tt_host_vivace_inherit(self.memory.as_mut_ptr(), window_bytes, srtt_us) };
    }
}
