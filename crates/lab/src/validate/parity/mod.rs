//! How the simulator, or another model, compares with the datapath that a comparison ran on, cell by
//! cell.
//!
//! Read [`parity`] first. `reference.rs` has the datapaths and their bands, `quantity.rs` what is
//! compared.

mod quantity;
mod reference;
mod table;

use serde::{Serialize, Serializer};

use crate::compare::{CompareError, compare};
use crate::result::{CellRecord, Comparison, RunRecord};
use crate::run::Recording;
use crate::run::datapath::Datapath;
use crate::run::pool::Effort;
use crate::scenario::{Scenario, ScenarioError};
use crate::stats::percentile;
use crate::stats::summary::in_order;

pub use quantity::Band;
use quantity::{Bar, Quantity};
use reference::Reference;

/// The schema that [`Parity::schema`] names.
pub const SCHEMA: &str = "trimtab.parity/2";

/// Why there is no comparison of a datapath and its model.
#[derive(Debug, thiserror::Error)]
pub enum ParityError {
    /// The comparison was not run on a datapath with bands.
    #[error(
        "the runs are those of the datapath `{datapath}`, which has no bands: make the file with \
         `trimtab compare --datapath {} --json FILE`",
        reference::names()
    )]
    NoReference {
        /// The datapath.
        datapath: String,
    },
    /// There is nothing to compare.
    #[error("it holds no runs: make it with `trimtab compare --json FILE`")]
    NoRuns,
    /// Its scenario cannot be read.
    #[error("the scenario in the file: {0}")]
    Scenario(#[from] ScenarioError),
    /// The same runs cannot be made on the model.
    #[error(transparent)]
    Compare(#[from] CompareError),
}

/// A reference and its model, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Parity {
    /// `trimtab.parity/2`.
    pub schema: &'static str,
    /// Where the comparison was run.
    pub reference: Side,
    /// Where its runs were repeated, e.g. in the simulator.
    pub model: Side,
    /// The command of the comparison.
    pub command: String,
    /// One row per application and scheme.
    pub rows: Vec<ParityRow>,
}

/// A datapath that carried out runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Its name, e.g. `kernel`.
    pub datapath: String,
    /// The system that carried the packets, e.g. `Linux 6.18`; `null` where there is none.
    pub system: Option<String>,
}

impl Side {
    /// Its name in a sentence: the kernel's version says more than its datapath.
    pub fn name(&self) -> &str {
        match (self.datapath.as_str(), &self.system) {
            ("sim", _) => "the simulator",
            ("kernel", Some(system)) => system,
            (datapath, _) => datapath,
        }
    }
}

/// One scheme with one application.
#[derive(Clone, Debug, Serialize)]
pub struct ParityRow {
    /// The application.
    pub app: String,
    /// The scheme.
    pub cc: String,
    /// Cells: traces, at every point of the grid.
    pub cells: usize,
    /// Quality of experience, the mean over all runs: what a comparison ranks by.
    pub qoe_mean: Sides,
    /// Each quantity that is compared, in the JSON under its name. The completion time is that of
    /// requests only.
    #[serde(flatten, serialize_with = "by_name")]
    pub differences: Vec<Difference>,
}

/// A quantity on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sides {
    /// On the reference.
    pub reference: f64,
    /// On the model.
    pub model: f64,
}

/// A quantity on both sides, and its band. Each is the median over cells, the difference of each
/// cell taken first: cells in which the model gives too much do not make up for those in which it
/// gives too little.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    #[serde(skip)]
    quantity: &'static Quantity,
    #[serde(skip)]
    bar: Bar,
    /// On the reference, in Mbit/s, milliseconds or percent.
    pub reference: f64,
    /// On the model.
    pub model: f64,
    /// How much more the model gives, where this is below zero how much less: in percent of the
    /// reference where the band is a share, else in the quantity's unit or percentage points.
    pub difference: f64,
    /// How much more or less it gives: the median of the absolute differences.
    pub off: f64,
    /// The same in bands: 1 is at the edge.
    pub bands: f64,
    /// The share of cells within the band, 0 to 1.
    pub within: f64,
    /// How much that may be.
    pub band: Band,
    /// The cell with the largest difference, in bands.
    pub worst: CellDifference,
}

/// A quantity on both sides in a single cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellDifference {
    /// Its trace.
    pub trace: String,
    /// Its place in the grid.
    pub cell: CellRecord,
    /// On the reference, the mean over the seeds.
    pub reference: f64,
    /// On the model.
    pub model: f64,
    /// How far that is, in bands.
    pub bands: f64,
}

impl Difference {
    /// The name of the quantity, e.g. `throughput`.
    pub fn name(&self) -> &'static str {
        self.quantity.name
    }

    /// Whether it is within its band: the median over cells, or of calls nine cells in ten.
    pub fn holds(&self) -> bool {
        match self.bar {
            Bar::Median => self.bands <= 1.0,
            Bar::NineInTen => self.within >= 0.9,
        }
    }
}

fn by_name<S: Serializer>(differences: &[Difference], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(differences.iter().map(|d| (d.name(), d)))
}

impl Parity {
    /// Every quantity of every row.
    fn differences(&self) -> impl Iterator<Item = &Difference> {
        self.rows.iter().flat_map(|row| &row.differences)
    }

    /// Whether every quantity is within its band.
    pub fn holds(&self) -> bool {
        self.differences().all(Difference::holds)
    }
}

/// The scenario in which a model repeats the runs of a comparison. The kernel's CUBIC is compared
/// with `cubic:linux`, also where it competes.
///
/// # Errors
/// The comparison is not one on a datapath with bands, or its scenario cannot be read.
pub fn scenario(comparison: &Comparison) -> Result<Scenario, ParityError> {
    let reference = of_runs(&comparison.runs)?;
    let mut scenario = Scenario::parse(&comparison.provenance.scenario)?;
    (reference.translate)(&mut scenario);
    Ok(scenario)
}

/// Repeats the runs of a comparison on a model, and compares the two.
///
/// # Errors
/// As [`scenario`]; or what the scenario names cannot be read any more, or a run fails on the model.
pub fn parity(
    comparison: &Comparison,
    model: &dyn Datapath,
    effort: Effort,
) -> Result<Parity, ParityError> {
    let reference = of_runs(&comparison.runs)?;
    let repeated = compare(&scenario(comparison)?, effort, Recording::default(), "", model)?;
    Ok(Parity {
        schema: SCHEMA,
        reference: Side {
            datapath: reference.name.to_owned(),
            system: comparison.provenance.kernel.clone(),
        },
        model: Side { datapath: model.name().to_owned(), system: model.system() },
        command: comparison.provenance.command.clone(),
        rows: rows(reference, &comparison.runs, &repeated.runs),
    })
}

/// The datapath of all runs.
fn of_runs(runs: &[RunRecord]) -> Result<&'static Reference, ParityError> {
    let mut found = None;
    for RunRecord { datapath, .. } in runs {
        let reference = reference::find(datapath)
            .ok_or_else(|| ParityError::NoReference { datapath: datapath.clone() })?;
        found.get_or_insert(reference);
    }
    found.ok_or(ParityError::NoRuns)
}

fn rows(of: &Reference, reference: &[RunRecord], model: &[RunRecord]) -> Vec<ParityRow> {
    let mut rows = Vec::new();
    for app in in_order(reference.iter().map(|r| r.app.as_str())) {
        for cc in in_order(reference.iter().map(|r| r.cc.as_str())) {
            let is_own = |r: &&RunRecord| r.app == app && r.cc == cc;
            let own = Cells {
                reference: reference.iter().filter(is_own).collect(),
                model: model.iter().filter(is_own).collect(),
            };
            if own.reference.is_empty() || own.model.is_empty() {
                continue;
            }
            rows.push(ParityRow {
                app: app.to_owned(),
                cc: cc.to_owned(),
                cells: own.places().len(),
                qoe_mean: Sides {
                    reference: qoe_mean(&own.reference),
                    model: qoe_mean(&own.model),
                },
                differences: of
                    .bands
                    .iter()
                    .filter_map(|(q, b)| own.compare(q, *b, of.bar))
                    .collect(),
            });
        }
    }
    rows
}

fn qoe_mean(runs: &[&RunRecord]) -> f64 {
    runs.iter().map(|r| r.qoe.mean).sum::<f64>() / runs.len() as f64
}

/// The runs of one scheme with one application.
struct Cells<'a> {
    reference: Vec<&'a RunRecord>,
    model: Vec<&'a RunRecord>,
}

impl Cells<'_> {
    /// A run of each cell.
    fn places(&self) -> Vec<&RunRecord> {
        let mut places: Vec<&RunRecord> = Vec::new();
        for run in &self.reference {
            if !places.iter().any(|p| is_same_cell(p, run)) {
                places.push(run);
            }
        }
        places
    }

    /// Medians over cells, in each of which the seeds are averaged; `None` when no cell has the
    /// quantity.
    fn compare(&self, quantity: &'static Quantity, band: Band, bar: Bar) -> Option<Difference> {
        let mean = |runs: &[&RunRecord], place: &RunRecord| {
            let here = runs.iter().filter(|r| is_same_cell(r, place));
            let values: Vec<f64> = here.filter_map(|r| (quantity.of)(r)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let cell = |place: &RunRecord| {
            let (reference, model) = (mean(&self.reference, place)?, mean(&self.model, place)?);
            Some(CellDifference {
                trace: place.trace.clone(),
                cell: place.cell.clone(),
                reference,
                model,
                bands: band.bands(reference, model),
            })
        };
        let cells: Vec<CellDifference> = self.places().into_iter().filter_map(cell).collect();
        let median = |of: &dyn Fn(&CellDifference) -> f64| {
            percentile(&cells.iter().map(of).collect::<Vec<_>>(), 50.0)
        };
        let shown = |cell: &CellDifference| band.measure(cell.reference, cell.model);
        let within = cells.iter().filter(|cell| cell.bands <= 1.0).count();
        Some(Difference {
            quantity,
            bar,
            within: within as f64 / cells.len() as f64,
            reference: median(&|cell| cell.reference)?,
            model: median(&|cell| cell.model)?,
            difference: median(&shown)?,
            off: median(&|cell| shown(cell).abs())?,
            bands: median(&|cell| cell.bands)?,
            band,
            worst: cells.into_iter().max_by(|a, b| a.bands.total_cmp(&b.bands))?,
        })
    }
}

fn is_same_cell(a: &RunRecord, b: &RunRecord) -> bool {
    a.trace == b.trace && a.cell == b.cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::Style;
    use crate::result::DelayRecord;
    use crate::run::simulator::Simulator;
    use crate::testing::{close, run};

    /// Two seeds on each of three traces; the model's throughput is that of the reference times
    /// these factors.
    fn both(factors: [f64; 3]) -> (Vec<RunRecord>, Vec<RunRecord>) {
        let mut sides = (Vec::new(), Vec::new());
        for (i, factor) in factors.into_iter().enumerate() {
            for seed in 0..2 {
                let mut reference = run("cubic", &format!("t{i}"), seed, 1.0);
                reference.throughput_mbps = 4.0 * (i + 1) as f64;
                let mut model = reference.clone();
                model.throughput_mbps *= factor;
                sides.0.push(reference);
                sides.1.push(model);
            }
        }
        sides
    }

    fn of(datapath: &str, sides: &(Vec<RunRecord>, Vec<RunRecord>)) -> Parity {
        let side = |datapath: &str| Side { datapath: datapath.to_owned(), system: None };
        Parity {
            schema: SCHEMA,
            reference: side(datapath),
            model: side("sim"),
            command: String::new(),
            rows: rows(reference::find(datapath).unwrap(), &sides.0, &sides.1),
        }
    }

    #[test]
    fn differences_are_medians_over_traces() {
        let parity = of("kernel", &both([1.02, 1.04, 9.0]));
        let [row] = &parity.rows[..] else { panic!("one scheme, one application") };
        assert_eq!(row.cells, 3);
        assert_eq!(row.qoe_mean, Sides { reference: 1.0, model: 1.0 });
        let names: Vec<&str> = row.differences.iter().map(Difference::name).collect();
        assert_eq!(names, ["throughput", "rtt_p95", "retransmits", "rct_p50"]);
        let throughput = &row.differences[0];
        close(throughput.difference, 4.0);
        close(throughput.bands, 0.8);
        close(throughput.reference, 8.0);
        assert_eq!(throughput.worst.trace, "t2");
        close(throughput.worst.bands, 160.0);
        assert!(row.differences[1..].iter().all(|d| d.difference == 0.0 && d.holds()));
    }

    #[test]
    fn what_is_out_of_its_band_is_marked() {
        let parity = of("kernel", &both([0.9, 0.94, 1.0]));
        assert!(!parity.holds());
        let text = parity.render(Style { width: 120, lines: false });
        assert!(text.contains("6.00% !") && text.matches("% !").count() == 1, "{text}");
        assert!(text.contains("throughput 5%, p95\nRTT 15%, retransmitted 0.5 points"), "{text}");
        assert!(text.contains("\nfurthest off: throughput of cubic in t0 (20ms,"), "{text}");
        assert!(text.ends_with("3 of 4 medians are within their bands.\n"), "{text}");
    }

    /// What is within the kernel's bands is not within those of a stack without a clock.
    #[test]
    fn each_datapath_has_bands_of_its_own() {
        let mut sides = both([0.97; 3]);
        assert!(of("kernel", &sides).holds());
        let parity = of("quic-virtual", &sides);
        assert!(!parity.holds());
        let text = parity.render(Style { width: 120, lines: false });
        assert!(text.starts_with("download: quic-virtual, the simulator"), "{text}");
        sides.1 = sides.0.clone();
        for run in &mut sides.1 {
            run.queue_delay_ms.mean += 2.2;
            run.loss_ratio += 0.004;
        }
        let parity = of("quic-virtual", &sides);
        assert!(parity.holds(), "2.2 ms are less than 15% of 15 ms");
        close(parity.rows[0].differences[1].bands, 2.2 / 2.25);
        close(parity.rows[0].differences[2].off, 0.4);
    }

    /// Of calls nine cells in ten have to be within the band. A refresh of the screen is.
    #[test]
    fn calls_keep_their_bands_in_nine_cells_of_ten() {
        let sides = |off: usize| {
            let mut sides = (Vec::new(), Vec::new());
            for i in 0..10 {
                let mut reference = run("gcc", &format!("t{i}"), 0, 80.0);
                (reference.target_kbps_mean, reference.freezes) = (Some(1000.0), Some(0.0));
                reference.frame_delay_ms = Some(DelayRecord { mean: 70.0, p95: 83.3 });
                let mut model = reference.clone();
                model.frame_delay_ms = Some(DelayRecord { mean: 71.0, p95: 100.0 });
                model.target_kbps_mean = Some(if i < off { 940.0 } else { 951.0 });
                sides.0.push(reference);
                sides.1.push(model);
            }
            sides
        };
        let parity = of("webrtc-virtual", &sides(1));
        assert!(parity.holds());
        let names: Vec<&str> = parity.rows[0].differences.iter().map(Difference::name).collect();
        assert_eq!(names, ["target", "frame_delay_p95", "freezes"]);
        let parity = of("webrtc", &sides(2));
        assert!(!parity.holds());
        close(parity.rows[0].differences[0].within, 0.8);
        let text = parity.render(Style { width: 120, lines: false });
        assert!(text.contains("4.90% 80% !") && text.contains("16.70 100%"), "{text}");
        assert!(text.ends_with("2 of 3 quantities are within their bands in nine cells of ten.\n"));
    }

    #[test]
    fn the_json_has_each_quantity_under_its_name() {
        let json = serde_json::to_value(of("quic-virtual", &both([0.99; 3]))).unwrap();
        assert_eq!(json["reference"]["datapath"], "quic-virtual");
        let row = json["rows"][0].as_object().unwrap();
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        for name in ["app", "cells", "throughput", "queue_delay", "loss", "rct_p50"] {
            assert!(names.contains(&name), "{names:?}");
        }
        close(row["throughput"]["bands"].as_f64().unwrap(), 0.5);
        assert_eq!(row["queue_delay"]["band"]["absolute"], 2.0);
    }

    #[test]
    fn a_side_is_called_as_its_readers_know_it() {
        let side = |datapath: &str| Side {
            datapath: datapath.to_owned(),
            system: Some("Linux 6.18".to_owned()),
        };
        let names = ["sim", "kernel", "quic"].map(|datapath| side(datapath).name().to_owned());
        assert_eq!(names, ["the simulator", "Linux 6.18", "quic"]);
    }

    /// Linux's CUBIC is the same whether it is compared or competes.
    #[test]
    fn the_kernels_competitors_are_as_in_linux_too() {
        let text = "cc = [\"cubic\", \"copa\"]\ntraces = [\"constant:8Mbit/s\"]\n[[app]]\nkind = \"bulk\"\n\
                    [[competitor]]\ncc = \"cubic\"\n";
        let mut kernel = run("cubic", "t", 0, 1.0);
        kernel.datapath = "kernel".to_owned();
        let comparison = Comparison {
            schema: crate::result::SCHEMA.to_owned(),
            provenance: crate::result::Provenance {
                scenario: text.to_owned(),
                ..crate::result::Provenance::default()
            },
            summary: Vec::new(),
            cells: Vec::new(),
            served: None,
            runs: vec![kernel],
        };
        let scenario = scenario(&comparison).unwrap();
        let schemes: Vec<&str> =
            scenario.schemes().map(trimtab_steer::scheme::Scheme::label).collect();
        assert_eq!(schemes, ["cubic", "copa", "cubic"], "under the names that were asked for");
        let linux: trimtab_steer::scheme::Scheme = "cubic:linux".parse().unwrap();
        let demand =
            |scheme: &trimtab_steer::scheme::Scheme| format!("{:?}", scheme.kind().demand());
        let competing = scenario.competitors().next().unwrap();
        assert_eq!(demand(&competing.cc), demand(&linux));
    }

    #[test]
    fn runs_of_the_simulator_are_refused() {
        let refused = |runs: Vec<RunRecord>| {
            let comparison = Comparison {
                schema: crate::result::SCHEMA.to_owned(),
                provenance: crate::result::Provenance::default(),
                summary: Vec::new(),
                cells: Vec::new(),
                served: None,
                runs,
            };
            parity(&comparison, &Simulator, Effort::default()).unwrap_err().to_string()
        };
        let e = refused(vec![run("cubic", "t", 0, 1.0)]);
        assert!(e.contains("`sim`") && e.contains("--datapath kernel|quic-virtual|quic"), "{e}");
        assert!(refused(Vec::new()).contains("no runs"));
    }
}
