//! How true the link emulator is.
//!
//! `figures` measures the emulator alone: offered and achieved rate, and by how much packets are
//! late. `mahimahi` runs the kernel's TCP over the same links as recorded measurements did over
//! Mahimahi, and prints both. `record` makes such measurements over our links, for
//! `trimtab validate`. None of them judges: the tests of `crates/emu` do. Needs root, or the rights
//! to make network namespaces.

mod bulk;
mod cells;
mod download;
mod figures;
mod queue;
mod record;
mod table;
mod traffic;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use trimtab_emu::EmuError;

/// How true the link emulator is.
#[derive(Debug, Parser)]
#[command(name = "emu-bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Rates and departure times of the emulator alone.
    Figures {
        /// Seconds per case
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
    /// The kernel's TCP over our links, compared with the same over Mahimahi.
    Mahimahi(Mahimahi),
    /// The kernel's TCP over our links in the cells of a table like bulk.csv, which is printed with what came of them.
    Record(Record),
}

#[derive(Debug, Args)]
struct Record {
    /// The table: one row per run
    #[arg(long)]
    cells: PathBuf,
    /// Only the runs whose name has one of these texts in it, as bbr-r48
    #[arg(long)]
    only: Vec<String>,
    /// Links at once
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

#[derive(Debug, Args)]
struct Mahimahi {
    /// The folder with bulk.csv, download.csv, download-sessions.csv and links/
    #[arg(long)]
    ground_truth: PathBuf,
    /// A folder below which the recorded traces lie as NAME.trace.gz
    #[arg(long)]
    traces: PathBuf,
    /// Only the cells whose name has one of these texts in it, as cubic-r48 or download-
    #[arg(long)]
    only: Vec<String>,
    /// Links at once
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// What our links add to the delay of each burst, from none to this: Mahimahi's processes wait
    /// in whole milliseconds from whenever they last woke up, so what is due at a millisecond
    /// leaves somewhere within it. 0 for our links as they are
    #[arg(long, default_value = "1ms")]
    wake_up: trimtab_units::Duration,
    /// Print the cells that there are, and run none
    #[arg(long)]
    list: bool,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error(transparent)]
    Emu(#[from] EmuError),
    #[error("{path}: {problem}; name the folder of the recordings with --ground-truth")]
    Recording { path: String, problem: String },
    #[error("no cell has one of {0:?} in its name; --list prints them all")]
    NoCell(Vec<String>),
    #[error(
        "no file {0}.trace.gz is below the folder of the traces; name another one with --traces"
    )]
    NoTrace(String),
    #[error(transparent)]
    Trace(#[from] trimtab_net::TraceFileError),
    #[error("a constant link of {0} Mbit/s cannot be had: the rate must be a multiple of 12")]
    Rate(String),
    #[error(transparent)]
    Log(#[from] trimtab_net::mahimahi_log::LogFileError),
    #[error("traffic over the link failed: {0}")]
    Traffic(#[from] std::io::Error),
}

fn main() -> ExitCode {
    // What else the machine does is not part of the measurement; the programs at the ends of the link are. Without the
    // right to it, a busy machine shows in the results.
    let _ = rustix::process::setpriority_process(None, -10);
    let result = match Cli::parse().command {
        Command::Figures { seconds } => figures::run(seconds),
        Command::Mahimahi(args) => table::run(&args),
        Command::Record(args) => record::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}
