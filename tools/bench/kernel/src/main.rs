//! What the eBPF datapath costs, compared with the kernel's own congestion control: the sender's
//! processor time over an emulated link, nanoseconds per acknowledgement, throughput where nothing
//! limits it, and a switch to another algorithm. Each figure is printed with the project's target.
//! Tests do not depend on it. Needs root, and the programs `ip` and `ethtool`.

mod acks;
mod flow;
mod flows;
mod hosts;
mod load;
mod open;
mod processor;
mod programs;
mod switch;
mod table;
mod timing;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use trimtab_emu::EmuError;
use trimtab_kernel::{Algorithm, Datapath, Options};

use crate::hosts::Hosts;
use crate::programs::Measures;
use crate::table::Figure;

/// What the eBPF datapath costs, compared with the kernel's own congestion control.
#[derive(Debug, Parser)]
#[command(name = "tcp-bench")]
struct Cli {
    /// Seconds of each flow over the emulated link; its first two do not count
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Rounds of the other parts, each of some seconds for each algorithm
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Only these parts
    #[arg(long, value_enum)]
    only: Vec<Part>,
    /// Write the figures to this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// So many connections from a port, for the process that started this one
    #[arg(long, hide = true, num_args = 2)]
    worker: Vec<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The sender's processor time at 48 Mbit/s and 20 ms
    Processor,
    /// Nanoseconds per acknowledgement of each eBPF program
    Acks,
    /// Throughput without a bottleneck
    Open,
    /// 10,000 and 50,000 active connections over veth, with GSO and GRO
    Flows,
    /// One algorithm taking over from another, over the emulated link
    Switch,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error(transparent)]
    Emu(#[from] EmuError),
    #[error(transparent)]
    Datapath(#[from] trimtab_kernel::Error),
    #[error("cannot {what}: {reason}")]
    System { what: &'static str, reason: String },
    #[error("cannot write {0}: {1}")]
    Json(PathBuf, String),
    #[error(
        "the programs of {0} did not run in a round: look whether the kernel logged why (dmesg), \
         and run it again"
    )]
    Idle(String),
}

/// An error of the system.
fn system<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> BenchError {
    move |error| BenchError::System { what, reason: error.to_string() }
}

/// Where that is.
const FOLDER: &str = "/sys/fs/bpf/trimtab-bench";

/// What is loaded for the time of the benchmark, under names of its own.
struct Loaded {
    datapath: Option<Datapath>,
    _measures: Measures,
}

impl Loaded {
    fn new(slots: u32) -> Result<Self, BenchError> {
        let folder = PathBuf::from(FOLDER);
        // What a run that was killed has left.
        trimtab_kernel::unload_pins(&folder)?;
        let options = Options { folder, suffix: "_z".into(), slots, ..Options::default() };
        let datapath = Some(Datapath::load(&options)?);
        Ok(Self { datapath, _measures: Measures::load()? })
    }

    fn datapath(&self) -> Result<&Datapath, BenchError> {
        self.datapath.as_ref().ok_or_else(|| system("find the datapath")("it was unloaded"))
    }

    fn name_of(&self, algorithm: Algorithm) -> String {
        self.datapath.as_ref().map(|d| d.name_of(algorithm)).unwrap_or_default()
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.datapath.take().map(Datapath::unload) {
            eprintln!("{error}");
        }
    }
}

fn run(cli: &Cli) -> Result<Vec<Figure>, BenchError> {
    let wants = |part| cli.only.is_empty() || cli.only.contains(&part);
    let loaded = Loaded::new(if wants(Part::Flows) { flows::SLOTS } else { 64 })?;
    let mut figures = Vec::new();
    let time = Duration::from_secs(cli.seconds);
    if wants(Part::Open) {
        figures.extend(open::measure(&Hosts::new()?, &loaded, cli.rounds)?);
    }
    if wants(Part::Acks) {
        figures.extend(acks::measure(&Hosts::new()?, &loaded, cli.rounds)?);
    }
    if wants(Part::Processor) {
        figures.extend(processor::measure(&Hosts::new()?.in_threads()?, &loaded, time)?);
    }
    if wants(Part::Flows) {
        figures.extend(flows::measure(&Hosts::new()?.in_threads()?, &loaded, cli.rounds)?);
    }
    if wants(Part::Switch) {
        figures.extend(switch::measure(&Hosts::new()?.in_threads()?, &loaded, time)?);
    }
    Ok(figures)
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let [count, port] = cli.worker[..] {
        return match flows::work(count, port) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => fail(&e),
        };
    }
    let result = run(&cli).and_then(|figures| {
        println!("{}", table::render(&figures));
        let Some(path) = &cli.json else { return Ok(()) };
        let fail = |reason: String| BenchError::Json(path.clone(), reason);
        let text = serde_json::to_string_pretty(&figures).map_err(|e| fail(e.to_string()))?;
        std::fs::write(path, text).map_err(|e| fail(e.to_string()))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&e),
    }
}

fn fail(error: &BenchError) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}
