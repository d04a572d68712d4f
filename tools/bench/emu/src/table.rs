//! Runs the cells that were asked for and prints ours next to Mahimahi's.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use trimtab_net::JitterConfig;
use trimtab_units::Duration;

use crate::cells::median;
use crate::{BenchError, Mahimahi, bulk, download};

/// A column of a table, twice: ours and Mahimahi's.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Whether the difference is in percent of Mahimahi's value.
    pub(crate) is_relative: bool,
}

/// What came of a cell, column by column.
pub(crate) struct Measured {
    pub(crate) ours: Vec<f64>,
    /// The mean of the repeats.
    pub(crate) theirs: Vec<f64>,
    /// The timing error of our downlink.
    pub(crate) late_p99_ms: f64,
}

pub(crate) fn run(args: &Mahimahi) -> Result<(), BenchError> {
    let is_wanted =
        |name: &str| args.only.is_empty() || args.only.iter().any(|part| name.contains(part));
    let mut bulk = bulk::cells(&args.ground_truth)?;
    bulk.retain(|name, _| is_wanted(&format!("bulk-{name}")));
    let mut download = download::cells(&args.ground_truth)?;
    download.retain(|name, _| is_wanted(name));
    if bulk.is_empty() && download.is_empty() {
        return Err(BenchError::NoCell(args.only.clone()));
    }
    if args.list {
        bulk.keys().for_each(|name| println!("bulk-{name}"));
        download.keys().for_each(|name| println!("{name}"));
        return Ok(());
    }
    let jitter = if args.wake_up.is_zero() {
        JitterConfig::None
    } else {
        JitterConfig::Burst { max: args.wake_up, each: Duration::ZERO }
    };
    if !bulk.is_empty() {
        println!("## Bulk flows\n");
        let measured =
            all(&bulk, args.jobs, |rows| bulk::measure(&args.ground_truth, rows, jitter))?;
        print(&bulk::COLUMNS, &measured);
    }
    if !download.is_empty() {
        println!("\n## Downloads\n");
        let measured =
            all(&download, args.jobs, |cell| download::measure(&args.traces, cell, jitter))?;
        print(&download::COLUMNS, &measured);
    }
    Ok(())
}

/// What came of a cell, with the timing error of our downlink.
pub(crate) trait Timed: Send {
    fn late_p99_ms(&self) -> f64;
}

impl Timed for Measured {
    fn late_p99_ms(&self) -> f64 {
        self.late_p99_ms
    }
}

/// Runs all cells, some at once; the first error ends it.
pub(crate) fn all<C: Sync, R: Timed>(
    cells: &BTreeMap<String, C>,
    jobs: usize,
    measure: impl Fn(&C) -> Result<R, BenchError> + Sync,
) -> Result<BTreeMap<String, R>, BenchError> {
    let todo = Mutex::new(cells.iter());
    let done = Mutex::new(BTreeMap::new());
    let work = || -> Result<(), BenchError> {
        loop {
            // Only panics poison it, and they end the program.
            let next = todo.lock().map(|mut todo| todo.next());
            let Ok(Some((name, cell))) = next else { return Ok(()) };
            let measured = measure(cell)?;
            eprintln!("{name}: done, p99 of the timing error {:.3} ms", measured.late_p99_ms());
            if let Ok(mut done) = done.lock() {
                done.insert(name.clone(), measured);
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().try_for_each(join)
    })?;
    Ok(done.into_inner().unwrap_or_default())
}

fn print(columns: &[Column], measured: &BTreeMap<String, Measured>) {
    let heads: String =
        columns.iter().map(|c| format!(" {} | Mahimahi | difference |", c.name)).collect();
    println!("| cell |{heads}");
    println!("|---|{}", "---|".repeat(3 * columns.len()));
    for (name, m) in measured {
        let cells: String = (0..columns.len())
            .map(|i| {
                format!(
                    " {:.2} | {:.2} | {} |",
                    m.ours[i],
                    m.theirs[i],
                    show(&columns[i], difference(&columns[i], m, i))
                )
            })
            .collect();
        println!("| {name} |{cells}");
    }
    println!(
        "\nMedians of the differences and of their absolute values over {} cells:\n",
        measured.len()
    );
    println!("| metric | median difference | median absolute difference |\n|---|---|---|");
    for (i, column) in columns.iter().enumerate() {
        let differences = || measured.values().map(|m| difference(column, m, i));
        let (signed, absolute) = (median(differences()), median(differences().map(f64::abs)));
        println!("| {} | {} | {} |", column.name, show(column, signed), show(column, absolute));
    }
    let late = measured.values().map(|m| m.late_p99_ms).fold(0.0, f64::max);
    println!("\nThe largest p99 of the timing error in any cell was {late:.3} ms.");
}

fn difference(column: &Column, m: &Measured, i: usize) -> f64 {
    if column.is_relative {
        (m.ours[i] / m.theirs[i] - 1.0) * 100.0
    } else {
        m.ours[i] - m.theirs[i]
    }
}

fn show(column: &Column, difference: f64) -> String {
    format!("{difference:+.2}{}", if column.is_relative { "%" } else { " pp" })
}
