//! How true the links of many runs were.

use std::fmt;

use crate::report::Report;

/// How true the links of all runs were: what a table of results is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fidelity {
    /// Runs made.
    pub runs: u64,
    /// The 99th percentile of how late packets left a link, in the worst run, in milliseconds.
    pub late_p99_ms: f64,
    /// Packets that were lost elsewhere than on the links, in all runs: the machine was too slow.
    pub lost_elsewhere: u64,
}

impl Fidelity {
    /// Counts a run in.
    pub fn add(&mut self, report: &Report) {
        self.runs += 1;
        for direction in [&report.down, &report.up] {
            self.late_p99_ms = direction.late.map_or(0.0, |l| l.p99_ms).max(self.late_p99_ms);
            self.lost_elsewhere += direction.drops.before_link + direction.drops.refused;
        }
    }

    /// Whether results are to be trusted: packets left within a millisecond, and none was lost
    /// elsewhere than on the links.
    pub fn is_good(&self) -> bool {
        self.late_p99_ms <= 1.0 && self.lost_elsewhere == 0
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, late_p99_ms, lost_elsewhere } = self;
        write!(
            f,
            "this machine was too busy for exact links: over {runs} runs, packets left up to \
             {late_p99_ms:.2} ms late at the 99th percentile, and {lost_elsewhere} were lost \
             elsewhere than on the links; use fewer --jobs, or end other programs"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{DirectionReport, Drops, Scheduling, Spread};

    #[test]
    fn links_are_trusted_within_a_millisecond() {
        let good = Fidelity { runs: 3, late_p99_ms: 0.4, lost_elsewhere: 0 };
        assert!(good.is_good());
        assert!(!Fidelity { late_p99_ms: 1.2, ..good }.is_good());
        assert!(!Fidelity { lost_elsewhere: 1, ..good }.is_good());
    }

    fn direction(late_p99_ms: Option<f64>, before_link: u64, refused: u64) -> DirectionReport {
        let spread =
            |p99_ms| Spread { mean_ms: 0.0, p50_ms: 0.0, p95_ms: 0.0, p99_ms, max_ms: 9.0 };
        DirectionReport {
            capacity_mbps: None,
            carried_mbps: 0.0,
            arrivals: 0,
            deliveries: 0,
            delivered_bytes: 0,
            drops: Drops { before_link, refused, queue_full: 50, ..Drops::default() },
            queueing: None,
            one_way: None,
            late: late_p99_ms.map(spread),
            calibration: None,
        }
    }

    fn report(down: DirectionReport, up: DirectionReport) -> Report {
        Report { schema: "", duration_s: 1.0, scheduling: Scheduling::RealTime, down, up }
    }

    #[test]
    fn the_worst_direction_of_the_worst_run_counts() {
        let mut all = Fidelity::default();
        all.add(&report(direction(Some(0.2), 0, 0), direction(None, 0, 0)));
        assert!(all.is_good(), "what the queue drops is the link's own: {all:?}");
        all.add(&report(direction(Some(0.1), 1, 2), direction(Some(3.25), 4, 8)));
        all.add(&report(direction(Some(0.3), 0, 0), direction(Some(0.3), 0, 0)));
        assert_eq!(all, Fidelity { runs: 3, late_p99_ms: 3.25, lost_elsewhere: 15 });
        let text = all.to_string();
        assert!(text.contains("over 3 runs, packets left up to 3.25 ms late"), "{text}");
        assert!(text.contains("15 were lost elsewhere") && text.contains("fewer --jobs"), "{text}");
    }
}
