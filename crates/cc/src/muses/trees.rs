//! The model file: trees that say what to do, and what says which of them to ask.
//!
//! [`Trees::parse`] checks everything once, without allocating, and borrows the bytes; after that nothing in them
//! can lead astray: every walk ends, every index is in range. The format is that of
//! `docs/reference/trees.md`; the constants here are its numbers. The kernel can walk the same bytes.

use core::fmt;

use super::action::{ACTIONS, Factor};
use super::inputs::{INPUTS, Inputs};
use super::signals::{SIGNALS, State};

/// Components of the projection (Muses §III-E: n = 3).
pub const COMPONENTS: usize = 3;
/// Segments of each component's range (l = 10).
pub const BINS: usize = 10;
/// The most trees of a file. The paper has 15 (Muses §III-E).
pub const TREES_MAX: usize = 64;
/// The largest file: well above the 15 trees of 500 leaves, below what a kernel map or a small device holds.
pub const FILE_MAX: usize = 1 << 20;

const MAGIC: &[u8; 8] = b"TRIMTREE";
const VERSION: u16 = 2;
/// Where the parts of the file begin.
const SUM_AT: usize = 16;
const BODY_AT: usize = 20;
const RANGES_AT: usize = 32;
const PROJECTION_AT: usize = RANGES_AT + SIGNALS * 4;
const COMPONENT_SIZE: usize = SIGNALS * 4 + 8;
const CENTRES_AT: usize = PROJECTION_AT + COMPONENTS * COMPONENT_SIZE;
const CENTRE_SIZE: usize = 8 + COMPONENTS * BINS * 4;
const ENTRY_SIZE: usize = 8;
const NODE_SIZE: usize = 6;
/// A leaf, in a node's first byte. Where another node says where to go on, it says the factor.
const LEAF: u8 = 0x80;
/// Bits after the point of a projection's weights.
pub const WEIGHT_POINT: u32 = 16;
/// No selection waits for more states than this: counts fit 32 bits with room to spare.
const STATES_MAX: u32 = 1_000_000;

/// Why bytes are no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreesError {
    /// They are too few, too many, or not as many as they say.
    Length {
        /// How many there are.
        have: usize,
    },
    /// They begin with something else.
    NotTrees,
    /// The version is another.
    Version(u16),
    /// The checksum is wrong: the file is damaged.
    Checksum,
    /// It is of other signals, actions, components or segments than this program's.
    Shape,
    /// A number is out of its range.
    Value(&'static str),
    /// A node of this tree leads nowhere, back, or to what is no factor.
    Node {
        /// The tree.
        tree: usize,
        /// The node.
        node: usize,
    },
}

impl fmt::Display for TreesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no usable tree model: ")?;
        match self {
            Self::Length { have } => {
                write!(
                    f,
                    "{have} bytes are not as many as it needs, the file is cut or longer than it says"
                )
            }
            Self::NotTrees => {
                f.write_str("it does not begin with TRIMTREE, it is another kind of file")
            }
            Self::Version(v) => {
                write!(f, "version {v}, and this program reads version {VERSION}: train it again")
            }
            Self::Checksum => f.write_str("its checksum is wrong, it is damaged: get it again"),
            Self::Shape => f.write_str(
                "it is made for other signals or actions than this program's: train it again",
            ),
            Self::Value(what) => write!(f, "{what} is out of range"),
            Self::Node { tree, node } => {
                write!(f, "node {node} of tree {tree} leads out of the tree or to no factor")
            }
        }
    }
}
impl core::error::Error for TreesError {}

/// A model whose bytes have been checked.
#[derive(Clone, Copy)]
pub struct Trees<'a> {
    bytes: &'a [u8],
    inputs: usize,
    trees: usize,
    first: usize,
    states: u32,
}

/// A node of a tree, for a walk of the trees elsewhere: in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// The walk ends here.
    Leaf(Factor),
    /// It goes on with the next node where the input is at most the threshold, else with node `above` of the same tree,
    /// which is a later one.
    Test {
        /// Number of the input, below [`Trees::inputs`].
        input: usize,
        /// In the input's own scale.
        threshold: i16,
        /// Number of a node, counted from the tree's first.
        above: usize,
    },
}

/// A component of the projection that says in which segment a state lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// A weight for each signal, with [`WEIGHT_POINT`] bits after the point.
    pub weights: [i32; SIGNALS],
    /// Where the first segment begins.
    pub low: i32,
    /// How wide a segment is: 1 or more.
    pub width: i32,
}

impl fmt::Debug for Trees<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trees({} trees, {} bytes)", self.trees, self.bytes.len())
    }
}

impl<'a> Trees<'a> {
    /// Checks a model and borrows it. Takes time in proportion to its length, and no memory.
    ///
    /// # Errors
    /// The bytes are no model, or not a whole and sound one; the message says which.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TreesError> {
        let length = Err(TreesError::Length { have: bytes.len() });
        if bytes.len() < MAGIC.len() || &bytes[..MAGIC.len()] != MAGIC {
            return Err(TreesError::NotTrees);
        }
        if bytes.len() < CENTRES_AT || bytes.len() > FILE_MAX {
            return length;
        }
        let version = u16_at(bytes, 8);
        if version != VERSION {
            return Err(TreesError::Version(version));
        }
        if u32_at(bytes, 12) as usize != bytes.len() {
            return length;
        }
        if u32_at(bytes, SUM_AT) != crc32(&bytes[BODY_AT..]) {
            return Err(TreesError::Checksum);
        }
        let inputs = usize::from(bytes[BODY_AT]);
        let shape = [ACTIONS as u8, COMPONENTS as u8, BINS as u8];
        if ![SIGNALS, INPUTS].contains(&inputs) || bytes[BODY_AT + 1..BODY_AT + 4] != shape {
            return Err(TreesError::Shape);
        }
        let model = Self {
            bytes,
            inputs,
            trees: usize::from(u16_at(bytes, 10)),
            first: usize::from(u16_at(bytes, 24)),
            states: u32_at(bytes, 28),
        };
        model.check_values()?;
        if bytes.len() < model.nodes_at() {
            return length;
        }
        let nodes = bytes.len() - model.nodes_at();
        if !nodes.is_multiple_of(NODE_SIZE) {
            return length;
        }
        for tree in 0..model.trees {
            model.check_tree(tree, nodes / NODE_SIZE)?;
        }
        Ok(model)
    }

    fn check_values(&self) -> Result<(), TreesError> {
        let check = |good: bool, what| if good { Ok(()) } else { Err(TreesError::Value(what)) };
        check((1..=TREES_MAX).contains(&self.trees), "the number of trees")?;
        check(self.first < self.trees, "the first tree")?;
        check(u16_at(self.bytes, 26) == 10, "the control interval")?;
        check((1..=STATES_MAX).contains(&self.states), "the number of states of a selection")?;
        for signal in 0..SIGNALS {
            let (low, high) = self.range(signal);
            check(low <= high, "a signal's range")?;
        }
        for component in 0..COMPONENTS {
            check(self.component(component).2 >= 1, "the width of a component's segments")?;
        }
        Ok(())
    }

    /// Every node of a tree leads on to later ones of the same tree: so every walk ends.
    fn check_tree(&self, tree: usize, nodes: usize) -> Result<(), TreesError> {
        let (from, count) = self.entry(tree);
        if count == 0 || from.checked_add(count).is_none_or(|end| end > nodes) {
            return Err(TreesError::Value("the place of a tree"));
        }
        for node in 0..count {
            let (kind, _, right) = self.node(from + node);
            let good = if kind & LEAF == 0 {
                usize::from(kind) < self.inputs && right > node + 1 && right < count
            } else {
                kind == LEAF && factor(right).is_some()
            };
            if !good {
                return Err(TreesError::Node { tree, node });
            }
        }
        Ok(())
    }

    /// How many trees there are: 1 to [`TREES_MAX`].
    pub fn count(&self) -> usize {
        self.trees
    }

    /// How many inputs its nodes may compare: the [`SIGNALS`] of Table I alone, or all [`INPUTS`].
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The tree to ask while nothing is known of the path: that of the largest cluster.
    pub fn first(&self) -> usize {
        self.first
    }

    /// The same model, of which every connection asks this tree and none other: for measuring what a choice is worth.
    /// `None` where there is no such tree.
    #[must_use]
    pub fn only(self, tree: usize) -> Option<Self> {
        (tree < self.trees).then_some(Self { first: tree, states: u32::MAX, ..self })
    }

    /// The model as it stands in the file.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many states a selection looks at: those of T_l = 10 s (Muses §III-F).
    pub fn states(&self) -> u32 {
        self.states
    }

    /// The least and greatest value of a signal (below [`SIGNALS`]) in training.
    pub fn range(&self, signal: usize) -> (i16, i16) {
        let at = RANGES_AT + signal * 4;
        (u16_at(self.bytes, at) as i16, u16_at(self.bytes, at + 2) as i16)
    }

    /// Whether training saw values like these, in every signal.
    pub fn knows(&self, state: &State) -> bool {
        state.iter().enumerate().all(|(signal, &value)| {
            let (low, high) = self.range(signal);
            (low..=high).contains(&value)
        })
    }

    /// What tree number `tree` multiplies the window by, asked with these inputs. A tree that is
    /// not there changes nothing.
    pub fn decide(&self, tree: usize, inputs: &Inputs) -> Factor {
        if tree >= self.trees {
            return Factor::ONE;
        }
        let (from, count) = self.entry(tree);
        let mut at = 0;
        // Each step goes on to a later node, so there are fewer steps than nodes.
        for _ in 0..count {
            let (kind, threshold, right) = self.node(from + at);
            if kind & LEAF != 0 {
                return factor(right).unwrap_or(Factor::ONE);
            }
            at = if inputs[usize::from(kind)] <= threshold { at + 1 } else { right };
        }
        Factor::ONE
    }

    /// The segments of the components in which a state lies (Muses §III-E).
    pub fn segments(&self, state: &State) -> [usize; COMPONENTS] {
        core::array::from_fn(|i| {
            let (at, low, width) = self.component(i);
            let sum: i64 = state
                .iter()
                .enumerate()
                .map(|(signal, &value)| {
                    i64::from(u32_at(self.bytes, at + signal * 4) as i32) * i64::from(value)
                })
                .sum();
            let along = (sum >> WEIGHT_POINT) - i64::from(low);
            (along / i64::from(width)).clamp(0, BINS as i64 - 1) as usize
        })
    }

    /// The tree whose cluster's centre is nearest to the distribution that these counts of states in segments
    /// lead to expect (Muses §III-F); the first of equals.
    ///
    /// The distance is |Q·p − c|². What is common to all centres is left out, which leaves |c|² − 2(Qᵀc)·p: the
    /// file has |c|² and 2Qᵀc for each, and no matrix.
    pub fn nearest(&self, counts: &Counts) -> usize {
        let seen = i64::from(counts.seen);
        let distance = |tree: usize| {
            let at = CENTRES_AT + tree * CENTRE_SIZE;
            let norm = i64::from(u32_at(self.bytes, at) as i32);
            let cells = counts.cells.iter().flatten().enumerate();
            let along: i64 = cells
                .map(|(i, &n)| i64::from(u32_at(self.bytes, at + 8 + i * 4) as i32) * i64::from(n))
                .sum();
            norm * seen - along
        };
        (0..self.trees).min_by_key(|&tree| distance(tree)).unwrap_or(self.first)
    }

    /// The nodes of a tree, in their order; none of a tree that is not there.
    pub fn nodes(&self, tree: usize) -> impl ExactSizeIterator<Item = Node> + '_ {
        let (from, count) = if tree < self.trees { self.entry(tree) } else { (0, 0) };
        (from..from + count).map(|index| {
            let (kind, threshold, above) = self.node(index);
            if kind & LEAF == 0 {
                Node::Test { input: usize::from(kind), threshold, above }
            } else {
                Node::Leaf(factor(above).unwrap_or(Factor::ONE))
            }
        })
    }

    /// A component of the projection, below [`COMPONENTS`].
    pub fn projection(&self, component: usize) -> Component {
        let (at, low, width) = self.component(component);
        let weight = |signal| u32_at(self.bytes, at + signal * 4) as i32;
        Component { weights: core::array::from_fn(weight), low, width }
    }

    /// The checksum that its file has.
    pub fn checksum(&self) -> u32 {
        u32_at(self.bytes, SUM_AT)
    }

    /// Where a component's weights are, its least value and the width of its segments.
    fn component(&self, i: usize) -> (usize, i32, i32) {
        let at = PROJECTION_AT + i * COMPONENT_SIZE;
        let low = u32_at(self.bytes, at + SIGNALS * 4) as i32;
        (at, low, u32_at(self.bytes, at + SIGNALS * 4 + 4) as i32)
    }

    /// The first node of a tree, and how many it has.
    fn entry(&self, tree: usize) -> (usize, usize) {
        let at = CENTRES_AT + self.trees * CENTRE_SIZE + tree * ENTRY_SIZE;
        (u32_at(self.bytes, at) as usize, usize::from(u16_at(self.bytes, at + 4)))
    }

    fn nodes_at(&self) -> usize {
        CENTRES_AT + self.trees * (CENTRE_SIZE + ENTRY_SIZE)
    }

    /// A node: its kind, its threshold, and where it goes on where the signal is above; of a leaf the factor.
    fn node(&self, index: usize) -> (u8, i16, usize) {
        let at = self.nodes_at() + index * NODE_SIZE;
        let threshold = u16_at(self.bytes, at + 2) as i16;
        (self.bytes[at], threshold, usize::from(u16_at(self.bytes, at + 4)))
    }
}

/// How often states lay in each segment of each component (Muses §III-E).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    cells: [[u32; BINS]; COMPONENTS],
    seen: u32,
}

impl Counts {
    /// Counts a state; gives how many were counted.
    pub fn add(&mut self, segments: [usize; COMPONENTS]) -> u32 {
        for (cells, segment) in self.cells.iter_mut().zip(segments) {
            cells[segment.min(BINS - 1)] += 1;
        }
        self.seen += 1;
        self.seen
    }

    /// Those that were counted elsewhere. Each state is in one segment of every component.
    pub fn of(cells: [[u32; BINS]; COMPONENTS]) -> Self {
        Self { cells, seen: cells[0].iter().fold(0, |sum, n| sum.wrapping_add(*n)) }
    }

    /// How many states were counted.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    /// Those that came after `before`, of counts that only grow, modulo 2^32.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self::of(core::array::from_fn(|i| {
            core::array::from_fn(|j| self.cells[i][j].wrapping_sub(before.cells[i][j]))
        }))
    }

    /// These and others.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        Self::of(core::array::from_fn(|i| {
            core::array::from_fn(|j| self.cells[i][j].saturating_add(others.cells[i][j]))
        }))
    }
}

/// The factor of a leaf.
fn factor(parts: usize) -> Option<Factor> {
    u16::try_from(parts).ok().and_then(Factor::new)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The checksum of ISO 3309, as in zip and Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        (0..8)
            .fold(sum ^ u32::from(*byte), |s, _| (s >> 1) ^ (0xedb8_8320 & (s & 1).wrapping_neg()))
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two trees; python/tests/test_muses_trees.py writes the same bytes.
    static SMALL: &[u8] = include_bytes!("small.trees");

    fn patched(at: usize, new: &[u8]) -> std::vec::Vec<u8> {
        let mut bytes = SMALL.to_vec();
        bytes[at..at + new.len()].copy_from_slice(new);
        sealed(bytes)
    }

    /// The same with the right checksum.
    fn sealed(mut bytes: std::vec::Vec<u8>) -> std::vec::Vec<u8> {
        let sum = crc32(&bytes[BODY_AT..]);
        bytes[SUM_AT..SUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn state(qdelay: i16) -> State {
        [4000, qdelay, 4000, 5000, 5000, 0, 3500]
    }

    fn asked(state: &State) -> Inputs {
        crate::muses::Past::default().see(state)
    }

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn trees_are_walked_by_their_thresholds() {
        let trees = Trees::parse(SMALL).unwrap();
        assert_eq!((trees.count(), trees.first(), trees.states()), (2, 1, 4));
        let decide = |tree, qdelay| trees.decide(tree, &asked(&state(qdelay))).parts();
        // Tree 0: qdelay up to 100 grows, up to 500 keeps, above shrinks.
        assert_eq!([100, 101, 500, 501].map(|q| decide(0, q)), [32_768, 16_384, 16_384, 13_653]);
        assert_eq!(decide(1, 700), 15_604, "a single leaf");
        assert_eq!(decide(9, 700), 16_384, "there is no such tree");
        assert!(trees.knows(&state(100)) && !trees.knows(&state(3001)));
    }

    #[test]
    fn the_nearest_centre_is_chosen() {
        let trees = Trees::parse(SMALL).unwrap();
        // The first component is qdelay / 100, from 0 in steps of 1.
        assert_eq!(
            [0, 99, 100, 950, 3000, -50].map(|q| trees.segments(&state(q))[0]),
            [0, 0, 1, 9, 9, 0]
        );
        let choose = |qdelays: [i16; 4]| {
            let mut counts = Counts::default();
            for q in qdelays {
                counts.add(trees.segments(&state(q)));
            }
            trees.nearest(&counts)
        };
        assert_eq!(choose([0, 0, 0, 0]), 0, "centre 0 is of empty queues");
        assert_eq!(choose([950; 4]), 1);
        assert_eq!(choose([0, 0, 950, 950]), 0, "the first of equals");
    }

    #[test]
    fn a_model_of_which_one_tree_is_asked_chooses_no_other() {
        let trees = Trees::parse(SMALL).unwrap();
        let only = trees.only(0).unwrap();
        assert_eq!((trees.first(), only.first()), (1, 0));
        // A selection is due after so many states, at 100 a second.
        assert!(only.states() / 100 > 365 * 24 * 3600);
        assert_eq!(only.as_bytes(), trees.as_bytes());
        assert!(trees.only(2).is_none(), "there is no such tree");
    }

    /// A walk by [`Trees::nodes`] that counts by [`Trees::projection`] comes to the same.
    #[test]
    fn nodes_and_projection_say_what_the_walk_and_the_segments_do() {
        let trees = Trees::parse(SMALL).unwrap();
        assert_eq!(trees.nodes(2).len(), 0);
        for qdelay in (-50..3000).step_by(7) {
            let state = state(qdelay);
            for tree in 0..trees.count() {
                let nodes: std::vec::Vec<Node> = trees.nodes(tree).collect();
                let mut at = 0;
                let factor = loop {
                    match nodes[at] {
                        Node::Leaf(factor) => break factor,
                        Node::Test { input, threshold, above } => {
                            at = if state[input] <= threshold { at + 1 } else { above };
                        }
                    }
                };
                assert_eq!(factor, trees.decide(tree, &asked(&state)));
            }
            let Component { weights, low, width } = trees.projection(0);
            let sum: i64 =
                weights.iter().zip(state).map(|(w, x)| i64::from(*w) * i64::from(x)).sum();
            let along = ((sum >> WEIGHT_POINT) - i64::from(low)) / i64::from(width);
            assert_eq!(along.clamp(0, 9) as usize, trees.segments(&state)[0]);
        }
    }

    #[test]
    fn counts_are_told_apart_and_put_together() {
        let mut counts = Counts::default();
        counts.add([0, 3, 9]);
        let before = counts;
        counts.add([0, 4, 9]);
        counts.add([1, 4, 8]);
        let later = counts.since(&before);
        assert_eq!((later.seen(), later.and(&before)), (2, counts));
        let mut cells = [[0; BINS]; COMPONENTS];
        for (component, segment) in [0, 3, 9].into_iter().enumerate() {
            cells[component][segment] = 1;
        }
        assert_eq!(Counts::of(cells), before);
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused() {
        for length in 0..SMALL.len() {
            assert!(Trees::parse(&SMALL[..length]).is_err(), "{length} bytes");
        }
        for at in 0..SMALL.len() {
            let mut bytes = SMALL.to_vec();
            bytes[at] ^= 0x10;
            assert!(Trees::parse(&bytes).is_err(), "byte {at}");
        }
        assert_eq!(Trees::parse(b"PK\x03\x04 a zip file").unwrap_err(), TreesError::NotTrees);
    }

    /// A checksum keeps nobody out who can write one: whatever else the bytes say, what is accepted is safe to ask.
    #[test]
    fn hostile_files_with_the_right_checksum_do_no_harm() {
        let mut random = 1u64;
        let mut draw = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut accepted = 0;
        for _ in 0..20_000 {
            let changes: [(usize, u8); 3] =
                core::array::from_fn(|_| (BODY_AT + draw(SMALL.len() - BODY_AT), draw(256) as u8));
            let mut bytes = SMALL.to_vec();
            for (at, value) in changes {
                bytes[at] = value;
            }
            let bytes = sealed(bytes);
            let Ok(trees) = Trees::parse(&bytes) else { continue };
            accepted += 1;
            let mut counts = Counts::default();
            for x in [i16::MIN, -1, 0, 100, 4000, i16::MAX] {
                for tree in 0..3 {
                    let factor = trees.decide(tree, &[x; INPUTS]);
                    assert!((Factor::MIN..=Factor::MAX).contains(&factor));
                }
                counts.add(trees.segments(&[x; SIGNALS]));
                assert!(trees.nearest(&counts) < trees.count());
            }
        }
        assert!(accepted > 1_000, "{accepted} were walked");
    }

    #[test]
    fn a_file_says_how_many_inputs_its_nodes_compare() {
        let nodes = Trees::parse(SMALL).unwrap().nodes_at();
        assert_eq!(Trees::parse(SMALL).unwrap().inputs(), SIGNALS);
        let mut bytes = patched(BODY_AT, &[INPUTS as u8]);
        bytes[nodes] = INPUTS as u8 - 1;
        let bytes = sealed(bytes);
        let trees = Trees::parse(&bytes).unwrap();
        assert_eq!(trees.inputs(), INPUTS);
        let mut inputs = asked(&state(700));
        inputs[INPUTS - 1] = 100;
        assert_eq!(trees.decide(0, &inputs), Factor::MAX);
        inputs[INPUTS - 1] = 101;
        assert_eq!(trees.decide(0, &inputs).parts(), 13_653, "then by qdelay");
    }

    #[test]
    fn what_would_lead_astray_is_refused() {
        let error = |at: usize, new: &[u8]| Trees::parse(&patched(at, new)).unwrap_err();
        let nodes = Trees::parse(SMALL).unwrap().nodes_at();
        let node = |node| TreesError::Node { tree: 0, node };
        // The root of tree 0: back to itself, into the other tree, a signal and an action that are not there.
        assert_eq!(error(nodes + 4, &[0, 0]), node(0));
        assert_eq!(error(nodes + 4, &[1, 0]), node(0), "both ways the same");
        assert_eq!(error(nodes + 4, &[5, 0]), node(0));
        assert_eq!(error(nodes, &[7]), node(0));
        assert_eq!(error(nodes + NODE_SIZE, &[LEAF | 1]), node(1));
        assert_eq!(error(nodes + NODE_SIZE + 4, &8191u16.to_le_bytes()), node(1), "below a half");
        assert_eq!(error(nodes + NODE_SIZE + 4, &32_769u16.to_le_bytes()), node(1), "above two");
        assert_eq!(error(8, &[1, 0]), TreesError::Version(1));
        assert_eq!(error(24, &[2, 0]), TreesError::Value("the first tree"));
        assert_eq!(error(10, &[0, 0]), TreesError::Value("the number of trees"));
        assert_eq!(error(20, &[8]), TreesError::Shape);
        let width = PROJECTION_AT + SIGNALS * 4 + 4;
        assert!(matches!(error(width, &[0; 4]), TreesError::Value(_)), "it is divided by");
        let entry = CENTRES_AT + 2 * CENTRE_SIZE;
        assert!(matches!(error(entry, &[0xff; 4]), TreesError::Value(_)));
        assert_eq!(error(RANGES_AT, &[0xff, 0x7f]), TreesError::Value("a signal's range"));
    }
}
