//! The faults, as they are drawn.

use std::fmt;

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;

use super::world::{AGGREGATES, EDGES};
use crate::store::Cut;

/// How far a clock is off, in ms.
const OFF_MS: i64 = 300_000;
/// How long a fault lasts, in s: most, and an outage.
const SHORT_S: std::ops::Range<i64> = 1..60;
const OUTAGE_S: i64 = 600;

/// Whose clock it is, or which link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Engine,
    Edge(usize),
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The engine is killed: at once, or where it writes next.
    EngineKilled(Option<Cut>),
    /// The database is gone: at once, or where it commits next.
    StoreGone(Option<Cut>),
    /// Nothing gets to the engine: from one edge, or from any.
    Partition(Place),
    /// What an edge asks gets to the engine, and no answer gets back.
    Unanswered(usize),
    /// A request of an edge is on its way for the whole time.
    Straggler(usize),
    /// A clock is off by so many ms.
    Clock(Place, i64),
    /// There is no room for more.
    FullDisk,
    /// The row of an aggregate cannot be read.
    DamagedRow(usize),
}

/// A fault, and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) lasts_s: i64,
}

impl Fault {
    pub(super) fn draw(chance: &mut Pcg64Mcg) -> Self {
        let edge = chance.random_range(0..EDGES);
        let place = match chance.random_range(0..EDGES + 1) {
            0 => Place::Engine,
            n => Place::Edge(n - 1),
        };
        let cut = match chance.random_range(0..3) {
            0 => None,
            1 => Some(Cut::Before),
            _ => Some(Cut::After),
        };
        let off_ms = if chance.random() { OFF_MS } else { -OFF_MS };
        // An outage of ten minutes is of the engine, of the database or of the whole network.
        let (kind, is_long) = match chance.random_range(0..11) {
            0 | 1 => (Kind::EngineKilled(cut), false),
            2 | 3 => (Kind::StoreGone(cut), false),
            4 => (Kind::Partition(place), false),
            5 => (Kind::Unanswered(edge), false),
            6 => (Kind::Straggler(edge), false),
            7 => (Kind::Clock(place, off_ms), false),
            8 => (Kind::FullDisk, false),
            9 => (Kind::DamagedRow(chance.random_range(0..AGGREGATES)), false),
            _ => match chance.random_range(0..3) {
                0 => (Kind::EngineKilled(cut), true),
                1 => (Kind::StoreGone(cut), true),
                _ => (Kind::Partition(Place::Engine), true),
            },
        };
        let short_s = chance.random_range(SHORT_S);
        Self { kind, lasts_s: if is_long { OUTAGE_S } else { short_s } }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {} s", self.kind, self.lasts_s)
    }
}
