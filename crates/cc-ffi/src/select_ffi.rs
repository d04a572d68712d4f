//! What `include/trimtab-cc-select.h` declares.
#![expect(unsafe_code, reason = "C hands over pointers")]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::slice;

use trimtab_steer::select::Model;
use trimtab_units::{Bytes, Duration, Time};

use crate::ffi::{RawCc, of};

/// A learnt policy; C knows it by its address alone.
#[derive(Debug)]
pub struct RawPolicy(Arc<Model>);

/// See `trimtab-cc-select.h`.
///
/// # Safety
/// `bytes` has so many bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_policy_read(
    bytes: *const c_void,
    length: usize,
) -> *mut RawPolicy {
    if bytes.is_null() {
        return null_mut();
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice::from_raw_parts(bytes.cast::<u8>(), length) };
    match Model::parse(bytes) {
        Ok(model) => Box::into_raw(Box::new(RawPolicy(Arc::new(model)))),
        Err(_) => null_mut(),
    }
}

/// See `trimtab-cc-select.h`.
///
/// # Safety
/// `policy` was read and not freed yet, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_policy_free(policy: *mut RawPolicy) {
    if !policy.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(policy) });
    }
}

/// See `trimtab-cc-select.h`.
///
/// # Safety
/// `cc` was created; `policy` was read and not freed yet, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_select(
    cc: *mut RawCc,
    now_ns: u64,
    policy: *const RawPolicy,
    begin_with: c_int,
) -> c_int {
    // SAFETY: the caller's promises.
    let (connection, policy) = unsafe { (of(cc), policy.as_ref()) };
    let Some(RawPolicy(model)) = policy else { return -1 };
    let begin_with = usize::try_from(begin_with).ok();
    if begin_with.is_some_and(|number| number >= model.candidates().len()) {
        return -1;
    }
    connection.select(model.clone(), begin_with, Time::from_nanos(now_ns));
    0
}

/// See `trimtab-cc-select.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_suited(cc: *mut RawCc) -> c_int {
    // SAFETY: the caller's promise.
    let suited = unsafe { of(cc) }.suited();
    suited.and_then(|number| number.try_into().ok()).unwrap_or(-1)
}

/// See `trimtab-cc-select.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_response_sent(cc: *mut RawCc, waited_ns: u64) {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_response_sent(Duration::from_nanos(waited_ns));
}

/// See `trimtab-cc-select.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_on_response(cc: *mut RawCc, size_bytes: u64, took_ns: u64) {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.on_response(Bytes::new(size_bytes), Duration::from_nanos(took_ns));
}

/// See `trimtab-cc-select.h`.
///
/// # Safety
/// `cc` was created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_set_unsent(cc: *mut RawCc, unsent_bytes: u64) {
    // SAFETY: the caller's promise.
    unsafe { of(cc) }.set_unsent(Bytes::new(unsent_bytes));
}
