//! The datapath of the daemon: Linux TCP in the kernel. Another one is another `Host` here.
//!
//! Rules are read before a datapath is loaded, so what they may name is known without one.

pub(crate) use trimtab_datapath::Algorithm;
pub use trimtab_datapath::{Datapath, Link};

/// What the daemon loads.
pub(crate) type Host = trimtab_kernel::Datapath;

/// The algorithms that a rule may name.
pub(crate) const ALGORITHMS: &[Algorithm] = <Host as Datapath>::ALGORITHMS;

/// The algorithm of this name; `None` when no connection can run it here.
pub(crate) fn algorithm(name: &str) -> Option<Algorithm> {
    ALGORITHMS.iter().copied().find(|algorithm| algorithm.name() == name)
}

/// The same in tests, which name algorithms that there are.
#[cfg(test)]
pub(crate) fn named(name: &str) -> Algorithm {
    algorithm(name).expect("an algorithm that a rule may name")
}
