//! The algorithms that are in the kernel, and their knobs there.

use std::sync::atomic::AtomicU32;

use trimtab_cc::muses::Muses;
use trimtab_cc::{Bbr, Bbr3, Copa, Cubic, Knob, Vivace};
use trimtab_datapath::Algorithm as Neutral;

use crate::error::Error;
use crate::layout::{self, Control, InLayout, KNOBS_MAX, Slot};

/// An algorithm that runs in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Copa, with everything that `trimtab_cc::Copa` has.
    Copa,
    /// CUBIC as Linux has it: the preset `linux` of `trimtab_cc::Cubic`, by default with HyStart's ack trains.
    Cubic,
    /// BBR version 1, with everything that `trimtab_cc::Bbr` has.
    Bbr,
    /// PCC Vivace, with everything that `trimtab_cc::Vivace` has.
    Vivace,
    /// Muses: the trees of a model ([`Datapath::add_trees`](crate::Datapath::add_trees)) multiply
    /// the window every 10 ms. Without a model the fallback takes over with the first
    /// acknowledgement.
    Muses,
    /// BBR version 3, with everything that `trimtab_cc::Bbr3` has.
    Bbr3,
}

/// CUBIC's knobs in the kernel: those of `trimtab_cc::Cubic` but `linux`, which is always on.
static CUBIC_KNOBS: [Knob; 4] = [
    // As Linux rounds 0.7.
    Knob { default: 717.0 / 1024.0, ..Knob::named(Cubic::KNOBS, "beta") },
    Knob::named(Cubic::KNOBS, "c"),
    Knob::named(Cubic::KNOBS, "fast_convergence"),
    Knob {
        default: 2.0,
        about: "how slow start ends before loss: 0 not at all, 2 by Linux's HyStart, 3 by its delay sign alone \
                (1, HyStart++, is not in the kernel and becomes 2); later exits fill the path sooner and overflow \
                buffers more",
        ..Knob::named(Cubic::KNOBS, "hystart")
    },
];

/// Muses' knobs in the kernel: that of `trimtab_cc::muses::Muses`, and what user space decides for a connection.
static MUSES_KNOBS: [Knob; 4] = [
    Knob::named(Muses::KNOBS, "cap"),
    Knob {
        name: "tree",
        unit: "number",
        min: 0.0,
        max: (layout::TREES_MAX - 1) as f64,
        default: 0.0,
        about: "the tree of the model that is asked",
    },
    Knob {
        name: "model",
        unit: "number",
        min: 0.0,
        max: (layout::MODELS_MAX - 1) as f64,
        default: 0.0,
        about: "the model, of those that were added; 0 none",
    },
    Knob {
        name: "safe",
        unit: "number",
        min: 0.0,
        max: 3.0,
        default: 1.0,
        about: "what takes over when the guard speaks: 0 nothing, 1 Copa, 2 CUBIC, 3 BBR, each with its own knobs",
    },
];

/// What another algorithm may be to Muses, and Muses to itself.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// It may take over when the guard speaks.
    Fallback,
    /// It may not.
    Plain,
    /// It runs the trees of a model.
    Trees,
}

/// All that differs from algorithm to algorithm.
#[derive(Debug)]
struct Row {
    name: &'static str,
    /// Of the kernel's 15 letters the prefix has eight, and some are for a suffix.
    short: &'static str,
    knobs: &'static [Knob],
    role: Role,
    layout: InLayout,
}

/// In the order of [`Algorithm`], and of the list in `bpf/layout.h`.
static ROWS: [Row; layout::CCAS] = [
    Row {
        name: "copa",
        short: "copa",
        knobs: Copa::KNOBS,
        role: Role::Fallback,
        layout: layout::COPA,
    },
    Row {
        name: "cubic",
        short: "cubic",
        knobs: &CUBIC_KNOBS,
        role: Role::Fallback,
        layout: layout::CUBIC,
    },
    Row { name: "bbr", short: "bbr", knobs: Bbr::KNOBS, role: Role::Fallback, layout: layout::BBR },
    Row {
        name: "vivace",
        short: "pcc",
        knobs: Vivace::KNOBS,
        role: Role::Plain,
        layout: layout::VIVACE,
    },
    Row {
        name: "muses",
        short: "tree",
        knobs: &MUSES_KNOBS,
        role: Role::Trees,
        layout: layout::MUSES,
    },
    Row {
        name: "bbr3",
        short: "bbr3",
        knobs: Bbr3::KNOBS,
        role: Role::Plain,
        layout: layout::BBR3,
    },
];

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; layout::CCAS] =
        [Self::Copa, Self::Cubic, Self::Bbr, Self::Vivace, Self::Muses, Self::Bbr3];

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its name, as in [`trimtab_cc::ALGORITHMS`], where Muses is not, since it is nothing without a model.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The algorithm of this name; `None` when none in the kernel is called so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The knobs that it has in the kernel.
    pub const fn knobs(self) -> &'static [Knob] {
        self.row().knobs
    }

    /// The name under which the kernel knows it.
    pub(crate) fn kernel_name(self, suffix: &str) -> String {
        format!("trimtab_{}{suffix}", self.row().short)
    }

    /// From what a slot has; `None` when no algorithm of this layout is called so.
    pub(crate) fn of_slot(cca: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.layout().number == cca)
    }

    /// What the shared memory has of it.
    pub(crate) const fn layout(self) -> &'static InLayout {
        &self.row().layout
    }

    /// The same in the types of `trimtab-datapath`. Vivace, Muses and BBRv3 are no fallback of Muses.
    pub const fn neutral(self) -> Neutral {
        let neutral = Neutral::new(self.name(), self.knobs());
        match self.row().role {
            Role::Fallback => neutral.with_fallback(self.layout().number as f64),
            Role::Plain => neutral,
            Role::Trees => neutral.with_trees(),
        }
    }

    /// The kernel's algorithm of the same name.
    pub(crate) fn of(neutral: Neutral) -> Result<Self, Error> {
        let name = neutral.name();
        Self::from_name(name).ok_or(Error::NoAlgorithm { name })
    }

    /// Its knobs on a connection.
    pub(crate) fn knobs_of(self, slot: &Slot) -> &[AtomicU32] {
        (self.layout().of_slot)(slot)
    }

    /// Its knobs for connections to come.
    pub(crate) fn defaults(self, control: &Control) -> &[AtomicU32; KNOBS_MAX] {
        (self.layout().defaults)(control)
    }
}

impl From<Algorithm> for Neutral {
    fn from(algorithm: Algorithm) -> Self {
        algorithm.neutral()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_algorithms() {
        let names = [
            (Algorithm::Copa, "copa", "trimtab_copa"),
            (Algorithm::Cubic, "cubic", "trimtab_cubic"),
            (Algorithm::Bbr, "bbr", "trimtab_bbr"),
            (Algorithm::Vivace, "vivace", "trimtab_pcc"),
            (Algorithm::Muses, "muses", "trimtab_tree"),
            (Algorithm::Bbr3, "bbr3", "trimtab_bbr3"),
        ];
        assert_eq!(names.map(|(algorithm, _, _)| algorithm), Algorithm::ALL);
        for (algorithm, name, kernel) in names {
            assert_eq!(algorithm.name(), name);
            assert_eq!(algorithm.kernel_name(""), kernel);
            assert_eq!(Algorithm::from_name(name), Some(algorithm));
            assert_eq!(Algorithm::of_slot(algorithm.layout().number), Some(algorithm));
        }
        assert_eq!(Algorithm::of_slot(0), None);
    }

    /// A connection's memory has a place for the knobs of each, which is no other's.
    #[test]
    fn each_algorithm_has_knobs_of_its_own_in_the_shared_memory() {
        let (slot, control) = (Slot::default(), Control::default());
        for algorithm in Algorithm::ALL {
            let number = algorithm.layout().number;
            assert_eq!(algorithm.knobs_of(&slot).len(), algorithm.knobs().len());
            algorithm.knobs_of(&slot).iter().for_each(|word| word.store(number, Relaxed));
            algorithm.defaults(&control).iter().for_each(|word| word.store(number, Relaxed));
        }
        for algorithm in Algorithm::ALL {
            let words = algorithm.knobs_of(&slot).iter().chain(algorithm.defaults(&control));
            for word in words {
                assert_eq!(word.load(Relaxed), algorithm.layout().number);
            }
        }
    }

    #[test]
    fn muses_falls_back_on_copa_cubic_and_bbr_by_their_numbers() {
        let fallbacks = Algorithm::ALL.map(|algorithm| algorithm.neutral().as_fallback());
        assert_eq!(fallbacks, [Some(1.0), Some(2.0), Some(3.0), None, None, None]);
        let trees = Algorithm::ALL.map(|algorithm| algorithm.neutral().asks_trees());
        assert_eq!(trees, [false, false, false, false, true, false]);
    }
}
