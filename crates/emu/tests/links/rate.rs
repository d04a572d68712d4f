//! How true the emulator is: rates and departure times, with busy processors and with other
//! emulators running.
//! The figures of the documentation come from `./dev bench emu`, which measures the same for longer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration as StdDuration;

use trimtab_emu::{Bundle, Config, Report, Scheduling};
use trimtab_net::{Capacity, LinkConfig};
use trimtab_units::{Duration, Rate};

use crate::support::{bulk, constant_trace, delay_only, link, topology, trace};
use crate::witness::Witness;

const DELAY: Duration = Duration::from_millis(10);

/// Fills a link for some seconds.
fn fill(down: LinkConfig, time: StdDuration) -> Option<Report> {
    let mut topology = topology()?;
    topology.start(&Config { down, up: delay_only(DELAY), seed: 0, log: None }).unwrap();
    bulk(&topology, time);
    Some(topology.stop().unwrap())
}

/// Why a link was not true: within 1% of the rate, and within 1 ms of the trace for 99% of the
/// packets, or as near to it as the machine itself is to its clock.
fn flaw(report: &Report, withheld_ms: f64) -> Option<String> {
    println!("{report}\nmachine: late by {withheld_ms:.3} ms at p99");
    let Some(rate) = report.down.calibration else {
        return Some("never busy for a second".to_owned());
    };
    assert_eq!(report.down.drops.before_link + report.down.drops.refused, 0, "{report}");
    if (rate.achieved_mbps / rate.offered_mbps - 1.0).abs() >= 0.01 {
        return Some(format!("{rate:?}"));
    }
    // An ordinary thread waits behind the busy ones.
    if report.scheduling != Scheduling::RealTime {
        return None;
    }
    let late = [report.down.late, report.up.late].map(|late| late.unwrap().p99_ms);
    // What waited meanwhile departs at once, and then waits for each other.
    let bound = 1.0 + 2.0 * withheld_ms;
    (late[0] >= bound || late[1] >= bound).then(|| format!("late by {late:.3?} ms at p99"))
}

/// The best of some tries, one test at a time: a virtual machine whose host withholds its
/// processors for some milliseconds makes a true emulator late and its senders idle, and nothing
/// makes an untrue one punctual.
fn assert_true(run: impl Fn() -> Vec<Report>) {
    const TRIES: usize = 6;
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut flaws = Vec::new();
    while flaws.len() < TRIES {
        let witness = Witness::begin();
        let reports = run();
        let withheld_ms = witness.end();
        let found: Vec<String> =
            reports.iter().filter_map(|report| flaw(report, withheld_ms)).collect();
        if found.is_empty() {
            return;
        }
        flaws.push(found);
    }
    panic!("not true in any of {TRIES} tries: {flaws:#?}");
}

const TIME: StdDuration = StdDuration::from_secs(3);

#[test]
fn busy_processors_do_not_disturb() {
    assert_true(|| {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |stop: Arc<AtomicBool>| move || while !stop.load(Ordering::Relaxed) {};
        let busy: Vec<_> = (0..2).map(|_| thread::spawn(spin(stop.clone()))).collect();
        let report = fill(link(trace(constant_trace(4)), 200, DELAY), TIME);
        stop.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|thread| thread.join().unwrap());
        report.into_iter().collect()
    });
}

#[test]
fn a_link_of_200_mbps_holds() {
    let down = link(Capacity::Constant(Rate::from_mbps(200.0)), 500, DELAY);
    assert_true(|| fill(down.clone(), TIME).into_iter().collect());
}

#[test]
fn four_at_once_do_not_disturb_each_other() {
    let down = || link(trace(constant_trace(1)), 50, DELAY);
    assert_true(|| {
        let four: Vec<_> = (0..4).map(|_| thread::spawn(move || fill(down(), TIME))).collect();
        four.into_iter().filter_map(|one| one.join().unwrap()).collect()
    });
}

/// Three of eight links are busy, which no other one sees: each has its own rate and its own delay.
#[test]
fn one_thread_carries_a_bundle_as_true() {
    let down = || link(trace(constant_trace(1)), 50, DELAY);
    let grain = Duration::from_micros(500);
    assert_true(|| {
        let topologies: Vec<_> = (0..8).map_while(|_| topology()).collect();
        let up = || delay_only(DELAY);
        let links = topologies
            .into_iter()
            .zip(0..)
            .map(|(topology, seed)| (topology, Config { down: down(), up: up(), seed, log: None }));
        let mut bundle = Bundle::start(links.collect(), grain).unwrap();
        thread::scope(|scope| {
            for topology in bundle.topologies().iter().take(3) {
                scope.spawn(|| bulk(topology, TIME));
            }
        });
        let mut reports = bundle.stop().unwrap();
        let idle = reports.split_off(3.min(reports.len()));
        assert!(idle.iter().all(|report| report.down.arrivals + report.up.arrivals == 0));
        let state = bundle.stop().unwrap_err().to_string();
        assert_eq!(state, "the link does not run; start it first");
        reports
    });
}
