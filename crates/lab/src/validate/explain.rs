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

const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        cell: "bbrx4-r48-rtt20-b1-l0",
        metric: Metric::Retransmits,
        reason: "four BBR flows keep a buffer of 1 BDP full and lose all that they probe with, so \
                 the ratio is that of the probes. Why Linux loses a fifth more is not settled",
    },
    Explanation {
        cell: "emu-bbr-r48-rtt20-b1-l0",
        metric: Metric::QueueDelay,
        reason: ON_THE_EDGE,
    },
    Explanation {
        cell: "emu-bbr-r48-rtt20-b4-l0",
        metric: Metric::QueueDelay,
        reason: ON_THE_EDGE,
    },
];

/// Of BBR at 20 ms over Trimtab's emulator with room in the buffer.
const ON_THE_EDGE: &str = "BBR paces at 1% less than its largest rate of ten rounds \
    (`bbr_pacing_margin`), and 1% of 20 ms is 0.2 ms: when Linux sees acknowledgements that much \
    closer together, its queue grows up to what the window allows. Linux's runs differ among \
    themselves: 5.7 ms in a run with another link next to it, 10.2 and 10.6 with two (1 BDP), 9.5 \
    and 18.0 (4 BDP). How late its receiver acknowledges is not in the simulator. Whether that is \
    the cause is not settled";

/// The reason for a cell's difference in a metric, where one is known.
pub fn reason(cell: &Cell, metric: Metric) -> Option<&'static str> {
    EXPLANATIONS.iter().find(|e| e.cell == cell.name && e.metric == metric).map(|e| e.reason)
}
