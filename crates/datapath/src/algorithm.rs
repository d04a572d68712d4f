//! An algorithm as a datapath has it.

use std::fmt;
use std::hash::{Hash, Hasher};

use trimtab_cc::Knob;

/// An algorithm that connections of a datapath can run. A name means one algorithm, so two values
/// are equal when their names are.
#[derive(Clone, Copy)]
pub struct Algorithm {
    name: &'static str,
    knobs: &'static [Knob],
    fallback: Option<f64>,
    asks_trees: bool,
}

impl Algorithm {
    /// An algorithm by its name in [`trimtab_cc::ALGORITHMS`], with the knobs that it has on this
    /// datapath.
    pub const fn new(name: &'static str, knobs: &'static [Knob]) -> Self {
        Self { name, knobs, fallback: None, asks_trees: false }
    }

    /// The same; it can take over from an algorithm that asks trees, whose knob `safe` then has this
    /// value.
    #[must_use]
    pub const fn with_fallback(self, safe: f64) -> Self {
        Self { fallback: Some(safe), ..self }
    }

    /// The same; its decisions are those of a model's trees ([`crate::Datapath::add_trees`]).
    #[must_use]
    pub const fn with_trees(self) -> Self {
        Self { asks_trees: true, ..self }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its knobs on this datapath.
    pub const fn knobs(&self) -> &'static [Knob] {
        self.knobs
    }

    /// The value of the knob `safe` by which it becomes the fallback of trees; `None` where it
    /// cannot.
    pub const fn as_fallback(&self) -> Option<f64> {
        self.fallback
    }

    /// Whether it asks the trees of a model.
    pub const fn asks_trees(&self) -> bool {
        self.asks_trees
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Algorithm {}

impl PartialOrd for Algorithm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Algorithm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name.cmp(other.name)
    }
}

impl Hash for Algorithm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Its name; the knobs would fill a page.
impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
