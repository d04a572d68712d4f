//! Why some cells are far off: what the emulator, the kernel or the measurement does that the
//! simulator does not, found by comparing the runs. Each entry names its cells; nothing here changes
//! what is compared or where the bands are.

use super::compare::{Cell, Metric};

/// A reason, and the cells and the metric that it is for.
struct Explanation {
    cell: &'static str,
    metric: Metric,
    reason: &'static str,
}

const EXPLANATIONS: &[Explanation] = &[Explanation {
    cell: "bbrx4-r48-rtt20-b1-l0",
    metric: Metric::Retransmits,
    reason: "four BBR flows keep a buffer of 1 BDP full and lose all that they probe with, so \
                 the ratio is that of the probes. Why Linux loses a fifth more is not settled",
}];

/// The reason for a cell's difference in a metric, where one is known.
pub fn reason(cell: &Cell, metric: Metric) -> Option<&'static str> {
    EXPLANATIONS.iter().find(|e| e.cell == cell.name && e.metric == metric).map(|e| e.reason)
}
