//! Packets that noq exchanges in virtual time for a second of one core, both ends and the link
//! included: how many conditions a comparison can have.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use trimtab_lab::compare::compare;
use trimtab_lab::run::Recording;
use trimtab_lab::run::pool::Effort;
use trimtab_lab::scenario::Scenario;
use trimtab_quic::Virtual;

use crate::median;
use crate::transfer::Failure;

/// noq's own CUBIC, the peer, and what runs next to it.
const SCHEMES: [&str; 4] = ["noq:cubic", "cubic", "bbr", "mortise"];
/// Twenty seconds of bulk data, some 160,000 packets.
const SECONDS: u32 = 20;
const LINK: &str = "traces = [\"constant:100Mbit/s\"]\nrtt = \"40ms\"\nbuffer = \"1BDP\"\n\
                    [[app]]\nkind = \"bulk\"\n";
/// Payload of a packet.
const PAYLOAD: f64 = 1440.0;

/// What a scheme's packets take.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    scheme: &'static str,
    /// Data packets per second of the processor, median.
    packets_per_second: f64,
    /// Over that of the peer in the same round, median.
    over_peer: f64,
}

/// All schemes in turn; the first round warms up.
pub(crate) fn measure(rounds: u64) -> Result<Vec<Line>, Failure> {
    let mut measured = Vec::new();
    for round in 0..=rounds {
        let rates = SCHEMES.map(once).into_iter().collect::<Result<Vec<f64>, Failure>>()?;
        if round > 0 {
            measured.push(rates);
        }
    }
    let of = |value: &dyn Fn(&[f64]) -> f64| median(measured.iter().map(|r| value(r)).collect());
    let lines = SCHEMES.into_iter().enumerate().map(|(i, scheme)| Line {
        scheme,
        packets_per_second: of(&|rates| rates[i]),
        over_peer: of(&|rates| rates[i] / rates[0]),
    });
    Ok(lines.collect())
}

/// Packets per second of the processor.
fn once(scheme: &str) -> Result<f64, Failure> {
    let scenario =
        Scenario::parse(&format!("cc = [\"{scheme}\"]\nduration = \"{SECONDS}s\"\n{LINK}"))?;
    let datapath = Virtual::new(&scenario)?;
    let effort = Effort { jobs: Some(1), quiet: true };
    let begun = processor();
    let compared = compare(&scenario, effort, Recording::default(), "", &datapath)?;
    let seconds = processor() - begun;
    let mbps: f64 = compared.runs.iter().map(|run| run.throughput_mbps).sum();
    let packets = mbps * 1e6 / 8.0 * f64::from(SECONDS) / PAYLOAD;
    Ok(packets / seconds)
}

pub(crate) fn print(lines: &[Line]) {
    println!("| scheme | packets per second of one core | vs. noq's own CUBIC |");
    println!("|---|---|---|");
    for Line { scheme, packets_per_second, over_peer } in lines {
        println!("| `{scheme}` | {:.3} M | {over_peer:.3} |", packets_per_second / 1e6);
    }
    println!("\nPackets of new data; both ends, their encryption and the link are in the time.");
    println!("Target: 0.25 M.");
}

/// Seconds of the processors that this process has used.
fn processor() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
