//! The C core of Muses, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use std::sync::atomic::AtomicU64;

use trimtab_cc::muses::{COMPONENTS, INPUTS, Inputs, State};

use crate::knobs::Words;
use crate::layout::{INPUT_WORDS, MODELS_MAX, Model, NODES_MAX};

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_host_muses_size() -> u64;
        pub(super) safe fn tt_host_log2(x: u64) -> i16;
        pub(super) fn tt_host_muses_models(models: *const u8, nodes: *const u64);
        pub(super) fn tt_host_muses_walk(model: u32, tree: u32, inputs: *const i16) -> u32;
        pub(super) fn tt_host_muses_knows(model: u32, state: *const i16) -> u32;
        pub(super) fn tt_host_muses_segment(model: u32, component: u32, state: *const i16) -> u32;
        pub(super) fn tt_host_muses_knobs(m: *mut u64, knobs: *const u32);
        pub(super) fn tt_host_muses_init(m: *mut u64, knobs: *const u32, window: u32);
        pub(super) fn tt_host_muses_ack(m: *mut u64, fields: *const u64) -> u32;
        pub(super) fn tt_host_muses_marked(m: *mut u64, now_us: u64, newest_us: u64, mss: u32);
        pub(super) fn tt_host_muses_timeout(m: *mut u64);
        pub(super) fn tt_host_muses_idle(m: *mut u64);
        pub(super) fn tt_host_muses_cwnd(m: *const u64) -> u64;
        pub(super) fn tt_host_muses_alarm(m: *const u64) -> u32;
        pub(super) fn tt_host_muses_inputs(m: *const u64, inputs: *mut i16);
        pub(super) fn tt_host_muses_operating_window(m: *const u64, bw: u64, srtt: u32) -> u32;
    }
}

/// `256 * log2(1 + x)`.
pub(super) fn log2(x: u64) -> i16 {
    c::tt_host_log2(x)
}

/// Memory in place of both maps. Only this thread's calls see it, while it lives.
pub(super) struct Maps {
    pub(super) models: Vec<Model>,
    pub(super) nodes: Vec<AtomicU64>,
}

impl Maps {
    pub(super) fn new() -> Self {
        let maps = Self {
            models: (0..MODELS_MAX).map(|_| Model::none()).collect(),
            nodes: (0..NODES_MAX).map(|_| AtomicU64::new(0)).collect(),
        };
        // SAFETY: both stay where they are and as long as they are, until `drop` takes them back; no one else of this thread
        // has maps meanwhile, and others have pointers of their own.
        unsafe { c::tt_host_muses_models(maps.models.as_ptr().cast(), maps.nodes.as_ptr().cast()) };
        maps
    }

    /// What the tree does.
    pub(super) fn walk(&self, model: u32, tree: u32, inputs: &Inputs) -> u32 {
        // SAFETY: the maps are there, and C reads as many numbers as it has room for, by an index below that.
        unsafe { c::tt_host_muses_walk(model, tree, roomy(inputs).as_ptr()) }
    }

    pub(super) fn knows(&self, model: u32, state: &State) -> bool {
        // SAFETY: as above.
        unsafe { c::tt_host_muses_knows(model, roomy(state).as_ptr()) != 0 }
    }

    pub(super) fn segments(&self, model: u32, state: &State) -> [usize; COMPONENTS] {
        let state = roomy(state);
        // SAFETY: as above.
        let segment = |i| unsafe { c::tt_host_muses_segment(model, i, state.as_ptr()) as usize };
        std::array::from_fn(|i| segment(i as u32))
    }
}

impl Drop for Maps {
    fn drop(&mut self) {
        // SAFETY: null is what there is before any maps.
        unsafe { c::tt_host_muses_models(std::ptr::null(), std::ptr::null()) };
    }
}

/// A state or inputs, with the room that C has for either.
fn roomy(numbers: &[i16]) -> [i16; INPUT_WORDS] {
    let mut words = [0; INPUT_WORDS];
    words[..numbers.len()].copy_from_slice(numbers);
    words
}

/// `struct tt_muses` and its functions.
pub(super) struct CoreMuses {
    /// As many words as the struct has, aligned as its widest field is.
    memory: Vec<u64>,
}

// SAFETY, for every call below: `memory` is as large as the struct and aligned for it, `&mut` keeps others away, and the arrays
// have the lengths that `host.c` reads. The functions keep no pointer, and look for maps where those of this thread are.
impl CoreMuses {
    pub(super) fn new(knobs: &Words, window: u32) -> Self {
        let mut memory = vec![0; (c::tt_host_muses_size() as usize).div_ceil(8)];
        // SAFETY: see above.
        unsafe { c::tt_host_muses_init(memory.as_mut_ptr(), knobs.as_ptr(), window) };
        Self { memory }
    }

    pub(super) fn set_knobs(&mut self, knobs: &Words) {
        // SAFETY: see above.
        unsafe { c::tt_host_muses_knobs(self.memory.as_mut_ptr(), knobs.as_ptr()) };
    }

    /// Whether an interval ended. The fields are those of `struct tt_muses_ack`.
    pub(super) fn on_ack(&mut self, fields: &[u64; 13]) -> bool {
        // SAFETY: see above.
        unsafe { c::tt_host_muses_ack(self.memory.as_mut_ptr(), fields.as_ptr()) != 0 }
    }

    pub(super) fn on_marked(&mut self, now_us: u64, newest_us: u64, mss: u64) {
        // SAFETY: see above.
        unsafe {
            c::tt_host_muses_marked(self.memory.as_mut_ptr(), now_us, newest_us, mss as u32);
        }
    }

    pub(super) fn on_timeout(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_muses_timeout(self.memory.as_mut_ptr()) };
    }

    pub(super) fn on_idle(&mut self) {
        // SAFETY: see above.
        unsafe { c::tt_host_muses_idle(self.memory.as_mut_ptr()) };
    }

    /// In 1/1024 packets.
    pub(super) fn cwnd(&self) -> u64 {
        // SAFETY: see above.
        unsafe { c::tt_host_muses_cwnd(self.memory.as_ptr()) }
    }

    /// As a slot's flags have it.
    pub(super) fn alarm(&self) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_muses_alarm(self.memory.as_ptr()) }
    }

    /// That was answered last.
    pub(super) fn inputs(&self) -> Inputs {
        let mut inputs = [0; INPUTS];
        // SAFETY: see above.
        unsafe { c::tt_host_muses_inputs(self.memory.as_ptr(), inputs.as_mut_ptr()) };
        inputs
    }

    /// The packets that it hands over.
    pub(super) fn operating_window(&self, bandwidth: u64, srtt_us: u32) -> u32 {
        // SAFETY: see above.
        unsafe { c::tt_host_muses_operating_window(self.memory.as_ptr(), bandwidth, srtt_us) }
    }
}
