//! Congestion control for C: any algorithm of `trimtab-cc`, and Muses with the trees of a model, in
//! memory that the caller gives. No `std`, no allocator, no I/O, no clock. The feature `steer` adds
//! Mortise, which allocates, and `select` the choice of an algorithm by a learnt policy.
//!
//! `include/trimtab-cc.h` is what C sees and says what each function does; `static/` makes
//! `libtrimtab-cc.a` of this, on the host and for targets without an operating system. What to read
//! first: the header, then [`Connection`].
#![no_std]

#[cfg(feature = "steer")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod connection;
mod ffi;
#[cfg(feature = "select")]
mod select_ffi;
#[cfg(feature = "steer")]
mod steer_ffi;
#[cfg(feature = "steer")]
mod steering;

pub use connection::Connection;
pub use ffi::{
    RawAck, RawCc, RawConfig, RawLoss, RawLostPacket, RawMarked, RawRate, SIZE, trimtab_cc_change,
    trimtab_cc_create, trimtab_cc_create_muses, trimtab_cc_knob, trimtab_cc_next_timer,
    trimtab_cc_on_ack, trimtab_cc_on_discarded, trimtab_cc_on_established, trimtab_cc_on_loss,
    trimtab_cc_on_marked, trimtab_cc_on_mtu, trimtab_cc_on_packet_lost, trimtab_cc_on_sent,
    trimtab_cc_on_spurious_loss, trimtab_cc_on_timeout, trimtab_cc_on_timer,
    trimtab_cc_pacing_rate, trimtab_cc_phase, trimtab_cc_start_with, trimtab_cc_tree,
    trimtab_cc_window,
};
#[cfg(feature = "select")]
pub use select_ffi::{
    RawPolicy, trimtab_cc_on_response, trimtab_cc_on_response_sent, trimtab_cc_policy_free,
    trimtab_cc_policy_read, trimtab_cc_select, trimtab_cc_set_unsent, trimtab_cc_suited,
};
#[cfg(feature = "steer")]
pub use steer_ffi::{trimtab_cc_free, trimtab_cc_set_factor, trimtab_cc_steer};
