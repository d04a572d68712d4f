//! Rates and departure times of the emulator alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as StdDuration;

use trimtab_emu::{Config, Report, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, QueueConfig, Trace};
use trimtab_units::{Bytes, Duration, Rate};

use crate::{BenchError, traffic};

const DELAY: Duration = Duration::from_millis(10);

/// One row of the table.
struct Case {
    name: &'static str,
    mbps: u32,
    links: usize,
    /// Threads that do nothing but keep processors busy.
    busy: usize,
}

pub(crate) fn run(seconds: u64) -> Result<(), BenchError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let case = |name, mbps, links, busy| Case { name, mbps, links, busy };
    println!(
        "{cores} cores, {seconds} s per case, one TCP connection (CUBIC) per link, {DELAY} of delay each way\n"
    );
    println!("| case | offered | achieved | | late p50 | late p99 | late max | scheduling |");
    println!("|---|---|---|---|---|---|---|---|");
    for case in [
        case("48 Mbit/s", 48, 1, 0),
        case("48 Mbit/s, all cores busy", 48, 1, cores),
        case("200 Mbit/s", 200, 1, 0),
        case("200 Mbit/s, all cores busy", 200, 1, cores),
        case("four at once, 48 Mbit/s each", 48, 4, 0),
        case("four at once, 48 Mbit/s each, all cores busy", 48, 4, cores),
    ] {
        for report in measure(&case, StdDuration::from_secs(seconds))? {
            print_row(case.name, &report);
        }
    }
    Ok(())
}

fn measure(case: &Case, time: StdDuration) -> Result<Vec<Report>, BenchError> {
    let stop = Arc::new(AtomicBool::new(false));
    let spin = |stop: Arc<AtomicBool>| move || while !stop.load(Ordering::Relaxed) {};
    let busy: Vec<_> = (0..case.busy).map(|_| thread::spawn(spin(stop.clone()))).collect();
    let mbps = case.mbps;
    let links: Vec<_> = (0..case.links).map(|_| thread::spawn(move || fill(mbps, time))).collect();
    let join = |link: thread::JoinHandle<_>| {
        link.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    let reports = links.into_iter().map(join).collect();
    stop.store(true, Ordering::Relaxed);
    for thread in busy {
        // It cannot panic.
        let _ = thread.join();
    }
    reports
}

/// Fills one link with TCP; its buffer is of two bandwidth-delay products, so that it never runs empty.
fn fill(mbps: u32, time: StdDuration) -> Result<Report, BenchError> {
    let rate = Rate::from_mbps(mbps.into());
    let buffer: Bytes = (rate * (DELAY + DELAY)).mul_f64(2.0);
    let down =
        LinkConfig::new(capacity(mbps)).queue(QueueConfig::drop_tail_bytes(buffer)).delay(DELAY);
    let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(DELAY);
    let mut topology = Topology::new(ServerSide::Private)?;
    topology.start(&Config { down, up, seed: 0, log: None })?;
    traffic::bulk(&topology, "cubic", 2 * StdDuration::from_nanos(DELAY.as_nanos()), time)?;
    Ok(topology.stop()?)
}

/// A trace where its rate comes out even, so many packets of 1500 bytes per millisecond; else a constant rate.
fn capacity(mbps: u32) -> Capacity {
    let per_ms = mbps / 12;
    let times: Vec<u32> = (0..1000 * per_ms).map(|k| k / per_ms + 1).collect();
    match Trace::from_opportunities(times) {
        Ok(trace) if mbps.is_multiple_of(12) => Capacity::trace(trace),
        _ => Capacity::Constant(Rate::from_mbps(mbps.into())),
    }
}

fn print_row(name: &str, report: &Report) {
    let down = &report.down;
    let (rate, late) = (down.calibration, down.late);
    let mbps = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.3} Mbit/s"));
    let ms = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.3} ms"));
    let share =
        rate.map_or("-".into(), |r| format!("{:.2}%", r.achieved_mbps / r.offered_mbps * 100.0));
    println!(
        "| {name} | {} | {} | {share} | {} | {} | {} | {} |",
        mbps(rate.map(|r| r.offered_mbps)),
        mbps(rate.map(|r| r.achieved_mbps)),
        ms(late.map(|l| l.p50_ms)),
        ms(late.map(|l| l.p99_ms)),
        ms(late.map(|l| l.max_ms)),
        report.scheduling,
    );
    let lost = down.drops.before_link + down.drops.refused;
    if lost > 0 {
        println!("\n{lost} packets were lost by the kernel, not by the link.\n");
    }
}
