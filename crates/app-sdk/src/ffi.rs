//! The same for C, as `include/trimtab.h` declares it.
#![expect(unsafe_code, reason = "C hands over pointers and descriptors")]

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_double, c_int};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use trimtab_qoe::Factors;
use trimtab_units::{Bytes, Duration};

use crate::client::{Connection, HintError, Hints};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Keeps the message, and gives what C takes for failure.
fn failed(error: &HintError) -> c_int {
    say(&error.to_string());
    -1
}

fn say(message: &str) {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    ERROR.with_borrow_mut(|error| *error = text);
}

/// `struct trimtab_live`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawLive {
    request_bytes: c_double,
    remaining_bytes: c_double,
    chunk_bytes: c_double,
    buffer_s: c_double,
    mean_response_bytes: c_double,
}

impl From<RawLive> for Factors {
    fn from(raw: RawLive) -> Self {
        let known = |value: f64| (value.is_finite() && value >= 0.0).then_some(value);
        let size = |value: f64| known(value).map(|bytes| Bytes::new(bytes as u64));
        let mut live = Self::new();
        if let Some(size) = size(raw.request_bytes) {
            live = live.with_request(size);
        }
        if let Some(size) = size(raw.remaining_bytes) {
            live = live.with_remaining(size);
        }
        if let Some(size) = size(raw.chunk_bytes) {
            live = live.with_chunk(size);
        }
        if let Some(level) = known(raw.buffer_s) {
            live = live.with_buffer(Duration::from_secs_f64(level));
        }
        if let Some(size) = size(raw.mean_response_bytes) {
            live = live.with_mean_response(size);
        }
        live
    }
}

/// See `trimtab.h`.
///
/// # Safety
/// `path` is null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_hints_open(path: *const c_char) -> *mut Hints {
    let opened = if path.is_null() {
        Hints::connect()
    } else {
        // SAFETY: the caller's promise.
        let path = unsafe { CStr::from_ptr(path) };
        Hints::connect_to(Path::new(OsStr::from_bytes(path.to_bytes())))
    };
    match opened {
        Ok(hints) => Box::into_raw(Box::new(hints)),
        Err(error) => {
            failed(&error);
            std::ptr::null_mut()
        }
    }
}

/// See `trimtab.h`.
///
/// # Safety
/// `hints` is of [`trimtab_hints_open`] and not closed; `fd` is open; `model` is null or ends with
/// a zero; `live` is null or points to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_hints_describe(
    hints: *const Hints,
    fd: c_int,
    model: *const c_char,
    live: *const RawLive,
) -> c_int {
    // SAFETY: the caller's promise.
    let (hints, live) = unsafe { (hints.as_ref(), live.as_ref()) };
    let model = if model.is_null() {
        None
    } else {
        // SAFETY: the caller's promise.
        match unsafe { CStr::from_ptr(model) }.to_str() {
            Ok(model) => Some(model),
            Err(_) => {
                say("the model is no text in UTF-8");
                return -1;
            }
        }
    };
    let live = live.map_or_else(Factors::new, |live| Factors::from(*live));
    let (Some(hints), true) = (hints, fd >= 0) else {
        say("a handle and an open descriptor are needed");
        return -1;
    };
    // SAFETY: the caller's promise.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    hints.describe(socket, model, &live).map_or_else(|error| failed(&error), |_| 0)
}

/// See `trimtab.h`.
///
/// # Safety
/// As [`trimtab_hints_describe`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_hints_update(
    hints: *const Hints,
    fd: c_int,
    live: *const RawLive,
) -> c_int {
    // SAFETY: the caller's promise.
    let (hints, live) = unsafe { (hints.as_ref(), live.as_ref()) };
    let (Some(hints), Some(live), true) = (hints, live, fd >= 0) else {
        say("a handle, an open descriptor and values are needed");
        return -1;
    };
    // SAFETY: the caller's promise.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    Connection::of(socket)
        .and_then(|connection| hints.update(&connection, &Factors::from(*live)))
        .map_or_else(|error| failed(&error), |()| 0)
}

/// See `trimtab.h`.
#[unsafe(no_mangle)]
pub extern "C" fn trimtab_hints_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// See `trimtab.h`.
///
/// # Safety
/// `hints` is null, or of [`trimtab_hints_open`] and not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimtab_hints_close(hints: *mut Hints) {
    if !hints.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(hints) });
    }
}
