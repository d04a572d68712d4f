//! The structs of `trimtab_plugin.h`, field by field. A test compares their layout by a C compiler.

use std::ffi::{c_char, c_void};

/// The version of the interface: `TRIMTAB_PLUGIN_ABI`.
pub(crate) const ABI: u32 = 1;

/// `TRIMTAB_MANAGES_RECOVERY`.
pub(crate) const MANAGES_RECOVERY: u32 = 1;

/// `TRIMTAB_NEVER`.
pub(crate) const NEVER: u64 = u64::MAX;

/// `struct trimtab_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawConfig {
    pub mss_bytes: u64,
    pub initial_window_bytes: u64,
    pub min_window_bytes: u64,
    pub seed: u64,
}

/// `struct trimtab_ack`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawAck {
    pub now_ns: u64,
    pub acked_bytes: u64,
    pub rtt_ns: u64,
    pub srtt_ns: u64,
    pub min_rtt_ns: u64,
    pub inflight_bytes: u64,
    pub prior_inflight_bytes: u64,
    pub delivered_bytes: u64,
    pub newest_sent_ns: u64,
    pub delivery_rate_bps: f64,
    pub rate_app_limited: u8,
    pub cwnd_limited: u8,
    pub in_recovery: u8,
    pub reserved: [u8; 5],
}

/// `struct trimtab_loss`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawLoss {
    pub now_ns: u64,
    pub lost_bytes: u64,
    pub newest_sent_ns: u64,
    pub inflight_bytes: u64,
    pub prior_inflight_bytes: u64,
}

/// `struct trimtab_timeout`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawTimeout {
    pub now_ns: u64,
    pub prior_inflight_bytes: u64,
    pub inflight_bytes: u64,
}

/// `struct trimtab_sent`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawSent {
    pub now_ns: u64,
    pub bytes: u64,
    pub inflight_bytes: u64,
    pub app_limited: u8,
    pub reserved: [u8; 7],
}

/// `struct trimtab_idle`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawIdle {
    pub now_ns: u64,
    pub idle_ns: u64,
    pub rto_ns: u64,
}

/// `struct trimtab_knob`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawKnob {
    pub name: *const c_char,
    pub unit: *const c_char,
    pub about: *const c_char,
    pub min: f64,
    pub max: f64,
    pub default_value: f64,
}

/// `struct trimtab_plugin`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header describes the fields")]
pub struct RawPlugin {
    pub abi: u32,
    pub size: u32,
    pub flags: u32,
    pub knob_count: u32,
    pub name: *const c_char,
    pub about: *const c_char,
    pub knobs: *const RawKnob,
    pub create: Option<unsafe extern "C" fn(*const RawConfig) -> *mut c_void>,
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    pub clone: Option<unsafe extern "C" fn(*const c_void) -> *mut c_void>,
    pub on_ack: Option<unsafe extern "C" fn(*mut c_void, *const RawAck)>,
    pub on_loss: Option<unsafe extern "C" fn(*mut c_void, *const RawLoss)>,
    pub on_timeout: Option<unsafe extern "C" fn(*mut c_void, *const RawTimeout)>,
    pub on_sent: Option<unsafe extern "C" fn(*mut c_void, *const RawSent)>,
    pub on_idle: Option<unsafe extern "C" fn(*mut c_void, *const RawIdle)>,
    pub on_timer: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    pub window: Option<unsafe extern "C" fn(*const c_void) -> f64>,
    pub pacing_rate: Option<unsafe extern "C" fn(*const c_void) -> f64>,
    pub next_timer: Option<unsafe extern "C" fn(*const c_void) -> u64>,
    pub set_knob: Option<unsafe extern "C" fn(*mut c_void, u32, f64)>,
}
