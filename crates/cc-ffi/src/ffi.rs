//! What `include/trimtab-cc.h` declares.
#![expect(unsafe_code, reason = "C hands over pointers")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, align_of, size_of};

use trimtab_cc::muses::Trees;
use trimtab_cc::{
    Ack, Config, CongestionControl, Controller, Discarded, Loss, LostPacket, Marked, Phase,
    RateSample, Sent, Spec, Timeout, get_knob,
};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::connection::Connection;

/// Bytes of `struct trimtab_cc`, as the header has it.
pub const SIZE: usize = 8192;

/// `struct trimtab_cc`: room for a [`Connection`].
#[derive(Debug)]
#[repr(C, align(16))]
pub struct RawCc([MaybeUninit<u8>; SIZE]);

const _: () = assert!(size_of::<Connection>() <= SIZE && align_of::<Connection>() <= 16);
// It is written over without being dropped; what steers is dropped by `trimtab_cc_free`.
#[cfg(not(feature = "steer"))]
const _: () = assert!(!core::mem::needs_drop::<Connection>());

impl RawCc {
    /// Room for a connection that has not been created yet.
    pub const fn new() -> Self {
        Self([MaybeUninit::uninit(); SIZE])
    }
}

impl Default for RawCc {
    fn default() -> Self {
        Self::new()
    }
}

/// `struct trimtab_cc_config`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawConfig {
    /// Bytes of a full-size packet.
    pub mss_bytes: u64,
    /// 0 for 10 packets.
    pub initial_window_bytes: u64,
    /// 0 for 2 packets.
    pub min_window_bytes: u64,
    /// Of the algorithm's own randomness.
    pub seed: u64,
    /// Not 0 where the transport paces algorithms without a rate of their own.
    pub paced: u8,
}

/// `struct trimtab_cc_rate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawRate {
    /// 0 for no sample.
    pub interval_ns: u64,
    /// Delivered over the interval.
    pub delivered_bytes: u64,
    /// Delivered when the sampled packet was sent.
    pub prior_delivered_bytes: u64,
    /// In flight when it was sent, itself included.
    pub tx_in_flight_bytes: u64,
    /// Declared lost since.
    pub lost_bytes: u64,
    /// Not 0 where the application limited the sender then.
    pub app_limited: u8,
}

/// `struct trimtab_cc_ack`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawAck {
    /// When.
    pub now_ns: u64,
    /// Newly acknowledged.
    pub acked_bytes: u64,
    /// 0 where it is not known.
    pub rtt_ns: u64,
    /// Smoothed.
    pub srtt_ns: u64,
    /// Lowest of the connection.
    pub min_rtt_ns: u64,
    /// In flight after it.
    pub inflight_bytes: u64,
    /// In flight before it.
    pub prior_inflight_bytes: u64,
    /// Over the life of the connection.
    pub delivered_bytes: u64,
    /// When the newest packet that it acknowledges was sent.
    pub newest_sent_ns: u64,
    /// The sample of the delivery rate.
    pub rate: RawRate,
    /// Not 0 where the window limited the sender.
    pub cwnd_limited: u8,
    /// Not 0 in loss recovery.
    pub in_recovery: u8,
}

/// `struct trimtab_cc_loss`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawLoss {
    /// When.
    pub now_ns: u64,
    /// Declared lost.
    pub lost_bytes: u64,
    /// When the newest of them was sent.
    pub newest_sent_ns: u64,
    /// In flight after.
    pub inflight_bytes: u64,
    /// In flight before.
    pub prior_inflight_bytes: u64,
}

/// `struct trimtab_cc_lost_packet`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawLostPacket {
    /// When it was declared lost.
    pub now_ns: u64,
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// In flight when it was sent, itself included.
    pub tx_in_flight_bytes: u64,
    /// Declared lost since it was sent, itself included.
    pub lost_since_sent_bytes: u64,
    /// Delivered when it was sent.
    pub delivered_at_send_bytes: u64,
    /// Not 0 where the application limited the sender then.
    pub app_limited: u8,
    /// Not 0 where the packet before it was not lost.
    pub new_range: u8,
}

/// `struct trimtab_cc_marked`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawMarked {
    /// When.
    pub now_ns: u64,
    /// When the newest packet that the acknowledgement covers was sent.
    pub newest_sent_ns: u64,
    /// In flight after it.
    pub inflight_bytes: u64,
    /// In flight before it.
    pub prior_inflight_bytes: u64,
}

/// What stands for "nothing" among times.
const NEVER: u64 = u64::MAX;

fn config(raw: &RawConfig) -> Option<Config> {
    if !(1..=65_536).contains(&raw.mss_bytes) {
        return None;
    }
    let mut config = Config::with_mss(Bytes::new(raw.mss_bytes), raw.seed);
    config.paced = raw.paced != 0;
    if raw.initial_window_bytes > 0 {
        config.initial_window = Bytes::new(raw.initial_window_bytes);
    }
    if raw.min_window_bytes > 0 {
        config.min_window = Bytes::new(raw.min_window_bytes);
    }
    Some(config)
}

/// # Safety
/// `text` is null or ends with a zero.
unsafe fn spec(text: *const c_char) -> Option<Spec> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()?.parse().ok()
}

/// # Safety
/// `cc` is room for a connection.
unsafe fn put(cc: *mut RawCc, connection: Connection) -> c_int {
    // SAFETY: the room is as large and aligned as the assertions above ask for.
    unsafe { cc.cast::<Connection>().write(connection) };
    0
}

/// # Safety
/// `cc` holds a connection that was created, and nobody else uses it now.
pub(crate) unsafe fn of<'a>(cc: *mut RawCc) -> &'a mut Connection {
    // SAFETY: the caller's promise.
    unsafe { &mut *cc.cast::<Connection>() }
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` is room for a connection, `algorithm` ends with a zero, `config_` points to one; or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_create(
    cc: *mut RawCc,
    algorithm: *const c_char,
    config_: *const RawConfig,
) -> c_int {
    if cc.is_null() || config_.is_null() {
        return -1;
    }
    // SAFETY: the caller's promises.
    unsafe {
        match (spec(algorithm), config(&*config_)) {
            (Some(spec), Some(config)) => put(cc, Connection::new(&spec, &config)),
            _ => -1,
        }
    }
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// As of [`trimtab_cc_create`]; `model` has so many bytes, which stay as they are while the
/// connection is used; `safe` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_create_muses(
    cc: *mut RawCc,
    model: *const c_void,
    model_bytes: usize,
    safe: *const c_char,
    config_: *const RawConfig,
) -> c_int {
    if cc.is_null() || config_.is_null() || model.is_null() {
        return -1;
    }
    // SAFETY: the caller's promises.
    unsafe {
        let bytes = core::slice::from_raw_parts(model.cast::<u8>(), model_bytes);
        let (Ok(trees), Some(config)) = (Trees::parse(bytes), config(&*config_)) else { return -1 };
        let named = spec(safe);
        if named.is_none() && !safe.is_null() {
            return -1;
        }
        put(cc, Connection::learnt(trees, named, &config))
    }
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_established(cc: *mut RawCc, rtt_ns: u64) {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.controller_mut().on_established(Duration::from_nanos(rtt_ns));
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_sent(
    cc: *mut RawCc,
    now_ns: u64,
    bytes: u64,
    inflight_bytes: u64,
    app_limited: c_int,
) {
    let sent = Sent {
        now: Time::from_nanos(now_ns),
        bytes: Bytes::new(bytes),
        inflight: Bytes::new(inflight_bytes),
        app_limited: app_limited != 0,
    };
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_sent(&sent);
}

fn sample(raw: &RawRate) -> Option<RateSample> {
    (raw.interval_ns > 0).then(|| RateSample {
        delivered: Bytes::new(raw.delivered_bytes),
        interval: Duration::from_nanos(raw.interval_ns),
        prior_delivered: Bytes::new(raw.prior_delivered_bytes),
        app_limited: raw.app_limited != 0,
        tx_in_flight: Bytes::new(raw.tx_in_flight_bytes),
        lost: Bytes::new(raw.lost_bytes),
    })
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created, `ack` points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_ack(cc: *mut RawCc, ack: *const RawAck) {
    // SAFETY: the caller's promise.
    let raw = unsafe { &*ack };
    let ack = Ack {
        now: Time::from_nanos(raw.now_ns),
        acked: Bytes::new(raw.acked_bytes),
        rtt: (raw.rtt_ns > 0).then(|| Duration::from_nanos(raw.rtt_ns)),
        srtt: Duration::from_nanos(raw.srtt_ns),
        min_rtt: Duration::from_nanos(raw.min_rtt_ns),
        inflight: Bytes::new(raw.inflight_bytes),
        prior_inflight: Bytes::new(raw.prior_inflight_bytes),
        delivered: Bytes::new(raw.delivered_bytes),
        newest_sent_at: Time::from_nanos(raw.newest_sent_ns),
        rate: sample(&raw.rate),
        cwnd_limited: raw.cwnd_limited != 0,
        in_recovery: raw.in_recovery != 0,
    };
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_ack(&ack);
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created, `lost` points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_packet_lost(cc: *mut RawCc, lost: *const RawLostPacket) {
    // SAFETY: the caller's promise.
    let raw = unsafe { &*lost };
    let lost = LostPacket {
        now: Time::from_nanos(raw.now_ns),
        bytes: Bytes::new(raw.bytes),
        sent_at: Time::from_nanos(raw.sent_ns),
        tx_in_flight: Bytes::new(raw.tx_in_flight_bytes),
        lost_since_sent: Bytes::new(raw.lost_since_sent_bytes),
        app_limited: raw.app_limited != 0,
        delivered_at_send: Bytes::new(raw.delivered_at_send_bytes),
        new_range: raw.new_range != 0,
    };
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.controller_mut().on_packet_lost(&lost);
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created, `loss` points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_loss(cc: *mut RawCc, loss: *const RawLoss) {
    // SAFETY: the caller's promise.
    let raw = unsafe { &*loss };
    let loss = Loss {
        now: Time::from_nanos(raw.now_ns),
        lost: Bytes::new(raw.lost_bytes),
        newest_sent_at: Time::from_nanos(raw.newest_sent_ns),
        inflight: Bytes::new(raw.inflight_bytes),
        prior_inflight: Bytes::new(raw.prior_inflight_bytes),
    };
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_loss(&loss);
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_spurious_loss(cc: *mut RawCc, now_ns: u64) {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.controller_mut().on_spurious_loss(Time::from_nanos(now_ns));
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_discarded(
    cc: *mut RawCc,
    now_ns: u64,
    bytes: u64,
    inflight_bytes: u64,
) {
    let discarded = Discarded {
        now: Time::from_nanos(now_ns),
        bytes: Bytes::new(bytes),
        inflight: Bytes::new(inflight_bytes),
    };
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_discarded(&discarded);
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created, `config_` points to one or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_mtu(cc: *mut RawCc, config_: *const RawConfig) -> c_int {
    // SAFETY: the caller's promises.
    unsafe {
        match config_.as_ref().and_then(config) {
            Some(limits) => of(cc).on_mtu(&limits),
            None => return -1,
        }
    }
    0
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created, `algorithm` ends with a zero or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_change(
    cc: *mut RawCc,
    now_ns: u64,
    algorithm: *const c_char,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe {
        match spec(algorithm) {
            Some(spec) => of(cc).change(&spec, Time::from_nanos(now_ns)),
            None => return -1,
        }
    }
    0
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created, `marked` points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_marked(cc: *mut RawCc, marked: *const RawMarked) {
    // SAFETY: the caller's promise.
    let raw = unsafe { &*marked };
    let marked = Marked {
        now: Time::from_nanos(raw.now_ns),
        newest_sent_at: Time::from_nanos(raw.newest_sent_ns),
        inflight: Bytes::new(raw.inflight_bytes),
        prior_inflight: Bytes::new(raw.prior_inflight_bytes),
    };
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_marked(&marked);
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_timeout(
    cc: *mut RawCc,
    now_ns: u64,
    prior_inflight_bytes: u64,
    inflight_bytes: u64,
) {
    let timeout = Timeout {
        now: Time::from_nanos(now_ns),
        prior_inflight: Bytes::new(prior_inflight_bytes),
        inflight: Bytes::new(inflight_bytes),
    };
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_timeout(&timeout);
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_next_timer(cc: *mut RawCc) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.next_timer().map_or(NEVER, Time::as_nanos)
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_timer(cc: *mut RawCc, now_ns: u64) {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_timer(Time::from_nanos(now_ns));
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_window(cc: *mut RawCc) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.controller().window().get()
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_pacing_rate(cc: *mut RawCc) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.controller().pacing_rate().map_or(0, Rate::bytes_per_sec)
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created, `name` ends with a zero or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_knob(cc: *mut RawCc, name: *const c_char) -> f64 {
    if name.is_null() {
        return f64::NAN;
    }
    // SAFETY: the caller's promises.
    let (name, connection) = unsafe { (CStr::from_ptr(name), of(cc)) };
    let value = name.to_str().ok().and_then(|name| get_knob(connection.controller(), name));
    value.unwrap_or(f64::NAN)
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_phase(cc: *mut RawCc) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { of(cc) }.controller().phase() {
        Phase::SlowStart => 0,
        Phase::Drain => 1,
        Phase::Steady => 2,
        Phase::Recovery => 3,
        Phase::ProbeRtt => 4,
    }
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_tree(cc: *mut RawCc) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { of(cc) }.controller() {
        Controller::Muses(muses) => muses.tree().map_or(-1, |tree| tree as c_int),
        _ => -1,
    }
}

/// See `trimtab-cc.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_start_with(cc: *mut RawCc, tree: c_int) {
    // SAFETY: the caller's promise.
    let connection = unsafe { of(cc) };
    if let (Controller::Muses(muses), Ok(tree)) = (connection.controller_mut(), tree.try_into()) {
        muses.start_with(tree);
    }
}
