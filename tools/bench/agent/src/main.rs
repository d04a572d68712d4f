//! `./dev bench agent`: what the agent costs. An agent steers thousands of the kernel's connections,
//! a part of them busy. It is a process of its own, whose processor time and memory the kernel
//! counts. The time of one decision is measured, too.
//! `docs/reference/benchmarks.md` says what each figure means.

mod crowd;
mod decision;
mod load;
mod process;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;

use load::{Load, LoadError};

/// What the agent costs.
#[derive(Debug, Parser)]
#[command(name = "./dev bench agent")]
struct Cli {
    /// Connections that are open
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    open: usize,
    /// Of these, connections that send all the time
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    active: usize,
    /// Seconds that are measured
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Write the figures to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// The process that is measured; not for users
    #[command(hide = true)]
    Agent {
        /// Its configuration
        config: PathBuf,
    },
    /// The process of the clients; not for users
    #[command(hide = true)]
    Readers {
        /// Where the server listens
        address: std::net::Ipv4Addr,
        /// Its port
        port: u16,
        /// How many
        open: usize,
    },
}

/// A figure and its limit.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    /// What it must stay under; `None` where nothing is asked of it.
    limit: Option<f64>,
}

impl Figure {
    fn print(&self) {
        let limit = self.limit.map_or_else(String::new, |limit| format!("  (under {limit})"));
        println!("{:<46} {:>10.3} {}{limit}", self.name, self.value, self.unit);
    }
}

/// What goes to `--json`.
#[derive(Debug, Serialize)]
struct Record<'a> {
    schema: &'static str,
    version: &'static str,
    open: usize,
    active: usize,
    seconds: u64,
    figures: &'a [Figure],
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Agent(#[from] trimtab_agent::Error),
    #[error("the clients' process: {0}")]
    Readers(std::io::Error),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

fn run(cli: &Cli) -> Result<(), BenchError> {
    match cli.role {
        Some(Role::Agent { ref config }) => {
            // It goes with who measures it, however that ends; where the kernel does not do so, a user must.
            let _ = rustix::process::set_parent_process_death_signal(Some(
                rustix::process::Signal::KILL,
            ));
            return Ok(trimtab_agent::run(config)?);
        }
        Some(Role::Readers { address, port, open }) => {
            return crowd::readers(address, port, open).map_err(BenchError::Readers);
        }
        None => {}
    }
    let mut figures = decision::figures();
    figures.iter().for_each(Figure::print);
    let load = Load { open: cli.open, active: cli.active.min(cli.open), seconds: cli.seconds };
    let under_load = load.figures()?;
    under_load.iter().for_each(Figure::print);
    figures.extend(under_load);
    if let Some(path) = &cli.json {
        let record = Record {
            schema: "trimtab.bench-agent/1",
            version: env!("CARGO_PKG_VERSION"),
            open: cli.open,
            active: cli.active,
            seconds: cli.seconds,
            figures: &figures,
        };
        let file = std::fs::File::create(path)
            .and_then(|file| Ok(serde_json::to_writer_pretty(file, &record)?));
        file.map_err(|source| BenchError::Write { path: path.clone(), source })?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
