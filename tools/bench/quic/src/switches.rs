//! Ten virtual minutes of a bulk transfer whose algorithm changes each second, by the connection's
//! handle, and the same minutes of each algorithm alone.

use serde::Serialize;
use trimtab_noq::units::{Duration, Rate};

use crate::memory::live;
use crate::support::{Setting, switches};

const SCHEMES: [&str; 3] = ["cubic", "bbr", "copa"];
/// Rate in Mbit/s, and round-trip time in milliseconds; each with a buffer of one bandwidth-delay
/// product.
const PATHS: [(f64, u64); 2] = [(10.0, 40), (4.0, 100)];
const SECONDS: u64 = 600;

/// Ten minutes on a path.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    mbps: f64,
    rtt_ms: u64,
    /// What runs, a second each.
    schemes: String,
    switches: u64,
    /// Over the least of the three alone.
    goodput: f64,
    /// In round-trip times.
    longest_wait: f64,
    /// The percentage of packets that the link dropped.
    mean_loss: f64,
    /// In the worst second.
    worst_loss: f64,
    /// Bytes that are allocated, over those in the second minute: means over the tenth.
    memory: f64,
}

/// The switched connection first, then each alone, on each path.
pub(crate) fn measure() -> Vec<Line> {
    PATHS.into_iter().flat_map(on_path).collect()
}

fn on_path((mbps, rtt_ms): (f64, u64)) -> Vec<Line> {
    let (rate, rtt) = (Rate::from_mbps(mbps), Duration::from_millis(rtt_ms));
    let setting = Setting { rate, rtt, ..Setting::default() };
    let ways = [&SCHEMES[..], &SCHEMES[..1], &SCHEMES[1..2], &SCHEMES[2..]];
    let measured = ways.map(|schemes| {
        let mut memory = Vec::with_capacity(SECONDS as usize);
        (switches::in_turn(schemes, &setting, SECONDS, |_| memory.push(live())), memory)
    });
    let least = measured[1..].iter().map(|(alone, _)| alone.goodput).min().unwrap_or(Rate::ZERO);
    let lines = ways.into_iter().zip(&measured).map(|(schemes, (seconds, memory))| Line {
        mbps,
        rtt_ms,
        schemes: schemes.join(", "),
        switches: seconds.switches,
        goodput: seconds.goodput.mbps() / least.mbps(),
        longest_wait: seconds.longest_wait.as_secs_f64() / rtt.as_secs_f64(),
        mean_loss: seconds.mean_loss() * 100.0,
        worst_loss: seconds.worst_loss() * 100.0,
        memory: mean(&memory[540..]) / mean(&memory[60..120]),
    });
    lines.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn print(lines: &[Line]) {
    println!("| link | schemes | switches | goodput | longest wait | loss | worst | memory |");
    println!("|---|---|---|---|---|---|---|---|");
    for line in lines {
        println!(
            "| {} Mbit/s, {} ms | {} | {} | {:.3} | {:.2} RTT | {:.3}% | {:.2}% | {:.4} |",
            line.mbps,
            line.rtt_ms,
            line.schemes,
            line.switches,
            line.goodput,
            line.longest_wait,
            line.mean_loss,
            line.worst_loss,
            line.memory
        );
    }
    println!(
        "\nGoodput: over the least of the three alone. Loss: dropped by the link in a second."
    );
    println!("Memory: allocated in the tenth minute over the second. Targets: 3 RTT, 1%, 1.0.");
}
