//! Tables of RemyCC, from and to the files that Remy writes (`.dna`).
//!
//! The format is that of the repository `tcpexmachina/remy`, `protobufs/dna.proto`: Protocol Buffers,
//! a tree of boxes (`WhiskerTree`) whose leaves have a rule. What else is in such a file, which tells
//! how the table was made, is not read. A missing end of a box is 0 or 163840, and a box without a
//! list of its axes has the first four (`memory.cc`, `memoryrange.cc`).

use alloc::boxed::Box;
use alloc::vec::Vec;

use prost::{DecodeError, Message};
use trimtab_cc::remy::{AXES, Domain, MEMORY_MAX, Table, TableError, Whisker};

/// The largest file: thirty times the largest that was published.
const FILE_MAX: usize = 1 << 20;
/// The axes of a box that names none.
const AXES_BEFORE: [i32; 4] = [0, 1, 2, 3];

/// Why bytes are no table of RemyCC.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum DnaError {
    /// They are too many.
    #[error("{0} bytes are more than the {FILE_MAX} of a table: it is another kind of file")]
    Length(usize),
    /// They are no message of Protocol Buffers.
    #[error("it is no .dna file of Remy, or a damaged one ({0}): get it again")]
    Wire(DecodeError),
    /// A box has neither a rule nor boxes in it, or both.
    #[error(
        "it is no table of RemyCC: a box has {}: take a .dna file that Remy wrote for a RemyCC",
        if *.0 { "a rule and boxes in it" } else { "neither a rule nor boxes in it" }
    )]
    Tree(bool),
    /// It names an axis that a memory does not have.
    #[error("it is of another version of Remy: a memory has no axis {0}, there are 0 to 5")]
    Axis(i32),
    /// An end of a box is no number.
    #[error("an end of a box is no number: it is damaged, get it again")]
    End,
    /// Its rules are no table.
    #[error("no usable table of RemyCC: {0}")]
    Table(TableError),
}

/// `WhiskerTree`. Boxes on the heap: one that is not there takes little room.
#[derive(Clone, PartialEq, Message)]
struct TreeMessage {
    #[prost(message, optional, boxed, tag = "1")]
    domain: Option<Box<RangeMessage>>,
    #[prost(message, repeated, tag = "2")]
    children: Vec<TreeMessage>,
    #[prost(message, optional, boxed, tag = "3")]
    leaf: Option<Box<WhiskerMessage>>,
}

/// `MemoryRange`.
#[derive(Clone, PartialEq, Message)]
struct RangeMessage {
    #[prost(message, optional, tag = "11")]
    lower: Option<MemoryMessage>,
    #[prost(message, optional, tag = "12")]
    upper: Option<MemoryMessage>,
    #[prost(int32, repeated, packed = "false", tag = "13")]
    active_axis: Vec<i32>,
}

/// `Memory`.
#[derive(Clone, PartialEq, Message)]
struct MemoryMessage {
    #[prost(double, optional, tag = "21")]
    rec_send_ewma: Option<f64>,
    #[prost(double, optional, tag = "22")]
    rec_rec_ewma: Option<f64>,
    #[prost(double, optional, tag = "23")]
    rtt_ratio: Option<f64>,
    #[prost(double, optional, tag = "24")]
    slow_rec_rec_ewma: Option<f64>,
    #[prost(double, optional, tag = "25")]
    rtt_diff: Option<f64>,
    #[prost(double, optional, tag = "26")]
    queueing_delay: Option<f64>,
}

/// `Whisker`. Its own box is that of the tree around it.
#[derive(Clone, PartialEq, Message)]
struct WhiskerMessage {
    #[prost(sint32, tag = "31")]
    window_increment: i32,
    #[prost(double, tag = "32")]
    window_multiple: f64,
    #[prost(double, tag = "33")]
    intersend: f64,
    #[prost(message, optional, boxed, tag = "34")]
    domain: Option<Box<RangeMessage>>,
}

impl MemoryMessage {
    fn axes(&self) -> [Option<f64>; AXES] {
        [
            self.rec_send_ewma,
            self.rec_rec_ewma,
            self.rtt_ratio,
            self.slow_rec_rec_ewma,
            self.rtt_diff,
            self.queueing_delay,
        ]
    }

    fn of([send, received, ratio, slow, above, queueing]: [f64; AXES]) -> Self {
        Self {
            rec_send_ewma: Some(send),
            rec_rec_ewma: Some(received),
            rtt_ratio: Some(ratio),
            slow_rec_rec_ewma: Some(slow),
            rtt_diff: Some(above),
            queueing_delay: Some(queueing),
        }
    }
}

impl RangeMessage {
    fn domain(&self) -> Result<Domain, DnaError> {
        let named = &self.active_axis[..];
        let active = if named.is_empty() { &AXES_BEFORE } else { named };
        let ends = |memory: &Option<MemoryMessage>| {
            memory.as_ref().map_or([None; AXES], MemoryMessage::axes)
        };
        let (lower, upper) = (ends(&self.lower), ends(&self.upper));
        let mut domain = Domain::ALL;
        for &number in active {
            let axis = usize::try_from(number).ok().filter(|axis| *axis < AXES);
            let axis = axis.ok_or(DnaError::Axis(number))?;
            domain.lower[axis] = lower[axis].unwrap_or(0.0);
            domain.upper[axis] = upper[axis].unwrap_or(MEMORY_MAX);
        }
        if domain.lower.iter().chain(&domain.upper).any(|end| end.is_nan()) {
            return Err(DnaError::End);
        }
        Ok(domain)
    }

    fn of(domain: &Domain) -> Self {
        let bounds = |axis: &i32| {
            let axis = *axis as usize;
            domain.lower[axis] > 0.0 || domain.upper[axis] < MEMORY_MAX
        };
        Self {
            lower: Some(MemoryMessage::of(domain.lower)),
            upper: Some(MemoryMessage::of(domain.upper)),
            active_axis: (0..AXES as i32).filter(bounds).collect(),
        }
    }
}

impl TreeMessage {
    /// The rules below, each for the part of its box that is within all boxes around it.
    fn collect(&self, around: &Domain, whiskers: &mut Vec<Whisker>) -> Result<(), DnaError> {
        let own = self.domain.as_deref().map_or(Ok(Domain::ALL), RangeMessage::domain)?;
        let domain = own.within(around);
        match (&self.leaf, &self.children[..]) {
            // The published tables have some.
            (Some(_), []) if domain.is_empty() => {}
            (Some(leaf), []) => whiskers.push(Whisker {
                domain,
                increment: leaf.window_increment,
                multiple: leaf.window_multiple,
                pause_ms: leaf.intersend,
            }),
            (None, [_, ..]) => {
                for child in &self.children {
                    child.collect(&domain, whiskers)?;
                }
            }
            (leaf, _) => return Err(DnaError::Tree(leaf.is_some())),
        }
        Ok(())
    }
}

/// Reads a `.dna` file's bytes.
///
/// # Errors
/// They are no table of RemyCC, or a damaged one.
pub fn read_dna(bytes: &[u8]) -> Result<Table, DnaError> {
    if bytes.len() > FILE_MAX {
        return Err(DnaError::Length(bytes.len()));
    }
    let tree = TreeMessage::decode(bytes).map_err(DnaError::Wire)?;
    let mut whiskers = Vec::new();
    tree.collect(&Domain::ALL, &mut whiskers)?;
    Table::new(whiskers).map_err(DnaError::Table)
}

/// The bytes of a table as a `.dna` file, which Remy's programs read as well.
pub fn write_dna(table: &Table) -> Vec<u8> {
    let leaf = |whisker: &Whisker| {
        let domain = Box::new(RangeMessage::of(&whisker.domain));
        TreeMessage {
            domain: Some(domain.clone()),
            children: Vec::new(),
            leaf: Some(Box::new(WhiskerMessage {
                window_increment: whisker.increment,
                window_multiple: whisker.multiple,
                intersend: whisker.pause_ms,
                domain: Some(domain),
            })),
        }
    };
    let children = table.whiskers().iter().map(leaf).collect();
    let domain = Some(Box::new(RangeMessage::default()));
    TreeMessage { domain, children, leaf: None }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    /// Two rules, parted at a ratio of 1.5: half the window and 3, a packet each 2 ms; and below a queue
    /// nine tenths of it less 4, a packet each 7.5 ms. Encoded after `dna.proto`, not by this code.
    const TWO: &[u8] = include_bytes!("../../seeds/remy/two-rules");
    /// Boxes of the axis of delay alone, in a box in a box.
    const ONE_AXIS: &[u8] = include_bytes!("../../seeds/remy/one-axis");

    fn rules(bytes: &[u8]) -> Vec<(i32, f64, f64)> {
        let table = read_dna(bytes).unwrap();
        table.whiskers().iter().map(|w| (w.increment, w.multiple, w.pause_ms)).collect()
    }

    #[test]
    fn a_file_has_its_rules_and_a_missing_end_holds_all() {
        assert_eq!(rules(TWO), [(3, 0.5, 2.0), (-4, 0.9, 7.5)]);
        let table = read_dna(TWO).unwrap();
        let increment = |memory| table.find(&memory).map(|whisker| whisker.increment);
        for far in [0.0, 9.0, 170_000.0] {
            assert_eq!(increment([far, far, 1.49, far, far, far]), Some(3));
            assert_eq!(increment([far, far, 1.5, far, far, far]), Some(-4));
        }
    }

    /// Of a box that was split at its own end, one part holds nothing. Its rule is never used.
    #[test]
    fn a_rule_whose_box_holds_nothing_is_left_out() {
        let mut tree = TreeMessage::decode(TWO).unwrap();
        let mut nothing = tree.children[0].clone();
        let end = |ratio| Some(MemoryMessage { rtt_ratio: Some(ratio), ..Default::default() });
        let domain = RangeMessage { lower: end(1.5), upper: end(1.5), active_axis: Vec::new() };
        nothing.domain = Some(Box::new(domain));
        tree.children.insert(1, nothing);
        assert_eq!(rules(&tree.encode_to_vec()), rules(TWO));
    }

    #[test]
    fn only_the_axes_that_a_box_names_bound_it() {
        assert_eq!(rules(ONE_AXIS), [(8, 1.0, 0.25), (0, 0.5, 1.0)]);
        let [short, long] = read_dna(ONE_AXIS).unwrap().whiskers().to_vec()[..] else {
            panic!("there are two rules");
        };
        assert_eq!((short.domain.lower[4], short.domain.upper[4]), (0.0, 40.0));
        assert_eq!((long.domain.lower[4], long.domain.upper[4]), (40.0, MEMORY_MAX));
        assert_eq!(short.domain.upper[0], MEMORY_MAX);
    }

    #[test]
    fn what_is_no_table_is_refused_in_one_line() {
        for length in 0..TWO.len() {
            if let Err(problem) = read_dna(&TWO[..length]) {
                let problem = problem.to_string();
                assert!(!problem.contains('\n'), "{problem}");
            }
        }
        let why = |bytes: &[u8]| read_dna(bytes).unwrap_err().to_string();
        assert!(why(b"").contains("neither a rule nor boxes"), "{}", why(b""));
        assert!(why(b"TRIMTREE and more").contains("no .dna file"));
        assert!(why(&vec![0; FILE_MAX + 1]).contains("another kind of file"));
        // A table of another of Remy's senders (`FinTree`) has its boxes under other numbers.
        assert!(why(&[0xd2, 0x05, 0x00]).contains("neither a rule nor boxes"));
        let axis = TreeMessage {
            domain: Some(Box::new(RangeMessage { active_axis: vec![6], ..Default::default() })),
            ..Default::default()
        };
        assert!(why(&axis.encode_to_vec()).contains("no axis 6"));
    }

    /// A box in a box in a box … does not fill the stack.
    #[test]
    fn boxes_may_not_be_nested_without_end() {
        let mut tree = TreeMessage::default();
        for _ in 0..200 {
            tree = TreeMessage { children: vec![tree], ..Default::default() };
        }
        assert!(matches!(read_dna(&tree.encode_to_vec()), Err(DnaError::Wire(_))));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            axis in 0usize..4, end in 0.1f64..1e5, rules in prop::array::uniform2(
                (-300i32..300, 0.0f64..3.0, 0.0f64..30.0)),
        ) {
            let (mut below, mut above) = (Domain::ALL, Domain::ALL);
            (below.upper[axis], above.lower[axis]) = (end, end);
            let rule = |domain, (increment, multiple, pause_ms)| {
                Whisker { domain, increment, multiple, pause_ms }
            };
            let table = Table::new(vec![rule(below, rules[0]), rule(above, rules[1])]).unwrap();
            prop_assert_eq!(read_dna(&write_dna(&table)).unwrap(), table);
        }
    }
}
