//! How the tests call the C core.

/// A struct of C's with its functions as methods: those that change it, and those that read it.
/// Arrays have the lengths that `host.c` reads.
macro_rules! core {
    (
        $(#[$about:meta])* $core:ident, $size:ident;
        mut { $($(#[$m_doc:meta])* $m:ident = $m_c:ident($($m_arg:ident: $m_ty:ty),*) $(-> $m_out:ty)?;)* }
        ref { $($(#[$r_doc:meta])* $r:ident = $r_c:ident($($r_arg:ident: $r_ty:ty),*) $(-> $r_out:ty)?;)* }
    ) => {
        $(#[$about])*
        pub(super) struct $core {
            /// As many words as the struct has, aligned as its widest field is.
            memory: Vec<u64>,
        }

        // SAFETY, for every call below: `memory` is as large as the struct and aligned for it, all
        // zero is a state that it may have, `&mut` keeps others away, and C keeps no pointer.
        impl $core {
            fn zero() -> Self {
                unsafe extern "C" {
                    safe fn $size() -> u64;
                }
                Self { memory: vec![0; ($size() as usize).div_ceil(8)] }
            }

            $($(#[$m_doc])*
            pub(super) fn $m(&mut self, $($m_arg: $m_ty),*) $(-> $m_out)? {
                unsafe extern "C" {
                    fn $m_c(core: *mut u64, $($m_arg: $m_ty),*) $(-> $m_out)?;
                }
                // SAFETY: see above.
                unsafe { $m_c(self.memory.as_mut_ptr(), $($m_arg),*) }
            })*

            $($(#[$r_doc])*
            pub(super) fn $r(&self, $($r_arg: $r_ty),*) $(-> $r_out)? {
                unsafe extern "C" {
                    fn $r_c(core: *const u64, $($r_arg: $r_ty),*) $(-> $r_out)?;
                }
                // SAFETY: see above.
                unsafe { $r_c(self.memory.as_ptr(), $($r_arg),*) }
            })*
        }
    };
}

pub(super) use core;
