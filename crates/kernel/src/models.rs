//! The models of Muses in the kernel's memory: trees, which its programs walk where they lie.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use trimtab_cc::muses::{ACTIONS, BINS, COMPONENTS, INPUTS, Node, SIGNALS, Trees};

use crate::layout::{
    self, LEAF, MODELS_MAX, Model, NODE_ABOVE_SHIFT, NODE_THRESHOLD_SHIFT, STATE_WORDS, TREES_MAX,
    WALK_MAX,
};
use crate::mapping::Mapping;

// The kernel's side counts the same things.
const _: () = assert!(
    layout::SIGNALS == SIGNALS
        && layout::INPUTS == INPUTS
        && layout::ACTIONS == ACTIONS
        && layout::COMPONENTS == COMPONENTS
        && layout::BINS == BINS
        && TREES_MAX == trimtab_cc::muses::TREES_MAX
        && STATE_WORDS >= SIGNALS
);

/// Why a model has no place in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreesRefused {
    /// A walk would take too many steps.
    #[error(
        "tree {tree} is {depth} nodes deep, and no walk in the kernel takes more than {WALK_MAX} \
         steps: train it with a smaller depth"
    )]
    Deep {
        /// The tree.
        tree: usize,
        /// The longest way from its root to a leaf, both counted.
        depth: usize,
    },
    /// As many models are in use as there can be.
    #[error(
        "{models} models are in use by open connections, and there is no place for another: wait until some have ended"
    )]
    Models {
        /// How many there can be.
        models: usize,
    },
    /// The nodes of those that are in use leave no room.
    #[error(
        "no room for {nodes} nodes: open connections use the other models; wait until some have ended, \
         or train fewer or smaller trees"
    )]
    Nodes {
        /// How many there are.
        nodes: usize,
    },
}

/// Both maps, in our memory.
#[derive(Debug)]
pub(crate) struct Models {
    models: Mapping<Model>,
    nodes: Mapping<AtomicU64>,
}

impl Models {
    pub(crate) fn new(models: Mapping<Model>, nodes: Mapping<AtomicU64>) -> Self {
        Self { models, nodes }
    }

    /// Adds a model unless it is there; gives its number. Those of `used` keep their places.
    pub(crate) fn add(
        &self,
        trees: &Trees<'_>,
        used: [bool; MODELS_MAX],
    ) -> Result<usize, TreesRefused> {
        let name = (trees.checksum(), trees.as_bytes().len() as u32);
        let is_it = |model: &Model| {
            let same = (model.checksum.load(Relaxed), model.length.load(Relaxed)) == name;
            same && model.trees.load(Relaxed) > 0
        };
        if let Some(number) = self.models.iter().position(is_it) {
            return Ok(number);
        }
        let words = nodes(trees)?;
        // The first is none.
        let free = (1..self.models.len()).find(|number| !used[*number]);
        let number = free.ok_or(TreesRefused::Models { models: self.models.len() - 1 })?;
        let others = (1..self.models.len()).filter(|other| used[*other]);
        let taken = others.map(|other| span(&self.models[other])).collect();
        let first = room(taken, words.len(), self.nodes.len())
            .ok_or(TreesRefused::Nodes { nodes: words.len() })?;
        // What had these nodes before is nothing from here on.
        for other in (1..self.models.len()).filter(|other| !used[*other]) {
            let (from, count) = span(&self.models[other]);
            if other == number || (from < first + words.len() && first < from + count) {
                self.models[other].trees.store(0, Relaxed);
            }
        }
        for (node, word) in self.nodes[first..].iter().zip(&words) {
            node.store(*word, Relaxed);
        }
        let model = &self.models[number];
        describe(model, trees, first);
        model.checksum.store(name.0, Relaxed);
        model.length.store(name.1, Relaxed);
        model.node_first.store(first as u32, Relaxed);
        model.node_count.store(words.len() as u32, Relaxed);
        // With this it is there.
        model.trees.store(trees.count() as u32, Release);
        Ok(number)
    }
}

/// The nodes of a model: the first, and how many.
fn span(model: &Model) -> (usize, usize) {
    (model.node_first.load(Relaxed) as usize, model.node_count.load(Relaxed) as usize)
}

/// Where so many nodes have room between those that are taken; the first place.
fn room(mut taken: Vec<(usize, usize)>, wanted: usize, all: usize) -> Option<usize> {
    taken.sort_unstable();
    let mut at = 0;
    for (from, count) in taken {
        if from >= at + wanted {
            break;
        }
        at = at.max(from + count);
    }
    (at + wanted <= all).then_some(at)
}

/// All but the nodes and where they lie.
pub(crate) fn describe(model: &Model, trees: &Trees<'_>, first: usize) {
    let put = |word: &std::sync::atomic::AtomicU32, value: i32| word.store(value as u32, Relaxed);
    for signal in 0..SIGNALS {
        let (low, high) = trees.range(signal);
        put(&model.range_low[signal], low.into());
        put(&model.range_high[signal], high.into());
    }
    for index in 0..COMPONENTS {
        let component = trees.projection(index);
        for (signal, weight) in component.weights.into_iter().enumerate() {
            put(&model.weights[index * STATE_WORDS + signal], weight);
        }
        put(&model.component_low[index], component.low);
        put(&model.component_width[index], component.width);
    }
    let mut root = first;
    for (tree, word) in (0..trees.count()).zip(&model.tree_first) {
        word.store(root as u32, Relaxed);
        root += trees.nodes(tree).len();
    }
}

/// The nodes of all trees, one after the other, as the kernel's side reads them.
pub(crate) fn nodes(trees: &Trees<'_>) -> Result<Vec<u64>, TreesRefused> {
    let mut words = Vec::new();
    for tree in 0..trees.count() {
        let depth = depth(trees, tree);
        if depth > WALK_MAX {
            return Err(TreesRefused::Deep { tree, depth });
        }
        words.extend(trees.nodes(tree).map(word));
    }
    Ok(words)
}

/// The longest walk through a tree, in nodes.
fn depth(trees: &Trees<'_>, tree: usize) -> usize {
    let mut depths = vec![1_usize; trees.nodes(tree).len()];
    for (at, node) in trees.nodes(tree).enumerate() {
        if let Node::Test { above, .. } = node {
            for next in [at + 1, above] {
                depths[next] = depths[next].max(depths[at] + 1);
            }
        }
    }
    depths.into_iter().max().unwrap_or(0)
}

fn word(node: Node) -> u64 {
    match node {
        Node::Leaf(factor) => u64::from(LEAF) | u64::from(factor.parts()) << NODE_ABOVE_SHIFT,
        Node::Test { input, threshold, above } => {
            let threshold = u64::from(threshold as u16) << NODE_THRESHOLD_SHIFT;
            // A tree has fewer nodes than fit 16 bits.
            input as u64 | threshold | (above as u64 & 0xffff) << NODE_ABOVE_SHIFT
        }
    }
}

/// A model with the length and the checksum that its head has to have (docs/reference/trees.md).
#[cfg(test)]
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32;
    bytes[12..16].copy_from_slice(&length.to_le_bytes());
    let bit = |sum: u32| (sum >> 1) ^ (0xedb8_8320 * (sum & 1));
    let byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |sum, _| bit(sum));
    let sum = !bytes[20..].iter().fold(!0, byte);
    bytes[16..20].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    static SMALL: &[u8] = include_bytes!("small.trees");

    /// A model with one tree: of each of its first nodes one way leads to the next, and the other
    /// to the last leaf of two.
    fn chain(tests: u16) -> Vec<u8> {
        let mut bytes = SMALL[..168].to_vec();
        bytes[10..12].copy_from_slice(&1_u16.to_le_bytes());
        bytes[24..26].fill(0);
        bytes.extend([0; 128]); // the centre
        bytes.extend([0; 4]);
        bytes.extend((tests + 2).to_le_bytes());
        bytes.extend([0; 2]);
        for _ in 0..tests {
            bytes.extend([0; 4]);
            bytes.extend((tests + 1).to_le_bytes());
        }
        bytes.extend([LEAF, 0, 0, 0, 0, 0x40, LEAF, 0, 0, 0, 0, 0x80]);
        sealed(bytes)
    }

    /// The loader of the file has no such bound; the kernel's walk does.
    #[test]
    fn a_tree_that_is_too_deep_is_refused() {
        for tests in [1, 63, 64, 900] {
            let bytes = chain(tests);
            let trees = Trees::parse(&bytes).expect("a model");
            let depth = usize::from(tests) + 1;
            let refused = Err(TreesRefused::Deep { tree: 0, depth });
            let expected = if depth <= WALK_MAX { Ok(depth + 1) } else { refused };
            assert_eq!(nodes(&trees).map(|words| words.len()), expected);
        }
    }

    #[test]
    fn room_is_the_first_gap_that_is_wide_enough() {
        assert_eq!(room(vec![], 10, 10), Some(0));
        assert_eq!(room(vec![], 11, 10), None);
        assert_eq!(room(vec![(0, 4), (10, 5)], 6, 100), Some(4));
        assert_eq!(room(vec![(10, 5), (0, 4)], 7, 100), Some(15));
        assert_eq!(room(vec![(0, 4), (10, 85)], 7, 100), None);
    }
}
