//! Slots whose connections are gone without the kernel having said so.
//!
//! The kernel calls `release` when a connection ends, and that frees its slot. There are kernels
//! that do not, at times: see "Hooks that do not run" in `docs/concepts/ebpf-datapath.md`. Then a
//! walk over the sockets, of all network namespaces, tells which slots have lost theirs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use rustix::io::Errno;
use trimtab_datapath::FlowId;

use crate::error::Error;
use crate::layout::{Control, Slot};
use crate::ledger::Ledger;
use crate::mapping::{Mapping, iterate};
use crate::taken::Taken;

const WHAT: &str = "walk over the sockets of our connections (iter/bpf_sk_storage_map)";

/// The descriptor of the walk that the folder keeps.
#[derive(Debug)]
pub(crate) struct Walk(pub(crate) OwnedFd);

impl Walk {
    /// Frees the slots of these connections whose sockets are gone, and gives those.
    ///
    /// A connection that is in `open` was open before the walk began. If it is during the walk,
    /// too, then the walk marks its slot; if its `release` runs meanwhile, then either that frees
    /// the slot or we do, by who changes its number first.
    pub(crate) fn reap(
        &self,
        open: &[(u32, FlowId)],
        slots: &Mapping<Slot>,
        taken: &Taken,
        ledger: &Ledger,
        control: &Control,
    ) -> Result<Vec<FlowId>, Error> {
        let this = control.walk.fetch_add(1, AcqRel).wrapping_add(1);
        // The program writes nothing, so one reading is the whole walk.
        walk(&self.0, &mut [0], |_| ())
            .map_err(|e| Error::Kernel { what: WHAT, reason: e.to_string() })?;
        let mut reaped = Vec::new();
        for &(index, FlowId(id)) in open {
            let slot = &slots[index as usize];
            // Another walk may have begun since: later than ours.
            let behind = this.wrapping_sub(slot.walk.load(Acquire)) as i32;
            if behind <= 0 || slot.id.compare_exchange(id, 0, AcqRel, Relaxed).is_err() {
                continue;
            }
            control.live.fetch_sub(1, Relaxed);
            ledger.give(slot.entry.load(Relaxed));
            taken.give(index);
            reaped.push(FlowId(id));
        }
        Ok(reaped)
    }
}

/// Walks once, and hands on what the program writes, in parts of at most the size of this buffer.
pub(crate) fn walk(
    link: &impl AsFd,
    buffer: &mut [u8],
    mut heard: impl FnMut(&[u8]),
) -> io::Result<()> {
    let walk = iterate(link)?;
    loop {
        match rustix::io::read(&walk, &mut *buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => heard(&buffer[..length]),
            // The kernel could not go on just then, or has met a million sockets: it goes on where
            // it was.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
