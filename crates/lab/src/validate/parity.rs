//! How the simulator compares with the kernel, cell by cell of a comparison that was run on it.

use serde::Serialize;

use crate::compare::{CompareError, compare};
use crate::report::table::{Column, Style, short, table};
use crate::result::{Comparison, RunRecord};
use crate::run::Recording;
use crate::run::pool::Effort;
use crate::run::simulator::Simulator;
use crate::scenario::{Scenario, ScenarioError, TransportKind};
use crate::stats::percentile;
use crate::stats::summary::in_order;

/// The schema that [`Parity::schema`] names.
pub const SCHEMA: &str = "trimtab.parity/1";

/// How far the simulator may be off, in the median over the cells: throughput in percent of the kernel's …
pub const BAND_THROUGHPUT: f64 = 5.0;
/// … the 95th percentile of round-trip times in percent …
pub const BAND_RTT: f64 = 15.0;
/// … the retransmitted share in percentage points …
pub const BAND_RETRANSMITS: f64 = 0.5;
/// … and the median request completion time in percent.
pub const BAND_RCT: f64 = 10.0;

/// Why there is no comparison of simulator and kernel.
#[derive(Debug, thiserror::Error)]
pub enum ParityError {
    /// The comparison was not run on the kernel.
    #[error(
        "the runs are the simulator's, and there is nothing to compare them with: make the file with \
         `trimtab compare --datapath kernel --json FILE`"
    )]
    NotOnKernel,
    /// Its scenario cannot be read.
    #[error("the scenario in the file: {0}")]
    Scenario(#[from] ScenarioError),
    /// The same runs cannot be made in the simulator.
    #[error(transparent)]
    Compare(#[from] CompareError),
}

/// The simulator compared with the kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parity {
    /// `trimtab.parity/1`.
    pub schema: &'static str,
    /// The kernel.
    pub kernel: String,
    /// The command of the comparison on the kernel.
    pub command: String,
    /// One row per application and scheme.
    pub rows: Vec<ParityRow>,
}

/// One scheme with one application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParityRow {
    /// The application.
    pub app: String,
    /// The scheme.
    pub cc: String,
    /// Cells: traces, at every point of the grid.
    pub cells: usize,
    /// Quality of experience, the mean over all runs: what a comparison ranks by.
    pub qoe_mean: Sides,
    /// Throughput, in Mbit/s and percent.
    pub throughput: Difference,
    /// 95th percentile of the packets' round-trip times, in milliseconds and percent.
    pub rtt_p95: Difference,
    /// Retransmitted packets over sent ones, both and their difference in percentage points.
    pub retransmits: Difference,
    /// Median request completion time, in milliseconds and percent; requests only.
    pub rct_p50: Option<Difference>,
}

/// A quantity on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sides {
    /// On the kernel.
    pub kernel: f64,
    /// In the simulator.
    pub sim: f64,
}

/// A quantity on both sides, and its band. Each is the median over cells, the difference of each
/// cell taken first: cells in which the simulator gives too much do not make up for those in which
/// it gives too little.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// On the kernel.
    pub kernel: f64,
    /// In the simulator.
    pub sim: f64,
    /// How much more the simulator gives, where this is below zero how much less.
    pub difference: f64,
    /// How much more or less it gives: the median of the absolute differences.
    pub off: f64,
    /// How much that may be.
    pub band: f64,
}

impl Difference {
    /// Whether it is within its band.
    pub fn holds(&self) -> bool {
        self.off <= self.band
    }
}

/// Makes the runs of a comparison on the kernel again, in the simulator, and compares the two. The kernel's CUBIC
/// is compared with `cubic:linux`.
///
/// # Errors
/// The comparison is not one on the kernel, or what its scenario names cannot be read any more.
pub fn parity(kernel: &Comparison, effort: Effort) -> Result<Parity, ParityError> {
    // Schema 1 called it "tcp".
    if kernel.runs.iter().any(|r| !matches!(r.datapath.as_str(), "kernel" | "tcp")) {
        return Err(ParityError::NotOnKernel);
    }
    let mut scenario = Scenario::parse(&kernel.provenance.scenario)?;
    scenario.transport = TransportKind::Tcp;
    scenario.cc.iter_mut().for_each(|cc| *cc = cc.as_in_linux());
    let sim = compare(&scenario, effort, Recording::default(), "", &Simulator)?;
    Ok(Parity {
        schema: SCHEMA,
        kernel: kernel.provenance.kernel.clone().unwrap_or_default(),
        command: kernel.provenance.command.clone(),
        rows: rows(&kernel.runs, &sim.runs),
    })
}

fn rows(kernel: &[RunRecord], sim: &[RunRecord]) -> Vec<ParityRow> {
    let mut rows = Vec::new();
    for app in in_order(kernel.iter().map(|r| r.app.as_str())) {
        for cc in in_order(kernel.iter().map(|r| r.cc.as_str())) {
            let is_own = |r: &&RunRecord| r.app == app && r.cc == cc;
            let own = Cells {
                kernel: kernel.iter().filter(is_own).collect(),
                sim: sim.iter().filter(is_own).collect(),
            };
            let Some(throughput) =
                own.compare(|r| Some(r.throughput_mbps), relative, BAND_THROUGHPUT)
            else {
                continue;
            };
            let rtt = own.compare(|r| Some(r.rtt_ms.p95), relative, BAND_RTT);
            let again = own.compare(
                |r| Some(100.0 * r.retransmit_ratio),
                |kernel, sim| sim - kernel,
                BAND_RETRANSMITS,
            );
            let (Some(rtt_p95), Some(retransmits)) = (rtt, again) else { continue };
            rows.push(ParityRow {
                app: app.to_owned(),
                cc: cc.to_owned(),
                cells: own.places().len(),
                qoe_mean: Sides { kernel: qoe_mean(&own.kernel), sim: qoe_mean(&own.sim) },
                throughput,
                rtt_p95,
                retransmits,
                rct_p50: own.compare(|r| Some(r.rct_ms?.p50), relative, BAND_RCT),
            });
        }
    }
    rows
}

fn qoe_mean(runs: &[&RunRecord]) -> f64 {
    runs.iter().map(|r| r.qoe.mean).sum::<f64>() / runs.len() as f64
}

/// In percent of the kernel's.
fn relative(kernel: f64, sim: f64) -> f64 {
    100.0 * (sim - kernel) / kernel
}

/// The runs of one scheme with one application.
struct Cells<'a> {
    kernel: Vec<&'a RunRecord>,
    sim: Vec<&'a RunRecord>,
}

impl Cells<'_> {
    /// A run of each cell.
    fn places(&self) -> Vec<&RunRecord> {
        let mut places: Vec<&RunRecord> = Vec::new();
        for run in &self.kernel {
            if !places.iter().any(|p| is_same_cell(p, run)) {
                places.push(run);
            }
        }
        places
    }

    /// Medians over cells, in each of which the seeds are averaged; `None` when no cell has the quantity.
    fn compare(
        &self,
        of: impl Fn(&RunRecord) -> Option<f64>,
        difference: impl Fn(f64, f64) -> f64,
        band: f64,
    ) -> Option<Difference> {
        let mean = |runs: &[&RunRecord], place: &RunRecord| {
            let here = runs.iter().filter(|r| is_same_cell(r, place));
            let values: Vec<f64> = here.filter_map(|r| of(r)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let pairs: Vec<(f64, f64)> = self
            .places()
            .into_iter()
            .filter_map(|place| Some((mean(&self.kernel, place)?, mean(&self.sim, place)?)))
            .collect();
        let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
            percentile(&pairs.iter().map(of).collect::<Vec<_>>(), 50.0)
        };
        Some(Difference {
            kernel: median(&|pair| pair.0)?,
            sim: median(&|pair| pair.1)?,
            difference: median(&|pair| difference(pair.0, pair.1))?,
            off: median(&|pair| difference(pair.0, pair.1).abs())?,
            band,
        })
    }
}

fn is_same_cell(a: &RunRecord, b: &RunRecord) -> bool {
    a.trace == b.trace && a.cell == b.cell
}

impl Parity {
    /// Whether every quantity is within its band.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|r| {
            let always = [&r.throughput, &r.rtt_p95, &r.retransmits];
            always.into_iter().chain(&r.rct_p50).all(Difference::holds)
        })
    }

    /// The table: the kernel's value, the simulator's, and how far that is off, marked with `!`
    /// where that is out of its band.
    pub fn render(&self, style: Style) -> String {
        let mut text = String::new();
        for app in in_order(self.rows.iter().map(|r| r.app.as_str())) {
            let rows: Vec<&ParityRow> = self.rows.iter().filter(|r| r.app == app).collect();
            let column = |head: &str, of: &dyn Fn(&ParityRow) -> String| Column {
                head: head.to_owned(),
                cells: rows.iter().map(|r| of(r)).collect(),
            };
            let mut columns = vec![
                column("congestion control", &|r| r.cc.clone()),
                column("cells", &|r| r.cells.to_string()),
                column("mean QoE", &|r| {
                    format!("{} {}", short(r.qoe_mean.kernel), short(r.qoe_mean.sim))
                }),
                column("Mbit/s", &|r| show(&r.throughput, "%")),
                column("p95 RTT ms", &|r| show(&r.rtt_p95, "%")),
                column("retransmitted %", &|r| show(&r.retransmits, "")),
            ];
            if rows.iter().any(|r| r.rct_p50.is_some()) {
                let cell = |r: &ParityRow| r.rct_p50.map_or(String::new(), |d| show(&d, "%"));
                columns.push(column("median RCT ms", &cell));
            }
            text += &format!("{app}: {}, the simulator, and how far it is off\n", self.kernel);
            text += &table(columns, style);
            text += "\n\n";
        }
        text += &format!(
            "Medians over cells, of absolute differences; the QoE is the mean of all runs. ! is out of its band: throughput {BAND_THROUGHPUT}%,\n\
             p95 RTT {BAND_RTT}%, retransmitted {BAND_RETRANSMITS} points, median RCT {BAND_RCT}%.\n"
        );
        text
    }
}

fn show(d: &Difference, unit: &str) -> String {
    let Difference { kernel, sim, off, .. } = d;
    let mark = if d.holds() { "" } else { " !" };
    format!("{} {} {off:.2}{unit}{mark}", short(*kernel), short(*sim))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    /// Two seeds on each of three traces; the simulator's throughput is that of the kernel times these factors.
    fn both(factors: [f64; 3]) -> (Vec<RunRecord>, Vec<RunRecord>) {
        let mut sides = (Vec::new(), Vec::new());
        for (i, factor) in factors.into_iter().enumerate() {
            for seed in 0..2 {
                let mut kernel = run("cubic", &format!("t{i}"), seed, 1.0);
                kernel.throughput_mbps = 4.0 * (i + 1) as f64;
                let mut sim = kernel.clone();
                sim.throughput_mbps *= factor;
                sides.0.push(kernel);
                sides.1.push(sim);
            }
        }
        sides
    }

    #[test]
    fn differences_are_medians_over_traces() {
        let (kernel, sim) = both([1.02, 1.04, 9.0]);
        let [row] = &rows(&kernel, &sim)[..] else { panic!("one scheme, one application") };
        assert_eq!(row.cells, 3);
        assert_eq!(row.qoe_mean, Sides { kernel: 1.0, sim: 1.0 });
        assert!((row.throughput.difference - 4.0).abs() < 1e-9, "{:?}", row.throughput);
        assert!((row.throughput.kernel - 8.0).abs() < 1e-9 && row.throughput.holds());
        assert_eq!(row.retransmits.difference, 0.0);
        assert_eq!(row.rct_p50.unwrap().difference, 0.0);
    }

    #[test]
    fn what_is_out_of_its_band_is_marked() {
        let (kernel, sim) = both([0.9, 0.94, 1.0]);
        let parity = Parity {
            schema: SCHEMA,
            kernel: "Linux".to_owned(),
            command: String::new(),
            rows: rows(&kernel, &sim),
        };
        assert!(!parity.holds());
        let text = parity.render(Style { width: 200, lines: false });
        assert!(text.contains("6.00% !") && text.matches("% !").count() == 1, "{text}");
    }

    #[test]
    fn runs_of_the_simulator_are_refused() {
        let comparison = Comparison {
            schema: crate::result::SCHEMA.to_owned(),
            provenance: crate::result::Provenance::default(),
            summary: Vec::new(),
            cells: Vec::new(),
            served: None,
            runs: vec![run("cubic", "t", 0, 1.0)],
        };
        let e = parity(&comparison, Effort::default()).unwrap_err().to_string();
        assert!(e.contains("--datapath kernel"), "{e}");
    }
}
