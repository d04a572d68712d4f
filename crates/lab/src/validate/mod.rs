//! The simulator compared with real Linux TCP over real Mahimahi.
//!
//! [`validate`] reads a folder of measurements (bulk flows over constant links, downloads over
//! recorded traces, packet logs of links), simulates every cell, and compares: link logs packet by
//! packet, cells by their means. [`Validation::holds`] says whether the medians keep their bands.
//! Read [`compare`] for the metrics and bands, `simulate.rs` for the topology.

pub mod compare;
mod data;
pub mod explain;
mod losses;
pub mod parity;
mod simulate;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use trimtab_cc::Spec;
use trimtab_net::Trace;
use trimtab_net::mahimahi_log::{Log, replay};
use trimtab_units::Duration;

pub use data::ValidateError;

use compare::{Cell, Comparison, Group, Metric, Spread, median};
use data::{BulkRun, Emulator, Session};
use simulate::Outcomes;

/// Where the measurements are.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder with `bulk.csv`, `download.csv`, `download-sessions.csv` and `links/`.
    pub ground_truth: PathBuf,
    /// A folder below which the recorded traces lie as `NAME.trace.gz`.
    pub traces: PathBuf,
}

/// A link's log and how its replay went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkReplay {
    /// The log.
    pub name: String,
    /// Packets that arrived.
    pub arrivals: usize,
    /// Packets that left.
    pub departures: usize,
    /// Packets that were dropped.
    pub drops: usize,
    /// Departures, drops and opportunities that the link model had otherwise.
    pub mismatches: usize,
}

/// All comparisons.
#[derive(Clone, Debug, Serialize)]
pub struct Validation {
    /// Names and versions this format.
    pub schema: &'static str,
    /// The link model, packet by packet.
    pub links: Vec<LinkReplay>,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// Runs of the simulator per cell: where nothing is drawn but BBR's first phase, where every loss
/// is, and where flows compete.
const SEEDS: u64 = 3;
const SEEDS_LOSSY: u64 = 32;
const SEEDS_SEVERAL: u64 = 8;
/// Where the losses are given and only the emulator's wake-ups are drawn, per measured run.
const SEEDS_REPLAYED: u64 = 4;

/// Simulates every cell of the measurements and compares.
///
/// # Errors
/// A file is missing or is not what it should be.
pub fn validate(options: &Options) -> Result<Validation, ValidateError> {
    let links = replay_links(options)?;
    let mut cells = bulk_cells(&options.ground_truth)?;
    cells.extend(download_cells(options)?);
    cells.extend(emulated_cells()?);
    Ok(Validation { schema: "trimtab.validate/1", links, cells })
}

/// The traces of the constant links by their rate.
type Links = BTreeMap<u32, Arc<Trace>>;

fn bulk_cells(folder: &Path) -> Result<Vec<Cell>, ValidateError> {
    let runs = data::bulk_runs(folder)?;
    let mut links = Links::new();
    for run in &runs {
        if let std::collections::btree_map::Entry::Vacant(entry) = links.entry(run.rate_mbps) {
            let path = folder.join("links").join(format!("const{}.trace.gz", run.rate_mbps));
            entry.insert(Arc::new(Trace::load(&path)?));
        }
    }
    let cells = by_cell(runs);
    let mut compared = drawn_cells(folder, &cells, &links)?;
    compared.extend(replayed_cells(folder, &cells, &links)?);
    Ok(compared)
}

/// The cells over Trimtab's own emulator, which the command brings along.
fn emulated_cells() -> Result<Vec<Cell>, ValidateError> {
    let runs = data::emulated_runs()?;
    let link = |rate| Trace::constant_mbps(rate).expect("the command brings its cells along");
    let links = runs.iter().map(|run| (run.rate_mbps, Arc::new(link(run.rate_mbps)))).collect();
    drawn_cells(Path::new("emulated.csv"), &by_cell(runs), &links)
}

/// Each cell's repeats.
fn by_cell(runs: Vec<BulkRun>) -> Vec<Vec<BulkRun>> {
    let mut cells: Vec<Vec<BulkRun>> = Vec::new();
    for run in runs {
        match cells.iter_mut().find(|cell| cell[0].cell() == run.cell()) {
            Some(cell) => cell.push(run),
            None => cells.push(vec![run]),
        }
    }
    cells
}

/// Every cell, with losses drawn anew.
fn drawn_cells(
    folder: &Path,
    cells: &[Vec<BulkRun>],
    links: &Links,
) -> Result<Vec<Cell>, ValidateError> {
    let mut jobs = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let specs = specs(&cell[0], folder)?;
        // Each cell has seeds of its own, or all would share the luck of a few.
        for seed in 0..seeds(&cell[0]) {
            jobs.push((index, specs.clone(), 1000 * index as u64 + seed));
        }
    }
    let done: Vec<(usize, Outcomes)> = jobs
        .into_par_iter()
        .map(|(index, specs, seed)| {
            let cell = &cells[index];
            // Repeats differ in when their flows started.
            let run = &cell[seed as usize % cell.len()];
            let loss = simulate::random_loss(run);
            (index, simulate::bulk(run, &specs, &links[&run.rate_mbps], loss, seed))
        })
        .collect();
    let of_cell = |(index, cell): (usize, &Vec<BulkRun>)| {
        let simulated: Vec<&Outcomes> =
            done.iter().filter(|(i, _)| *i == index).map(|(_, outcome)| outcome).collect();
        bulk_cell(cell, &simulated, group(&cell[0]))
    };
    Ok(cells.iter().enumerate().map(of_cell).collect())
}

/// The cells with random loss whose algorithm answers to every loss, once more with the losses of
/// the measured runs. BBR has many holes open at once, so its series do not tell where they are.
fn replayed_cells(
    folder: &Path,
    cells: &[Vec<BulkRun>],
    links: &Links,
) -> Result<Vec<Cell>, ValidateError> {
    let mut compared = Vec::new();
    for cell in cells {
        if group(&cell[0]) != Group::BulkLossy || cell[0].ccas[0] == "bbr" {
            continue;
        }
        let specs = specs(&cell[0], folder)?;
        let mut jobs = Vec::new();
        for run in cell {
            if let Some(series) = data::series(folder, run)? {
                let loss = losses::of_run(&series);
                jobs.extend((0..SEEDS_REPLAYED).map(|seed| (run, loss.clone(), seed)));
            }
        }
        if jobs.len() < cell.len() * SEEDS_REPLAYED as usize {
            continue;
        }
        let done: Vec<Outcomes> = jobs
            .into_par_iter()
            .map(|(run, loss, seed)| {
                simulate::bulk(run, &specs, &links[&run.rate_mbps], loss, seed)
            })
            .collect();
        compared.push(bulk_cell(cell, &done.iter().collect::<Vec<_>>(), Group::BulkReplayed));
    }
    Ok(compared)
}

fn specs(run: &BulkRun, folder: &Path) -> Result<Vec<Spec>, ValidateError> {
    run.ccas.iter().map(|cca| spec(cca, folder)).collect()
}

fn seeds(run: &BulkRun) -> u64 {
    match group(run) {
        Group::BulkLossy => SEEDS_LOSSY,
        Group::BulkSeveral => SEEDS_SEVERAL,
        Group::Bulk | Group::BulkReplayed | Group::Download | Group::Emulated => SEEDS,
    }
}

fn group(run: &BulkRun) -> Group {
    if run.emulator != Emulator::Mahimahi {
        return Group::Emulated;
    }
    match (run.ccas.len(), run.loss > 0.0) {
        (1, false) => Group::Bulk,
        (1, true) => Group::BulkLossy,
        _ => Group::BulkSeveral,
    }
}

fn bulk_cell(runs: &[BulkRun], simulated: &[&Outcomes], group: Group) -> Cell {
    let comparison =
        |metric, measured: fn(&BulkRun) -> f64, value: fn(&Outcomes) -> f64| Comparison {
            metric,
            measured: Spread::of(runs.iter().map(measured)),
            simulated: Spread::of(simulated.iter().map(|o| value(o))),
        };
    Cell {
        name: runs[0].cell().to_owned(),
        cca: runs[0].ccas.join("+"),
        group,
        comparisons: vec![
            comparison(Metric::Goodput, |r| r.goodput_mbps, |o| o.goodput_mbps.iter().sum()),
            comparison(Metric::QueueDelay, |r| r.queue_mean_ms, |o| o.queue_mean_ms),
            comparison(Metric::Retransmits, |r| r.retransmit_pct, |o| o.retransmit_pct),
        ],
    }
}

/// D of all download sessions.
const DOWNLOAD_DELAY: Duration = Duration::from_millis(10);

fn download_cells(options: &Options) -> Result<Vec<Cell>, ValidateError> {
    let folder = &options.ground_truth;
    let sessions = data::sessions(folder)?;
    let mut traces = BTreeMap::new();
    for session in &sessions {
        if !traces.contains_key(&session.trace) {
            let trace = Trace::load(&find_trace(&options.traces, &session.trace)?)?;
            traces.insert(session.trace.clone(), Arc::new(trace));
        }
    }
    let specs = sessions.iter().map(|s| spec(&s.cca, folder)).collect::<Result<Vec<_>, _>>()?;
    let done: Vec<Outcomes> = sessions
        .par_iter()
        .zip(&specs)
        .enumerate()
        .map(|(i, (session, &spec))| {
            simulate::download(session, spec, &traces[&session.trace], DOWNLOAD_DELAY, i as u64)
        })
        .collect();
    let key = |s: &Session| format!("{}-{}-b{}", s.cca, s.trace, s.buffer_packets);
    let mut cells: BTreeMap<String, Vec<(&Session, &Outcomes)>> = BTreeMap::new();
    for (session, outcome) in sessions.iter().zip(&done) {
        cells.entry(key(session)).or_default().push((session, outcome));
    }
    Ok(cells.into_iter().map(|(name, runs)| download_cell(name, &runs)).collect())
}

fn download_cell(name: String, runs: &[(&Session, &Outcomes)]) -> Cell {
    let comparison =
        |metric, measured: fn(&Session) -> f64, value: fn(&Outcomes) -> f64| Comparison {
            metric,
            measured: Spread::of(runs.iter().map(|(s, _)| measured(s))),
            simulated: Spread::of(runs.iter().map(|(_, o)| value(o))),
        };
    let goodput = |s: &Session| {
        let bytes: f64 = s.requests.iter().map(|r| f64::from(r.size_bytes)).sum();
        bytes * 8.0 / s.duration_s / 1e6
    };
    let rct = |s: &Session| median(s.requests.iter().map(|r| r.rct_ms).collect());
    Cell {
        name,
        cca: runs[0].0.cca.clone(),
        group: Group::Download,
        comparisons: vec![
            comparison(Metric::Goodput, goodput, |o| o.goodput_mbps.iter().sum()),
            comparison(Metric::QueueDelay, |s| s.queue_mean_ms, |o| o.queue_mean_ms),
            comparison(Metric::Retransmits, |s| s.retransmit_pct, |o| o.retransmit_pct),
            comparison(Metric::CompletionTime, rct, |o| median(o.rct_ms.clone())),
        ],
    }
}

fn spec(cca: &str, folder: &Path) -> Result<Spec, ValidateError> {
    simulate::spec(cca).ok_or_else(|| ValidateError::UnknownAlgorithm {
        path: folder.to_owned(),
        cca: cca.to_owned(),
    })
}

/// Looks for `NAME.trace.gz` in the folder and in the folders right below it.
fn find_trace(folder: &Path, name: &str) -> Result<PathBuf, ValidateError> {
    let file = format!("{name}.trace.gz");
    let read = |source| ValidateError::Read { path: folder.to_owned(), source };
    let mut places = vec![folder.join(&file)];
    for entry in std::fs::read_dir(folder).map_err(read)? {
        places.push(entry.map_err(read)?.path().join(&file));
    }
    places
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| ValidateError::NoTrace { name: name.to_owned(), folder: folder.to_owned() })
}

/// Feeds the arrivals of every log to the link model.
fn replay_links(options: &Options) -> Result<Vec<LinkReplay>, ValidateError> {
    let folder = options.ground_truth.join("links");
    let read = |source| ValidateError::Read { path: folder.clone(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(read)? {
        let file = entry.map_err(read)?.file_name().to_string_lossy().into_owned();
        names.extend(file.strip_suffix(".log.gz").map(str::to_owned));
    }
    names.sort();
    let replay_one = |name: &String| -> Result<LinkReplay, ValidateError> {
        let log = Log::load(&folder.join(format!("{name}.log.gz")))?;
        let trace = Trace::load(&trace_of_log(options, name)?)?;
        let result = replay(&log, &log.link(Arc::new(trace)));
        Ok(LinkReplay {
            name: name.clone(),
            arrivals: result.arrivals,
            departures: result.departures,
            drops: result.drops,
            mismatches: result.mismatches.len(),
        })
    };
    names.par_iter().map(replay_one).collect()
}

/// The trace that a log was written on, from its name: `…-r12-…` of a bulk run is the constant link
/// of 12 Mbit/s; `download-CCA-TRACE-bN-R` names its trace.
fn trace_of_log(options: &Options, name: &str) -> Result<PathBuf, ValidateError> {
    let parts: Vec<&str> = name.split('-').collect();
    if let ["bulk", _, rate, ..] = parts[..] {
        let rate = rate.trim_start_matches('r');
        let links = options.ground_truth.join("links");
        return Ok(links.join(format!("const{rate}.trace.gz")));
    }
    let trace = parts.get(2..parts.len().saturating_sub(2)).unwrap_or_default().join("-");
    find_trace(&options.traces, &trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bbr_keeps_as_much_queue_as_linux_over_our_emulator() {
        let cells = emulated_cells().unwrap();
        assert_eq!(cells.len(), 24);
        let validation = Validation { schema: "trimtab.validate/1", links: Vec::new(), cells };
        assert!(validation.holds(), "{}", validation.to_markdown());
        for cell in &validation.cells {
            let queue = cell.comparisons.iter().find(|c| c.metric == Metric::QueueDelay).unwrap();
            // At 96 Mbit/s and 60 ms the simulator has 5.5 ms where Linux has 8 to 10: not settled.
            // At 48 Mbit/s, 20 ms and 4 BDP Linux's own two runs are 9.5 and 18.0 ms.
            let most = match cell.name.as_str() {
                name if name.contains("r96-rtt60") => 2.5,
                name if name.contains("r48-rtt20-b4") => 1.5,
                _ => 1.0,
            };
            assert!(queue.bands().abs() < most, "{}: {queue:?}", cell.name);
        }
    }
}
