//! Which slots are taken: a bit each, which the programs set and clear, too.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use crate::mapping::Mapping;

const WORD: u32 = u64::BITS;

/// So many words hold a bit for each of these slots.
pub(crate) fn words(slots: u32) -> u32 {
    slots.div_ceil(WORD)
}

/// The bits, shared with the kernel.
#[derive(Debug)]
pub(crate) struct Taken(pub(crate) Mapping<AtomicU64>);

impl Taken {
    /// Marks what there is no slot for in the last word, so that no program takes it.
    pub(crate) fn begin(&self, slots: u32) {
        let beyond = slots % WORD;
        if let Some(last) = self.0.last().filter(|_| beyond != 0) {
            last.fetch_or(u64::MAX << beyond, AcqRel);
        }
    }

    /// The slots that are taken, of so many.
    pub(crate) fn slots(&self, slots: u32) -> impl Iterator<Item = u32> + '_ {
        let words = (0..).zip(self.0.iter().map(|word| word.load(Relaxed)));
        words
            .flat_map(|(word, bits)| {
                let set = (0..WORD).filter(move |bit| bits >> bit & 1 != 0);
                set.map(move |bit| word * WORD + bit)
            })
            .take_while(move |slot| *slot < slots)
    }

    /// A slot is free again.
    pub(crate) fn give(&self, slot: u32) {
        if let Some(word) = self.0.get((slot / WORD) as usize) {
            word.fetch_and(!(1 << (slot % WORD)), AcqRel);
        }
    }
}
