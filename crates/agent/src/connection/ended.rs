//! With which tree of Muses earlier connections ended, by where they went: the next one begins with
//! it (Zhong et al., INFOCOM 2022, §III-F).

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// So many destinations are remembered; then the one that was first is forgotten.
const KEPT: usize = 10_000;

/// A destination, and the checksum of the model.
type Place = (IpAddr, u32);

/// The trees of earlier connections.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    trees: HashMap<Place, usize>,
    /// Oldest first.
    order: VecDeque<Place>,
}

impl Ended {
    /// The tree with which to begin; `None` where nothing is known.
    pub(crate) fn tree(&self, to: IpAddr, model: u32) -> Option<usize> {
        self.trees.get(&(to.to_canonical(), model)).copied()
    }

    /// A connection asks this tree from now on.
    pub(crate) fn note(&mut self, to: IpAddr, model: u32, tree: usize) {
        let place = (to.to_canonical(), model);
        if self.trees.insert(place, tree).is_some() {
            return;
        }
        self.order.push_back(place);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.trees.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tree_of_a_destination_is_remembered_within_bounds() {
        let mut ended = Ended::default();
        let at = |i: u32| IpAddr::from((0x0a00_0000 + i).to_be_bytes());
        for i in 0..KEPT as u32 {
            ended.note(at(i), 7, 1);
        }
        ended.note(at(0), 7, 3);
        assert_eq!((ended.tree(at(0), 7), ended.tree(at(0), 8)), (Some(3), None));
        assert_eq!(ended.tree("::ffff:10.0.0.1".parse().unwrap(), 7), Some(1));
        ended.note("2001:db8::1".parse().unwrap(), 7, 2);
        assert_eq!((ended.tree(at(0), 7), ended.tree(at(1), 7)), (None, Some(1)));
        assert_eq!((ended.trees.len(), ended.order.len()), (KEPT, KEPT));
    }
}
