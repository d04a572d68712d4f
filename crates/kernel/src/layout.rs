//! Rust's side of `bpf/layout.h`, made from it by the build script. Every field is an atomic: the kernel writes while
//! user space reads.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// How a knob becomes an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::upper_case_acronyms, reason = "spelled as in the C header that they come from")]
pub(crate) enum Code {
    /// The value times the scale.
    PLAIN,
    /// The scale over the value.
    INVERSE,
    /// As `PLAIN`, but HyStart++ becomes Linux's HyStart.
    HYSTART,
}

/// A knob of the kernel's side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded {
    /// Its name in `trimtab_cc`'s table.
    pub(crate) name: &'static str,
    pub(crate) scale: u32,
    pub(crate) code: Code,
}

/// What the layout has of an algorithm.
#[derive(Debug)]
pub(crate) struct InLayout {
    /// As a slot has it, and the knob `safe` of Muses.
    pub(crate) number: u32,
    /// How its knobs become integers, in the order of [`Algorithm::knobs`](crate::Algorithm::knobs).
    pub(crate) knobs: &'static [Encoded],
    /// Its knobs on a connection, which has a place for those of every algorithm.
    pub(crate) of_slot: fn(&Slot) -> &[AtomicU32],
    /// Its knobs for connections to come.
    pub(crate) defaults: fn(&Control) -> &[AtomicU32; KNOBS_MAX],
}

/// The first bytes of a message.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

include!(concat!(env!("OUT_DIR"), "/layout.rs"));
