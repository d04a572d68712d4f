//! What `include/trimtab-cc-steer.h` declares.
#![expect(unsafe_code, reason = "C hands over pointers")]

use core::ffi::{CStr, c_char, c_int};

use trimtab_qoe::Model;
use trimtab_units::Time;

use crate::Connection;
use crate::ffi::{RawCc, of};

/// # Safety
/// `text` is null or ends with a zero.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// See `trimtab-cc-steer.h`.
///
/// # Safety
/// `cc` was created, `model` ends with a zero or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_steer(
    cc: *mut RawCc,
    now_ns: u64,
    model: *const c_char,
) -> c_int {
    // SAFETY: the caller's promises.
    let (name, connection) = unsafe { (text(model), of(cc)) };
    let Some(model) = Model::BUILT_IN.iter().find(|model| Some(model.name) == name) else {
        return -1;
    };
    connection.steer((model.make)(), Time::from_nanos(now_ns));
    0
}

/// See `trimtab-cc-steer.h`.
///
/// # Safety
/// `cc` was created, `name` ends with a zero or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_set_factor(
    cc: *mut RawCc,
    name: *const c_char,
    value: f64,
) -> c_int {
    // SAFETY: the caller's promises.
    let set = match unsafe { (of(cc).factors_mut(), text(name)) } {
        (Some(factors), Some(name)) => factors.set_named(name, value).is_ok(),
        _ => false,
    };
    if set { 0 } else { -1 }
}

/// See `trimtab-cc-steer.h`.
///
/// # Safety
/// `cc` was created, and is not used again before it is created again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_cc_free(cc: *mut RawCc) {
    // SAFETY: the caller's promise.
    unsafe { cc.cast::<Connection>().drop_in_place() };
}
