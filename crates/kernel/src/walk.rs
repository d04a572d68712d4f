//! Slots whose connections are gone without the kernel having said so.
//!
//! The kernel calls `release` when a connection ends, and that frees its slot. There are kernels
//! that do not, at times: see "Hooks that do not run" in `docs/concepts/ebpf-datapath.md`. Then a
//! walk over the sockets, of all network namespaces, tells which slots have lost theirs.

use std::io::{self, ErrorKind, Read as _};
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use libbpf_rs::{Iter, Link};

use trimtab_datapath::FlowId;

use crate::error::Error;
use crate::layout::{Control, Slot};
use crate::ledger::Ledger;
use crate::mapping::Mapping;
use crate::taken::Taken;

const WHAT: &str = "walk over the sockets of our connections (iter/bpf_sk_storage_map)";

/// The walk, as the folder keeps it.
#[derive(Debug)]
pub(crate) struct Walk {
    link: Link,
}

impl Walk {
    pub(crate) fn open(link: &Path) -> Result<Self, Error> {
        Ok(Self { link: Link::open(link).map_err(|e| Error::of(WHAT, &e))? })
    }

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
        self.run().map_err(|e| Error::Kernel { what: WHAT, reason: e.to_string() })?;
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

    /// The program writes nothing here, so one reading is the whole walk.
    fn run(&self) -> io::Result<()> {
        let mut walk = Iter::new(&self.link).map_err(io::Error::other)?;
        loop {
            match walk.read(&mut [0]) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                // More than a million sockets: it goes on where it was.
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
    }
}
