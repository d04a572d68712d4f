//! The C core of Vivace, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use super::cores::core;
use crate::knobs::Words;

core! {
    /// `struct tt_vivace` and its functions.
    CoreVivace, tt_host_vivace_size;
    mut {
        init = tt_host_vivace_init(knobs: &Words, mss: u32, window: u32, down_first: bool);
        set_knobs = tt_host_vivace_knobs(knobs: &Words);
        on_established = tt_host_vivace_established(rtt_us: u64);
        /// A packet leaves after so many.
        on_send = tt_vivace_on_send(now_us: u64, sent: u32, app_limited: u32) -> i32;
        /// Now, when the newest was sent, round-trip time, smoothed, packets; and the delivery rate,
        /// packets in microseconds.
        on_ack = tt_host_vivace_ack(fields: &[u64; 7]);
        on_lost = tt_vivace_on_lost(sent_us: u64, packets: u32);
        /// So many packets were in flight.
        on_marked = tt_vivace_on_marked(now_us: u64, newest_sent_us: u64, inflight: u32);
        on_timeout = tt_host_vivace_timeout();
        /// Now, window in bytes, smoothed round-trip time, bandwidth, least round-trip time, when
        /// that was, and whether losses starved the one before.
        take_over = tt_host_vivace_take_over(fields: &[u64; 7]);
        inherit = tt_vivace_inherit(window_bytes: u64, srtt_us: u64);
    }
    ref {
        /// In packets.
        window = tt_host_vivace_window() -> u64;
        /// In bytes per second.
        pacing = tt_vivace_pacing_bytes_per_s() -> u64;
        is_starting = tt_host_vivace_starting() -> bool;
        /// Packets that it hands over.
        operating_window = tt_vivace_operating_window() -> u32;
    }
}

impl CoreVivace {
    /// A new connection; of the first pair of probes the lower goes first or last.
    pub(super) fn new(knobs: &Words, mss: u64, window: u32, down_first: bool) -> Self {
        let mut core = Self::zero();
        core.init(knobs, mss as u32, window, down_first);
        core
    }
}
