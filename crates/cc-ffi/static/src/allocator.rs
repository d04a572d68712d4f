//! The allocator of the C library.

use core::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut u8;
    fn free(place: *mut u8);
}

struct System;

// SAFETY: what C gives is as large and as aligned as was asked for, or null.
unsafe impl GlobalAlloc for System {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: a layout's alignment is a power of two; C wants a multiple of it.
        unsafe { aligned_alloc(layout.align(), layout.pad_to_align().size()) }
    }

    unsafe fn dealloc(&self, place: *mut u8, _: Layout) {
        // SAFETY: it comes from `alloc`.
        unsafe { free(place) }
    }
}

#[global_allocator]
static ALLOCATOR: System = System;
