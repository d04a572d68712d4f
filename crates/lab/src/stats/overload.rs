//! Cells that no scheme can serve, told apart from those where schemes differ.

use serde::{Deserialize, Serialize};

use crate::result::{RunRecord, SummaryRow};
use crate::stats::summary::{in_order, summary};

/// A cell is overloaded when even the scheme that finishes most of its requests leaves more than
/// this share of them unfinished, 0 to 1. Our own choice.
pub const UNFINISHED_MAX: f64 = 0.10;

/// The summary without overloaded cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// How many cells there are, those of each application apart.
    pub cells: u64,
    /// How many of them are overloaded and left out.
    pub overloaded: u64,
    /// As `summary`, over the other cells.
    pub summary: Vec<SummaryRow>,
}

/// The runs of each cell: the same application, trace and point of the grid. Runs come in the order
/// of the scenario, so those of a cell stand together.
fn of_cells(runs: &[RunRecord]) -> impl Iterator<Item = &[RunRecord]> {
    runs.chunk_by(|a, b| a.app == b.app && a.trace == b.trace && a.cell == b.cell)
}

/// Whether a cell with these runs is overloaded.
pub fn is_overloaded(cell: &[RunRecord]) -> bool {
    let unfinished = |cc: &str| {
        let own = || cell.iter().filter(|r| r.cc == cc);
        let left: u64 = own().map(|r| r.unfinished).sum();
        let all: u64 = own().map(|r| r.requests + r.unfinished).sum();
        left as f64 / all.max(1) as f64
    };
    let schemes = in_order(cell.iter().map(|r| r.cc.as_str()));
    schemes.into_iter().map(unfinished).reduce(f64::min).is_some_and(|least| least > UNFINISHED_MAX)
}

/// The runs of cells that are not overloaded.
pub fn served_runs(runs: &[RunRecord]) -> Vec<&RunRecord> {
    of_cells(runs).filter(|cell| !is_overloaded(cell)).flatten().collect()
}

/// The summary without overloaded cells; `None` where no cell is.
pub fn served(runs: &[RunRecord]) -> Option<Served> {
    let overloaded = of_cells(runs).filter(|cell| is_overloaded(cell)).count() as u64;
    (overloaded > 0).then(|| Served {
        cells: of_cells(runs).count() as u64,
        overloaded,
        summary: summary(&served_runs(runs)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    fn with(cc: &str, trace: &str, finished: u64, unfinished: u64) -> RunRecord {
        RunRecord { requests: finished, unfinished, ..run(cc, trace, 0, 1.0) }
    }

    #[test]
    fn a_cell_is_overloaded_when_the_best_leaves_a_tenth() {
        let cell = |best| [with("cubic", "t", 50, 50), with("bbr", "t", 100 - best, best)];
        assert!(is_overloaded(&cell(11)));
        assert!(!is_overloaded(&cell(10)), "a tenth is not more than a tenth");
        assert!(!is_overloaded(&[with("cubic", "t", 0, 0)]), "a bulk transfer has no requests");
        assert!(!is_overloaded(&[]));
    }

    #[test]
    fn the_summary_is_made_again_without_overloaded_cells() {
        let runs = [
            with("cubic", "slow", 1, 9),
            with("bbr", "slow", 2, 8),
            with("cubic", "fast", 10, 0),
            with("bbr", "fast", 9, 1),
        ];
        let served = served(&runs).unwrap();
        assert_eq!((served.cells, served.overloaded), (2, 1));
        assert!(served.summary.iter().all(|row| row.runs == 1));
        assert_eq!(super::served(&runs[2..]), None);
    }
}
