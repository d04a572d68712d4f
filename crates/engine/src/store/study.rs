//! What is kept of experiments and staged rollouts, which are both *studies* here.

use trimtab_fleet::experiment::{Cell, Observation};
use trimtab_fleet_client::{Hold, Name};

/// What a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StudyKind {
    Experiment,
    Rollout,
}

impl StudyKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Experiment => "experiment",
            Self::Rollout => "rollout",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Experiment, Self::Rollout].into_iter().find(|kind| kind.name() == name)
    }
}

/// What a study is to its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It decides what its members run; one of a service at most.
    Running,
    /// A rollout that is over, whose configuration all aggregates keep; one of a service at most.
    Kept,
    /// Nothing any more.
    Past,
}

impl Standing {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Kept => "kept",
            Self::Past => "past",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Running, Self::Kept, Self::Past].into_iter().find(|one| one.name() == name)
    }
}

/// A study.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Study {
    pub(crate) id: i64,
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) kind: StudyKind,
    pub(crate) standing: Standing,
    /// Grows with each change.
    pub(crate) revision: i64,
    /// JSON.
    pub(crate) document: String,
    pub(crate) changed_ms: i64,
}

/// What a study is to an aggregate whose interval is closed.
#[derive(Clone, Debug)]
pub(crate) struct InStudy {
    pub(crate) study: std::sync::Arc<Study>,
    /// Where it was dealt to; none where it is no member, or has left.
    pub(crate) place: Option<i64>,
}

/// What an interval adds to a study.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) study: i64,
    pub(crate) block: i64,
    pub(crate) arm: u8,
    pub(crate) observation: Observation,
}

/// An aggregate that may take part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) aggregate: i64,
    pub(crate) name: Name,
    pub(crate) hold: Hold,
    /// Its mean reward in the time that was asked for.
    pub(crate) baseline: Option<f64>,
}

/// An aggregate that takes part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MemberRow {
    pub(crate) aggregate: i64,
    pub(crate) name: Name,
    pub(crate) place: i64,
    pub(crate) baseline: Option<f64>,
    /// When an operator took it out.
    pub(crate) left_ms: Option<i64>,
}

/// What a member has shown in a block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellRow {
    pub(crate) aggregate: i64,
    pub(crate) block: i64,
    pub(crate) arm: u8,
    pub(crate) cell: Cell,
}

/// A study that begins.
#[derive(Clone, Debug)]
pub(crate) struct NewStudy {
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) kind: StudyKind,
    pub(crate) document: String,
    /// Aggregates, their places and what was known of them.
    pub(crate) members: Vec<(i64, i64, Option<f64>)>,
    pub(crate) who: String,
    pub(crate) detail: String,
    pub(crate) now_ms: i64,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Yes,
    /// The service had one of this name.
    NameTaken,
    /// Another one of the service is running.
    Running(String),
}

/// How a study goes on.
#[derive(Clone, Debug)]
pub(crate) struct StudyStep {
    pub(crate) document: String,
    pub(crate) standing: Standing,
    pub(crate) who: String,
    pub(crate) action: &'static str,
    pub(crate) detail: String,
    pub(crate) now_ms: i64,
}

impl Study {
    /// In the audit log.
    pub(crate) fn subject(service: &str, name: &str) -> String {
        format!("{service} {name}")
    }
}

/// Says that sums of a cell are damaged: what they hold is left out, and the other cells count.
pub(super) fn unreadable(study: i64, aggregate: i64) {
    crate::logging::warn(&format!(
        "DAMAGED: what aggregate {aggregate} showed in a block of study {study} is left out: its \
         sums are not understood"
    ));
}

/// The sums of a cell with one more interval.
pub(super) fn added(sums: Option<&str>, observation: &Observation) -> Option<String> {
    let mut cell: Cell = sums.map_or_else(|| Ok(Cell::default()), serde_json::from_str).ok()?;
    cell.add(observation);
    Some(serde_json::to_string(&cell).expect("a cell is plain data"))
}
