//! `./dev bench agent`: what the agent costs. An agent steers thousands of the kernel's connections,
//! a part of them busy. It is a process of its own, whose processor time and memory the kernel
//! counts. The time of one decision is measured, too.
//! `docs/reference/benchmarks.md` says what each figure means.

mod churn;
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
    /// Instead, connections that open and close in a second, compared with the kernel's CUBIC
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    churn: Option<u64>,
    /// Seconds that are measured; with --churn, of each algorithm
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Slots of the datapath
    #[arg(long, default_value_t = 16_384, value_name = "N")]
    slots: u32,
    /// What a connection sends before it has a slot; "0 B": all have one
    #[arg(long, default_value = "45 kB", value_name = "SIZE")]
    slot_after: String,
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
        /// Where to write its number, to be in a cgroup
        group: Option<PathBuf>,
    },
    /// The process that opens and closes connections; not for users
    #[command(hide = true)]
    Turn {
        /// The algorithm of the server
        algorithm: String,
        /// Connections a second
        rate: u64,
    },
    /// A process of servers; not for users
    #[command(hide = true)]
    Senders {
        /// Where it listens
        address: std::net::Ipv4Addr,
        /// Its port
        port: u16,
        /// Connections
        open: usize,
        /// Of these, connections that send all the time
        active: usize,
        /// Their algorithm
        algorithm: String,
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
    churn: Option<u64>,
    seconds: u64,
    slots: u32,
    slot_after: &'a str,
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
    Clients(std::io::Error),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

fn run(cli: &Cli) -> Result<(), BenchError> {
    match cli.role {
        Some(Role::Agent { ref config, ref group }) => {
            if let Some(path) = group {
                let number = std::process::id().to_string();
                std::fs::write(path, number)
                    .map_err(|source| BenchError::Write { path: path.clone(), source })?;
            }
            // It goes with who measures it, however that ends; where the kernel does not do so, a user must.
            let _ = rustix::process::set_parent_process_death_signal(Some(
                rustix::process::Signal::KILL,
            ));
            return Ok(trimtab_agent::run(config)?);
        }
        Some(Role::Readers { address, port, open }) => {
            return crowd::readers(address, port, open).map_err(BenchError::Clients);
        }
        Some(Role::Senders { address, port, open, active, ref algorithm }) => {
            return crowd::senders(address, port, open, active, algorithm)
                .map_err(BenchError::Clients);
        }
        Some(Role::Turn { ref algorithm, rate }) => {
            return churn::turn(algorithm, rate).map_err(BenchError::Clients);
        }
        None => {}
    }
    let load = Load {
        open: cli.open,
        active: cli.active.min(cli.open),
        seconds: cli.seconds,
        slots: cli.slots,
        slot_after: cli.slot_after.clone(),
    };
    let figures = match cli.churn {
        Some(rate) => churn::figures(&load, rate)?,
        None => {
            let mut figures = decision::figures();
            figures.extend(load.figures()?);
            figures
        }
    };
    figures.iter().for_each(Figure::print);
    if let Some(path) = &cli.json {
        let record = Record {
            schema: "trimtab.bench-agent/2",
            version: env!("CARGO_PKG_VERSION"),
            open: cli.open,
            active: cli.active,
            churn: cli.churn,
            seconds: cli.seconds,
            slots: cli.slots,
            slot_after: &cli.slot_after,
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
