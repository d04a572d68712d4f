//! What it costs that another algorithm takes over: each time, and on the whole, where they take turns every second.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use trimtab_cc::migrate::Switch;
use trimtab_kernel::{Algorithm, Datapath, Flow};

use crate::hosts::Hosts;
use crate::programs::{Runs, Statistics, runs};
use crate::table::{Figure, Target, median};
use crate::{BenchError, Loaded, load, processor, system};

/// Between switches: as rare as is of use, and so often that everything stays in the processor's caches.
const RARE: Duration = Duration::from_secs(1);
const OFTEN: Duration = Duration::from_millis(1);
/// Of the flow whose programs are counted, of which the first seconds do not count.
const COUNTED: Duration = Duration::from_secs(8);
/// Programs that run in a switch: the old algorithm's last and the new one's first.
const OF_A_SWITCH: [&str; 4] = ["tt_close", "tt_copa_open", "tt_cubic_open", "tt_bbr_open"];

/// Lets Copa and another algorithm take turns on the connection with this local port, until it is
/// over; gives what each time took, in nanoseconds.
fn take_turns(
    datapath: &Datapath,
    port: u16,
    other: Algorithm,
    every: Duration,
    over: &AtomicBool,
) -> Vec<f64> {
    let mut took = Vec::new();
    let mut flow: Option<Flow> = None;
    while !over.load(Relaxed) {
        std::thread::sleep(every);
        flow = flow.or_else(|| datapath.flows().find(|f| f.identity().local.port() == port));
        let Some((flow, state)) = flow.as_ref().and_then(|f| Some((f, f.switching()?))) else {
            continue;
        };
        if state.pending.is_some() {
            continue;
        }
        if state.switches as usize > took.len() {
            took.push(state.took.as_nanos() as f64);
        }
        let to = match flow.algorithm() {
            Algorithm::Copa => other,
            _ => Algorithm::Copa,
        };
        // The connection may have ended by now.
        let _ = flow.switch(to, None, Switch::Full);
    }
    took
}

/// Measures something while Copa and another algorithm take turns on a flow.
fn turning<T>(
    loaded: &Loaded,
    port: u16,
    (other, every): (Algorithm, Duration),
    measure: impl FnOnce(&str) -> Result<T, BenchError>,
) -> Result<(T, Vec<f64>), BenchError> {
    let over = AtomicBool::new(false);
    let datapath = loaded.datapath()?;
    std::thread::scope(|scope| {
        let turns = scope.spawn(|| take_turns(datapath, port, other, every, &over));
        let measured = measure(&loaded.name_of(Algorithm::Copa));
        over.store(true, Relaxed);
        let took = turns.join().unwrap_or_default();
        if took.is_empty() {
            return Err(system("let another algorithm take over")("it never did"));
        }
        Ok((measured?, took))
    })
}

/// Nanoseconds that the programs of a switch took for each of them, of what ran in between.
fn programs(before: &Runs, after: &Runs) -> f64 {
    let ran = |name: &str| {
        let of = |runs: &BTreeMap<String, (u64, u64)>| runs.get(name).copied().unwrap_or_default();
        let ((count_before, time_before), (count, time)) = (of(before), of(after));
        (count.saturating_sub(count_before), time.saturating_sub(time_before))
    };
    let all = OF_A_SWITCH.map(ran);
    let time: u64 = all.iter().map(|(_, time)| time).sum();
    // One algorithm ends in each.
    time as f64 / all[0].0.max(1) as f64
}

pub(crate) fn measure(
    hosts: &Hosts,
    loaded: &Loaded,
    time: Duration,
) -> Result<Vec<Figure>, BenchError> {
    let alone = |algorithm, port| {
        let name = loaded.name_of(algorithm);
        eprintln!("{name}, {} s at 48 Mbit/s and 20 ms", time.as_secs());
        processor::one(hosts, &name, port, time)
    };
    let (copa, of_copa) = alone(Algorithm::Copa, 7140)?;
    let (cubic, of_cubic) = alone(Algorithm::Cubic, 7141)?;
    eprintln!("both in turn, {} s", time.as_secs());
    let ((both, of_both), rare) = turning(loaded, 7142, (Algorithm::Cubic, RARE), |name| {
        processor::one(hosts, name, 7142, time)
    })?;
    eprintln!("both in turn, {} s with statistics of the programs", COUNTED.as_secs());
    let (over, often) = {
        let _statistics = Statistics::on()?;
        let often = (Algorithm::Cubic, OFTEN);
        turning(loaded, 7143, often, |name| {
            load::run(hosts, load::SLOW, name, 7143, COUNTED, COUNTED, |_| runs())
        })?
    };
    eprintln!("with BBR in turn, {} s with statistics of the programs", COUNTED.as_secs());
    let (with_bbr, bbr_often) = {
        let _statistics = Statistics::on()?;
        let often = (Algorithm::Bbr, OFTEN);
        turning(loaded, 7144, often, |name| {
            load::run(hosts, load::SLOW, name, 7144, COUNTED, COUNTED, |_| runs())
        })?
    };
    let sum = |parts: [f64; 3]| parts.iter().sum::<f64>();
    let without = 0.5 * (sum(of_copa) + sum(of_cubic));
    let least = often.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(vec![
        Figure::new("in turn: goodput", both, "Mbit/s"),
        Figure::new("in turn: the mean of both alone", 0.5 * (copa + cubic), "Mbit/s"),
        Figure::new("in turn: the sender's processor time", sum(of_both), "% of a core"),
        Figure::new("in turn: more than both alone, mean", sum(of_both) - without, "points")
            .target(Target::AtMost(0.5)),
        Figure::new("a switch: its programs", programs(&over.before, &over.after), "ns")
            .target(Target::AtMost(2000.0)),
        Figure::new("a switch: all of it, one after the other, least", least / 1e3, "us"),
        Figure::new("a switch: …, median", median(often) / 1e3, "us"),
        Figure::new("a switch: …, once a second, median", median(rare) / 1e3, "us"),
        Figure::new(
            "a switch with BBR: its programs",
            programs(&with_bbr.before, &with_bbr.after),
            "ns",
        )
        .target(Target::AtMost(2000.0)),
        Figure::new("a switch with BBR: all of it, median", median(bbr_often) / 1e3, "us"),
    ])
}
