//! `./dev bench`: how fast the simulator is. Every figure is a median over rounds that measure all cases
//! in turn, in processor time, because machines are shared; what should hold on any machine is a ratio
//! of two costs of the same round. `docs/reference/benchmarks.md` says what each figure means.

mod cases;
mod figures;
mod memory;
mod muses;
mod peer;
mod processor;
mod selection;
mod worlds;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use thiserror::Error;
use trimtab_units::Time;

use crate::cases::Case;
use crate::figures::{Figure, Samples};
use crate::peer::{Ns3, PeerError};

/// Measure the simulator's speed and memory, and ns-3's where it is installed.
#[derive(Debug, Parser)]
#[command(name = "./dev bench")]
struct Arguments {
    /// How often everything is measured
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Write the figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The compiled tools/bench/sim/ns3/bulk.cc; `./dev bench` gives it
    #[arg(long, value_name = "PROGRAM")]
    ns3: Option<PathBuf>,
}

/// Why there is no result.
#[derive(Debug, Error)]
enum BenchError {
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// What goes to `--json`.
#[derive(Debug, Serialize)]
struct Record<'a> {
    schema: &'static str,
    version: &'static str,
    processor: String,
    rounds: u16,
    ns3: bool,
    figures: &'a [Figure],
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    // A file that cannot be written is better known before the rounds than after them.
    let json = arguments.json.as_ref().map(|path| Json::create(path)).transpose()?;
    let (footprint, running) =
        memory::footprint(&worlds::bulk(64, worlds::MBPS), Time::ZERO + memory::WARM);
    let ns3 = arguments.ns3.as_ref().map(|program| Ns3 { program: program.clone() });
    // What a first round finds cold is not what is to be measured.
    cases::round(&running);
    let mut samples = Samples::default();
    for round in 1..=arguments.rounds {
        eprintln!("bench: round {round} of {}", arguments.rounds);
        for (case, value) in cases::round(&running) {
            samples.push(case, value);
        }
        if let Some(ns3) = &ns3 {
            let queue = worlds::queue_packets(worlds::MBPS);
            let (packets, spent) =
                ns3.run(worlds::MBPS, worlds::RTT.as_millis(), queue, cases::SECS)?;
            samples.push(Case::Ns3, cases::per_packet(spent, packets));
        }
    }
    let figures = figures::figures(&samples, footprint);
    let processor = processor::name();
    println!("{}", figures::table(&figures));
    println!("Rounds: {}. Processor time of one core of: {processor}.", arguments.rounds);
    if ns3.is_none() {
        println!("Not compared with ns-3: there is no program for it (--ns3).");
    }
    if let Some(json) = json {
        json.write(&Record {
            schema: "trimtab.bench/1",
            version: env!("CARGO_PKG_VERSION"),
            processor,
            rounds: arguments.rounds,
            ns3: ns3.is_some(),
            figures: &figures,
        })?;
    }
    Ok(())
}

/// The file of `--json`.
struct Json<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> Json<'a> {
    fn create(path: &'a Path) -> Result<Self, BenchError> {
        let file = File::create(path)
            .map_err(|source| BenchError::Write { path: path.to_owned(), source })?;
        Ok(Self { path, file })
    }

    fn write(mut self, record: &Record<'_>) -> Result<(), BenchError> {
        let failed = |source| BenchError::Write { path: self.path.to_owned(), source };
        let text = serde_json::to_string_pretty(record).map_err(|error| failed(error.into()))?;
        self.file.write_all((text + "\n").as_bytes()).map_err(failed)
    }
}
