//! `./dev bench engine`: what the engine takes, with a file of its own and sharing PostgreSQL and NATS.
//! `docs/reference/engine-scale.md` says what each figure means.

mod cases;
mod load;
mod polls;
mod process;
mod traces;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use serde::Serialize;

/// What the engine takes.
#[derive(Debug, Parser)]
#[command(name = "./dev bench engine")]
struct Cli {
    /// Aggregates of one engine
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..))]
    aggregates: u64,
    /// Aggregates that live for so many intervals that much is remembered of each
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..))]
    long_lived: u64,
    /// Intervals that they live for
    #[arg(long, default_value_t = 144, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    intervals: u64,
    /// Aggregates of the comparison of a file with shared stores
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..))]
    compared: u64,
    /// Seconds that a rate is measured
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// How often the ways, and traces, are compared
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Edges that wait for changes at the same time
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=15_000))]
    polls: u64,
    /// Measure this part alone
    #[arg(long, value_name = "PART")]
    only: Option<Part>,
    /// Write the figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

/// What is measured, in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Many aggregates in one process
    Aggregates,
    /// Aggregates of which much is remembered
    LongLived,
    /// Edges that wait for changes
    Polls,
    /// A file compared with PostgreSQL, with and without NATS
    Ways,
    /// A report without traces, and with a collector of them
    Traces,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The process that is measured; not for users
    #[command(hide = true)]
    Engine {
        /// Its configuration
        config: PathBuf,
    },
}

/// A figure.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

/// What goes to `--json`.
#[derive(Debug, Serialize)]
struct Record<'a> {
    schema: &'static str,
    version: &'static str,
    figures: &'a [Figure],
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.role {
        Some(Role::Engine { config }) => trimtab_engine::run(config).map_err(|e| e.to_string()),
        None => measure(&cli),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn measure(cli: &Cli) -> Result<(), String> {
    let mut figures = Vec::new();
    let mut note = |figure: Figure| {
        println!("{:<62} {:>12.3} {}", figure.name, figure.value, figure.unit);
        figures.push(figure);
    };
    let wanted = |part| cli.only.is_none_or(|only| only == part);
    if wanted(Part::Aggregates) {
        cases::many_aggregates(cli.aggregates, &mut note)?;
    }
    if wanted(Part::LongLived) {
        cases::long_lived(cli, &mut note)?;
    }
    if wanted(Part::Polls) {
        polls::long_polls(cli.polls, &mut note)?;
    }
    if wanted(Part::Ways) {
        cases::ways(cli, &mut note)?;
    }
    if wanted(Part::Traces) {
        traces::traces(cli, &mut note)?;
    }
    if let Some(path) = &cli.json {
        let record = Record {
            schema: "trimtab.engine-bench/1",
            version: env!("CARGO_PKG_VERSION"),
            figures: &figures,
        };
        let text = serde_json::to_string_pretty(&record).expect("figures are plain data");
        std::fs::write(path, text + "\n")
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}
