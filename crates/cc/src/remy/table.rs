//! The table of a RemyCC: rules, each for a box of the memory.

use alloc::vec::Vec;
use core::fmt;

/// Values of a memory.
pub const AXES: usize = 6;
/// Boxes end at this value on every axis (`memory.cc`: `MAX_MEMORY`).
pub const MEMORY_MAX: f64 = 163_840.0;
/// No window is larger, in packets (`whisker.hh`).
pub const WINDOW_MAX: u32 = 1_000_000;

/// A box of the memory: each value is at or above the lower end and below the upper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Domain {
    /// The lower ends, in the order of [`Memory::axes`](super::Memory::axes).
    pub lower: [f64; AXES],
    /// The upper ends.
    pub upper: [f64; AXES],
}

impl Domain {
    /// Every memory.
    pub const ALL: Self = Self { lower: [0.0; AXES], upper: [MEMORY_MAX; AXES] };

    /// Whether a memory is within. What is beyond the end of all boxes counts as just before it.
    pub fn contains(&self, memory: &[f64; AXES]) -> bool {
        let ends = self.lower.iter().zip(&self.upper);
        ends.zip(memory).all(|((lower, upper), &value)| {
            value >= *lower && (value < *upper || *upper >= MEMORY_MAX)
        })
    }

    /// Whether it holds nothing: an end is not above the other, or no number.
    pub fn is_empty(&self) -> bool {
        !self.lower.iter().zip(&self.upper).all(|(lower, upper)| lower < upper)
    }

    /// The memories that are in both.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        Self {
            lower: core::array::from_fn(|axis| self.lower[axis].max(other.lower[axis])),
            upper: core::array::from_fn(|axis| self.upper[axis].min(other.upper[axis])),
        }
    }
}

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whisker {
    /// Where it holds.
    pub domain: Domain,
    /// Packets that are added to the window (the paper's b).
    pub increment: i32,
    /// What the window is multiplied by before that (m); 0 or more.
    pub multiple: f64,
    /// The least pause between packets in ms (τ); 0 or more.
    pub pause_ms: f64,
}

impl Whisker {
    /// The window after this one, in packets (§4.2: window ← m · window + b), rounded down.
    pub fn window(&self, window: u32) -> u32 {
        let next = f64::from(window) * self.multiple + f64::from(self.increment);
        next.clamp(0.0, f64::from(WINDOW_MAX)) as u32
    }
}

/// Rules; the first that fits holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Table(Vec<Whisker>);

/// Why rules are no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// There is none.
    Empty,
    /// Of a rule, by its number from 1, a number is not finite, or the multiple or the pause is
    /// below zero.
    Number(usize),
    /// A rule's box, by its number from 1, holds nothing.
    Nothing(usize),
    /// No rule is for a connection's begin, where every value is zero.
    Begin,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it has no rule"),
            Self::Number(rule) => {
                write!(f, "rule {rule} has a number that is below zero or not finite")
            }
            Self::Nothing(rule) => write!(f, "the box of rule {rule} holds no memory"),
            Self::Begin => f.write_str("no rule is for the begin of a connection"),
        }
    }
}
impl core::error::Error for TableError {}

impl Table {
    /// Checks rules.
    ///
    /// # Errors
    /// They are no table.
    pub fn new(whiskers: Vec<Whisker>) -> Result<Self, TableError> {
        if whiskers.is_empty() {
            return Err(TableError::Empty);
        }
        for (number, whisker) in (1..).zip(&whiskers) {
            let Whisker { domain, multiple, pause_ms, .. } = whisker;
            if ![*multiple, *pause_ms].iter().all(|x| x.is_finite() && *x >= 0.0) {
                return Err(TableError::Number(number));
            }
            if domain.is_empty() {
                return Err(TableError::Nothing(number));
            }
        }
        let table = Self(whiskers);
        table.find(&[0.0; AXES]).ok_or(TableError::Begin)?;
        Ok(table)
    }

    /// The rule for a memory.
    pub fn find(&self, memory: &[f64; AXES]) -> Option<&Whisker> {
        self.0.iter().find(|whisker| whisker.domain.contains(memory))
    }

    /// The rules.
    pub fn whiskers(&self) -> &[Whisker] {
        &self.0
    }
}
