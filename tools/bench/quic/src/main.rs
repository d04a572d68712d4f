//! What Trimtab costs in the QUIC stack noq: rate and processor time of a transfer over loopback
//! compared with noq's own CUBIC, and nanoseconds and allocations per packet. Tests do not depend on
//! it.

mod transfer;
mod watched;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use noq_proto::congestion::CubicConfig;
use serde::Serialize;
use trimtab_noq::{Config, ConfigError};

use transfer::{Bench, Controllers, Failure};

/// noq's own CUBIC, the peer.
const PEER: &str = "noq:cubic";
/// What is measured per packet, next to the peer.
const SCHEMES: [&str; 6] = ["cubic", "copa", "bbr", "bbr3", "vivace", "mortise"];

/// What Trimtab costs in a QUIC stack, compared with the stack's own congestion control.
#[derive(Debug, Parser)]
#[command(name = "quic-bench")]
struct Cli {
    /// Rounds; each has one transfer of every kind, and the medians are printed
    #[arg(long, default_value_t = 9)]
    rounds: usize,
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
    #[error("cannot write {}: {cause}", path.display())]
    Json { path: PathBuf, cause: std::io::Error },
}

/// What a scheme costs.
#[derive(Debug, Serialize)]
struct Line {
    scheme: String,
    /// The rate over that of the peer in the same round, median.
    rate: f64,
    /// The peer's processor time over this one's, median; both ends.
    processor: f64,
    /// Nanoseconds in the controller per packet that the server sends, median.
    nanos_per_packet: f64,
    /// Allocations in the controller per packet, once the transfer runs, median.
    allocations_per_packet: f64,
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
    let bench = Bench::new(cli.megabytes * 1_000_000).map_err(BenchError::Transfer)?;
    let mut rounds = Vec::new();
    // The first round warms up.
    for round in 0..=cli.rounds.max(1) {
        let measured = once(&bench, round)?;
        if round > 0 {
            rounds.push(measured);
        }
    }
    let names = [PEER].into_iter().chain(SCHEMES);
    let lines: Vec<Line> = names.enumerate().map(|(i, name)| line(name, i, &rounds)).collect();
    println!("| scheme | rate | processor time | ns per packet | allocations per packet |");
    println!("|---|---|---|---|---|");
    for line in &lines {
        println!(
            "| `{}` | {:.3} | {:.3} | {:.0} | {:.4} |",
            line.scheme,
            line.rate,
            line.processor,
            line.nanos_per_packet,
            line.allocations_per_packet
        );
    }
    println!(
        "\nRate and processor time: noq's own CUBIC is 1, and more is better. Targets: 0.97 for"
    );
    println!("`cubic`; 500 ns and no allocation per packet for all.");
    if let Some(path) = &cli.json {
        let text = serde_json::to_string_pretty(&lines).expect("numbers and names");
        let fail = |cause| BenchError::Json { path: path.clone(), cause };
        std::fs::write(path, text + "\n").map_err(fail)?;
    }
    Ok(())
}

/// A round: the peer first, then all schemes, each without and with a watch on its controller.
fn once(bench: &Bench, round: usize) -> Result<Vec<Sample>, BenchError> {
    let mut samples = Vec::new();
    for name in [PEER].into_iter().chain(SCHEMES) {
        let plain = bench.transfer(controllers(name, round)?).map_err(BenchError::Transfer)?;
        let (watched, tally) = watched::watch(controllers(name, round)?);
        bench.transfer(watched).map_err(BenchError::Transfer)?;
        samples.push(Sample {
            seconds: plain.seconds,
            processor: plain.processor,
            nanos: tally.nanos_per_packet(),
            allocations: tally.allocations_per_packet(),
        });
    }
    Ok(samples)
}

/// What a scheme took in a round.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    processor: f64,
    nanos: f64,
    allocations: f64,
}

fn controllers(name: &str, round: usize) -> Result<Controllers, ConfigError> {
    if name == PEER {
        return Ok(Arc::new(CubicConfig::default()));
    }
    let (factory, _) = Config::new(name)?.with_seed(round as u64).connection();
    Ok(factory)
}

fn line(scheme: &str, place: usize, rounds: &[Vec<Sample>]) -> Line {
    let of = |value: &dyn Fn(&Sample, &Sample) -> f64| {
        median(rounds.iter().map(|round| value(&round[0], &round[place])).collect())
    };
    Line {
        scheme: scheme.to_owned(),
        rate: of(&|peer, own| peer.seconds / own.seconds),
        processor: of(&|peer, own| peer.processor / own.processor),
        nanos_per_packet: of(&|_, own| own.nanos),
        allocations_per_packet: of(&|_, own| own.allocations),
    }
}

/// The middle of some values, at least one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
