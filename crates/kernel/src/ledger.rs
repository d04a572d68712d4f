//! How many slots the connections of each cgroup hold: the programs count (`bpf/core/ledger.h`), and
//! who takes back the slot of a connection that is gone gives it back here, too.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::layout::LEDGER_COUNT_BITS;
use crate::mapping::Mapping;

const COUNT: u64 = (1 << LEDGER_COUNT_BITS) - 1;

/// A cgroup, and the slots that its connections hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its number, which is the inode of its folder.
    pub cgroup: u64,
    /// Slots, 1 at least.
    pub slots: u32,
}

/// The entries, shared with the kernel.
#[derive(Debug)]
pub(crate) struct Ledger(pub(crate) Mapping<AtomicU64>);

impl Ledger {
    /// A connection that counted on this entry has no slot any more. Some count on none.
    pub(crate) fn give(&self, entry: u32) {
        if let Some(word) = self.0.get(entry as usize) {
            word.fetch_sub(1, AcqRel);
        }
    }

    pub(crate) fn held(&self) -> Vec<Held> {
        held(&self.0)
    }
}

/// What the entries say, by the number of the cgroup. One may have two entries: see `core/ledger.h`.
pub(crate) fn held(entries: &[AtomicU64]) -> Vec<Held> {
    let mut all: BTreeMap<u64, u32> = BTreeMap::new();
    for word in entries.iter().map(|entry| entry.load(Relaxed)).filter(|word| word & COUNT != 0) {
        *all.entry(word >> LEDGER_COUNT_BITS).or_default() += (word & COUNT) as u32;
    }
    all.into_iter().map(|(cgroup, slots)| Held { cgroup, slots }).collect()
}
