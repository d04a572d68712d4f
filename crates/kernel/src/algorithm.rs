//! The algorithms that are in the kernel, and their knobs there.

use trimtab_cc::muses::Muses;
use trimtab_cc::{Bbr, Copa, Cubic, Knob, Vivace};
use trimtab_datapath::Algorithm as Neutral;

use crate::error::Error;
use crate::layout::{self, Control, Encoded, KNOBS_MAX, Slot};
use std::sync::atomic::AtomicU32;

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
    /// Muses: the trees of a model ([`Datapath::add_trees`](crate::Datapath::add_trees)) multiply the window every 10 ms. Without a
    /// model the fallback takes over with the first acknowledgement.
    Muses,
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

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Copa, Self::Cubic, Self::Bbr, Self::Vivace, Self::Muses];

    /// Its name, as in [`trimtab_cc::ALGORITHMS`], where Muses is not, since it is nothing without a model.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copa => "copa",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Vivace => "vivace",
            Self::Muses => "muses",
        }
    }

    /// The algorithm of this name; `None` when none in the kernel is called so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The knobs that it has in the kernel.
    pub const fn knobs(self) -> &'static [Knob] {
        match self {
            Self::Copa => Copa::KNOBS,
            Self::Cubic => &CUBIC_KNOBS,
            Self::Bbr => Bbr::KNOBS,
            Self::Vivace => Vivace::KNOBS,
            Self::Muses => &MUSES_KNOBS,
        }
    }

    /// The name under which the kernel knows it.
    pub(crate) fn kernel_name(self, suffix: &str) -> String {
        let name = match self {
            // Of the kernel's 15 letters the prefix has eight, and some are for a suffix.
            Self::Vivace => "pcc",
            Self::Muses => "tree",
            other => other.name(),
        };
        format!("trimtab_{name}{suffix}")
    }

    /// From what a slot has; `None` when no algorithm of this layout is called so.
    pub(crate) fn of_slot(cca: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.slot_number() == cca)
    }

    /// As a slot has it, and the knob `safe` of Muses.
    pub(crate) const fn slot_number(self) -> u32 {
        match self {
            Self::Copa => layout::CCA_COPA,
            Self::Cubic => layout::CCA_CUBIC,
            Self::Bbr => layout::CCA_BBR,
            Self::Vivace => layout::CCA_VIVACE,
            Self::Muses => layout::CCA_MUSES,
        }
    }

    /// Its knobs on a connection, which has a place for those of every algorithm.
    pub(crate) fn knobs_of(self, slot: &Slot) -> &[AtomicU32] {
        match self {
            Self::Copa => &slot.copa_knobs,
            Self::Cubic => &slot.cubic_knobs,
            Self::Bbr => &slot.bbr_knobs,
            Self::Vivace => &slot.vivace_knobs,
            Self::Muses => &slot.muses_knobs,
        }
    }

    /// The same in the types of `trimtab-datapath`. Vivace and Muses are no fallback of Muses.
    pub const fn neutral(self) -> Neutral {
        let neutral = Neutral::new(self.name(), self.knobs());
        match self {
            Self::Copa | Self::Cubic | Self::Bbr => {
                neutral.with_fallback(self.slot_number() as f64)
            }
            Self::Vivace => neutral,
            Self::Muses => neutral.with_trees(),
        }
    }

    /// The kernel's algorithm of the same name.
    pub(crate) fn of(neutral: Neutral) -> Result<Self, Error> {
        let name = neutral.name();
        Self::from_name(name).ok_or(Error::NoAlgorithm { name })
    }

    /// How its knobs become integers, in the order of [`Algorithm::knobs`].
    pub(crate) fn encoding(self) -> &'static [Encoded] {
        match self {
            Self::Copa => &layout::COPA_KNOBS,
            Self::Cubic => &layout::CUBIC_KNOBS,
            Self::Bbr => &layout::BBR_KNOBS,
            Self::Vivace => &layout::VIVACE_KNOBS,
            Self::Muses => &layout::MUSES_KNOBS,
        }
    }

    /// Its knobs for connections to come.
    pub(crate) fn defaults(self, control: &Control) -> &[AtomicU32; KNOBS_MAX] {
        match self {
            Self::Copa => &control.copa_defaults,
            Self::Cubic => &control.cubic_defaults,
            Self::Bbr => &control.bbr_defaults,
            Self::Vivace => &control.vivace_defaults,
            Self::Muses => &control.muses_defaults,
        }
    }
}

impl From<Algorithm> for Neutral {
    fn from(algorithm: Algorithm) -> Self {
        algorithm.neutral()
    }
}
