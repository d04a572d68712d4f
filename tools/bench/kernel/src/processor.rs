//! The sender's processor time.
//!
//! It is the time of three things, each counted in nanoseconds, whatever else runs on the machine:
//! the thread that writes; the thread that takes acknowledgements from the device, in which TCP
//! handles them and sends; and what TCP sends from software interrupts (the pacing timer) outside
//! of both.

use std::time::Duration;

use trimtab_kernel::Algorithm;

use crate::hosts::Hosts;
use crate::programs::Softirq;
use crate::table::{Figure, Target};
use crate::{BenchError, Loaded, load, system};

/// Nanoseconds of the writing thread, of the receiving one, of software interrupts.
type Times = [u64; 3];

/// What a thread ran so far.
pub(crate) fn thread_ns(thread: i32) -> Result<u64, BenchError> {
    let own = format!("/proc/self/task/{thread}/schedstat");
    let text = std::fs::read_to_string(&own)
        .or_else(|_| std::fs::read_to_string(format!("/proc/{thread}/schedstat")))
        .map_err(system("read how long a thread ran (schedstat)"))?;
    let first = text.split_whitespace().next().and_then(|word| word.parse().ok());
    first.ok_or_else(|| system("read how long a thread ran")(text))
}

/// The goodput of a flow in Mbit/s, and the shares of a core in percent.
pub(crate) fn one(
    hosts: &Hosts,
    algorithm: &str,
    port: u16,
    time: Duration,
) -> Result<(f64, [f64; 3]), BenchError> {
    let receiving = hosts.receiving_thread()?;
    let netns = hosts.sender_inode()?;
    let mut softirq = None;
    let over = load::run(hosts, load::SLOW, algorithm, port, time, time, |flow| {
        if softirq.is_none() {
            softirq = Some(Softirq::load(netns, [flow.thread, receiving])?);
        }
        let in_softirq = softirq.as_ref().map_or(Ok(0), Softirq::time_ns)?;
        Ok([thread_ns(flow.thread)?, thread_ns(receiving)?, in_softirq])
    })?;
    let (before, after): (Times, Times) = (over.before, over.after);
    let percent = |i: usize| (after[i] - before[i]) as f64 * 1e-9 / over.seconds * 100.0;
    Ok((over.goodput_mbps, [percent(0), percent(1), percent(2)]))
}

pub(crate) fn measure(
    hosts: &Hosts,
    loaded: &Loaded,
    time: Duration,
) -> Result<Vec<Figure>, BenchError> {
    let mut figures = Vec::new();
    let mut bbr = (0.0, 0.0);
    let algorithms = [
        "bbr".to_owned(),
        loaded.name_of(Algorithm::Bbr),
        loaded.name_of(Algorithm::Copa),
        "cubic".to_owned(),
        loaded.name_of(Algorithm::Cubic),
    ];
    for (port, name) in (7100..).zip(&algorithms) {
        eprintln!("{name}, {} s at 48 Mbit/s and 20 ms", time.as_secs());
        let (goodput, parts) = one(hosts, name, port, time)?;
        let sum: f64 = parts.iter().sum();
        // A percent of a core is 10,000 us in a second.
        let per_megabyte = sum * 1e4 / (goodput / 8.0);
        let short = name.trim_end_matches("_z");
        let ours = short.starts_with("trimtab");
        figures.push(Figure::new(format!("{short}: goodput"), goodput, "Mbit/s"));
        let all = Figure::new(format!("{short}: the sender's processor time"), sum, "% of a core");
        figures.push(if ours { all.target(Target::AtMost(4.0)) } else { all });
        for (part, value) in ["writing", "acknowledgements", "timers"].iter().zip(parts) {
            figures.push(Figure::new(format!("{short}: … {part}"), value, "% of a core"));
        }
        figures.push(Figure::new(format!("{short}: per megabyte"), per_megabyte, "us"));
        if name == "bbr" {
            bbr = (sum, per_megabyte);
        }
        if ours {
            let more = Figure::new(format!("{short}: more than bbr"), sum - bbr.0, "points");
            figures.push(more.target(Target::AtMost(0.25)));
            let ratio = per_megabyte / bbr.1;
            figures.push(Figure::new(format!("{short}: per megabyte vs. bbr"), ratio, "x"));
        }
    }
    Ok(figures)
}
