//! What walks over sockets find, and sum up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use trimtab_kernel::{Algorithm, Socket};

use super::step::{Addresses, Judged, Step, addresses};

/// Sockets that a rule gives an algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assigned {
    /// The rule's name.
    pub rule: String,
    /// The kernel's name of the algorithm.
    pub algorithm: String,
    /// Sockets that listen and were given it.
    pub listeners: usize,
    /// Open connections that were given it, or inherited it.
    pub connections: usize,
    /// Sockets that would get it, in mode `advise`; in mode `apply`, those that the kernel refused.
    pub pending: usize,
    /// Sockets whose algorithm somebody else chose; they are left to it.
    pub by_hand: usize,
}

/// What a walk has found, and done.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sums: Sums,
    /// Cookies of the sockets.
    pub(super) seen: BTreeSet<u64>,
    /// Connections that were given another algorithm.
    pub(super) moved: BTreeSet<Addresses>,
    /// Whether a socket has what no rule asks for any more.
    pub(super) owes: bool,
    /// The last error number with which the kernel refused.
    pub(super) refused: Option<i32>,
    /// What there is to tell.
    pub(super) notes: Vec<String>,
}

/// Sockets by what was given to them.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) by_rule: BTreeMap<(usize, Algorithm), Assigned>,
    pub(super) former: HashMap<Addresses, String>,
}

impl Sums {
    /// Those of another walk, over other sockets.
    pub(super) fn join(&mut self, other: &Self) {
        for (rule, more) in &other.by_rule {
            let sum = self.by_rule.entry(*rule).or_default();
            sum.listeners += more.listeners;
            sum.connections += more.connections;
            sum.pending += more.pending;
            sum.by_hand += more.by_hand;
        }
        self.former.extend(other.former.iter().map(|(who, name)| (*who, name.clone())));
    }

    pub(super) fn add(&mut self, sockets: &[Socket], steps: &[Judged]) {
        for (socket, Judged { step, rule, switched }) in sockets.iter().zip(steps) {
            let given = socket.given.as_ref();
            let ours = given.filter(|given| *switched || given.algorithm == socket.algorithm);
            if let (Some(given), Some(addresses)) = (ours, addresses(socket)) {
                self.former.insert(addresses, given.former.clone());
            }
            let Some(rule) = rule else { continue };
            let sum = self.by_rule.entry(*rule).or_default();
            match step {
                Step::Runs if ours.is_some() && socket.remote.is_none() => sum.listeners += 1,
                Step::Runs if ours.is_some() => sum.connections += 1,
                Step::Give(_) => sum.pending += 1,
                Step::ByHand => sum.by_hand += 1,
                Step::Runs | Step::Back(_) | Step::Nothing => {}
            }
        }
    }
}
