//! Rate and processor time of a transfer over loopback compared with noq's own CUBIC, and
//! nanoseconds and allocations per packet.

use std::sync::Arc;

use noq_proto::congestion::CubicConfig;
use serde::Serialize;
use trimtab_noq::{Config, ConfigError};

use crate::transfer::{Bench, Controllers};
use crate::{BenchError, median, watched};

/// noq's own CUBIC, the peer.
const PEER: &str = "noq:cubic";
/// What is measured per packet, next to the peer.
const SCHEMES: [&str; 6] = ["cubic", "copa", "bbr", "bbr3", "vivace", "mortise"];

/// What a scheme costs.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
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

/// All schemes; the first round warms up.
pub(crate) fn measure(rounds: u64, megabytes: u64) -> Result<Vec<Line>, BenchError> {
    let bench = Bench::new(megabytes * 1_000_000).map_err(BenchError::Transfer)?;
    let mut measured = Vec::new();
    for round in 0..=rounds {
        let samples = once(&bench, round)?;
        if round > 0 {
            measured.push(samples);
        }
    }
    let names = [PEER].into_iter().chain(SCHEMES);
    Ok(names.enumerate().map(|(i, name)| line(name, i, &measured)).collect())
}

pub(crate) fn print(lines: &[Line]) {
    println!("| scheme | rate | processor time | ns per packet | allocations per packet |");
    println!("|---|---|---|---|---|");
    for line in lines {
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
}

/// A round: the peer first, then all schemes, each without and with a watch on its controller.
fn once(bench: &Bench, round: u64) -> Result<Vec<Sample>, BenchError> {
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

fn controllers(name: &str, round: u64) -> Result<Controllers, ConfigError> {
    if name == PEER {
        return Ok(Arc::new(CubicConfig::default()));
    }
    let (factory, _) = Config::new(name)?.with_seed(round).connection();
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
