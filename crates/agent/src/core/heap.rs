//! Memory that the process has and does not use.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "the C library has no safe interface to its allocator")
)]

/// Returns whole pages of freed memory to the system. The allocator by itself does so only where
/// everything above them is free, which after a crowd of connections it hardly ever is.
///
/// It takes some milliseconds per 100 MB, so call it where much was freed. Does nothing where the C
/// library has no such call.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
