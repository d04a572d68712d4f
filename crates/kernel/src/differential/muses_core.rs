//! The C core of Muses, as compiled for this machine.
#![expect(unsafe_code, reason = "C is called; only in tests")]

use std::sync::atomic::AtomicU64;

use trimtab_cc::muses::{COMPONENTS, INPUTS, Inputs, State};

use super::cores::core;
use crate::knobs::Words;
use crate::layout::{INPUT_WORDS, MODELS_MAX, Model, NODES_MAX};

mod c {
    unsafe extern "C" {
        pub(super) safe fn tt_log2(x: u64) -> i32;
        pub(super) fn tt_host_muses_models(models: *const u8, nodes: *const u64);
        pub(super) fn tt_host_muses_walk(model: u32, tree: u32, inputs: *const i16) -> u32;
        pub(super) fn tt_host_muses_knows(model: u32, state: *const i16) -> bool;
        pub(super) fn tt_host_muses_segment(model: u32, component: u32, state: *const i16) -> u32;
    }
}

/// `256 * log2(1 + x)`.
pub(super) fn log2(x: u64) -> i16 {
    c::tt_log2(x) as i16
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
        // SAFETY: both stay where they are and as long as they are, until `drop` takes them back;
        // no one else of this thread has maps meanwhile, and others have pointers of their own.
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
        unsafe { c::tt_host_muses_knows(model, roomy(state).as_ptr()) }
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

core! {
    /// `struct tt_muses` and its functions, which look for maps where those of this thread are.
    CoreMuses, tt_host_muses_size;
    mut {
        init = tt_muses_init(window: u32);
        set_knobs = tt_host_muses_knobs(knobs: &Words);
        /// Whether an interval ended. The fields are those of `struct tt_muses_ack`.
        on_ack = tt_host_muses_ack(fields: &[u64; 13]) -> bool;
        on_marked = tt_muses_on_marked(now_us: u64, newest_us: u64, mss: u32);
        on_timeout = tt_muses_on_timeout();
        on_idle = tt_muses_on_idle();
    }
    ref {
        /// In 1/1024 packets.
        cwnd = tt_host_muses_cwnd() -> u64;
        /// As a slot's flags have it.
        alarm = tt_host_muses_alarm() -> u32;
        copy_inputs = tt_host_muses_inputs(to: &mut Inputs);
        /// The packets that it hands over.
        operating_window = tt_muses_operating_window(bandwidth: u64, srtt_us: u32) -> u32;
    }
}

impl CoreMuses {
    pub(super) fn new(knobs: &Words, window: u32) -> Self {
        let mut core = Self::zero();
        core.set_knobs(knobs);
        core.init(window);
        core
    }

    /// That was answered last.
    pub(super) fn inputs(&self) -> Inputs {
        let mut inputs = [0; INPUTS];
        self.copy_inputs(&mut inputs);
        inputs
    }
}
