//! The C library: the functions of `trimtab-cc-ffi`, and what a library without `std` must bring itself.
#![no_std]

#[cfg(feature = "steer")]
mod allocator;

pub use trimtab_cc_ffi::*;

/// What the toolchain's own archive asks for, to unwind: that for Android, and elsewhere what reads
/// models. Nothing here unwinds.
#[cfg(any(target_os = "android", feature = "select"))]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Nothing in the library panics (its crates are tested with overflow checks on); if it did, the
/// caller could not go on.
#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
