//! What Trimtab costs in the QUIC stack noq, and what switching a live connection does. Tests do not
//! depend on it.

mod connections;
mod costs;
mod memory;
mod packets;
mod switches;
mod transfer;
mod watched;

// The world of the adapter's tests.
#[path = "../../../../crates/noq/tests/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use serde::Serialize;
use trimtab_noq::ConfigError;

use transfer::Failure;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Transfers over loopback, compared with noq's own CUBIC
    Costs,
    /// Ten virtual minutes of a connection whose algorithm changes each second
    Switches,
    /// A thousand connections of a server, steered and unsteered
    Connections,
    /// Packets per second of one core in virtual time
    Packets,
}

/// What Trimtab costs in a QUIC stack, compared with the stack's own congestion control.
#[derive(Debug, Parser)]
#[command(name = "quic-bench")]
struct Cli {
    /// What to measure [default: all]
    parts: Vec<Part>,
    /// Rounds; each has one run of every kind, and the medians are printed
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Size of a transfer
    #[arg(long, value_name = "MB", default_value_t = 200)]
    megabytes: u64,
    /// Write the figures to this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("a transfer over loopback failed: {0}")]
    Transfer(Failure),
    #[error("a thousand connections over loopback failed: {0}")]
    Connections(Failure),
    #[error("a transfer in virtual time failed: {0}")]
    Packets(Failure),
    #[error("cannot write {}: {cause}", path.display())]
    Json { path: PathBuf, cause: std::io::Error },
}

/// The figures of the parts that were measured.
#[derive(Debug, Default, Serialize)]
struct Figures {
    costs: Option<Vec<costs::Line>>,
    switches: Option<Vec<switches::Line>>,
    connections: Option<connections::Steering>,
    packets: Option<Vec<packets::Line>>,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<(), BenchError> {
    let parts = if cli.parts.is_empty() { Part::value_variants() } else { &cli.parts };
    let mut figures = Figures::default();
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            println!();
        }
        match part {
            Part::Costs => {
                let lines = costs::measure(cli.rounds, cli.megabytes)?;
                costs::print(&lines);
                figures.costs = Some(lines);
            }
            Part::Switches => {
                let lines = switches::measure();
                switches::print(&lines);
                figures.switches = Some(lines);
            }
            Part::Connections => {
                let steering = connections::measure(cli.rounds)?;
                connections::print(&steering);
                figures.connections = Some(steering);
            }
            Part::Packets => {
                let lines = packets::measure(cli.rounds).map_err(BenchError::Packets)?;
                packets::print(&lines);
                figures.packets = Some(lines);
            }
        }
    }
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(&figures).expect("numbers and names");
        let fail = |cause| BenchError::Json { path: path.clone(), cause };
        std::fs::write(path, text + "\n").map_err(fail)?;
    }
    Ok(())
}

/// The middle of some values, at least one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
