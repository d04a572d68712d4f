//! How true the emulator is: rates and departure times, with the processors busy and with other emulators beside.
//! The figures of the documentation come from `./dev bench emu`, which measures the same for longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration as StdDuration;

use trimtab_emu::{Config, Report, Scheduling};
use trimtab_net::{Capacity, LinkConfig};
use trimtab_units::{Duration, Rate};

use crate::support::{bulk, constant_trace, delay_only, link, topology, trace};

const DELAY: Duration = Duration::from_millis(10);

/// Fills a link for some seconds.
fn fill(down: LinkConfig, time: StdDuration) -> Option<Report> {
    let mut topology = topology()?;
    topology.start(&Config { down, up: delay_only(DELAY), seed: 0, log: None }).unwrap();
    bulk(&topology, time);
    Some(topology.stop().unwrap())
}

/// Within 1% of the rate, and within 1 ms of the trace for 99% of the packets.
fn assert_true(report: &Report) {
    println!("{report}");
    let rate = report.down.calibration.expect("the link was busy for a second");
    assert!((rate.achieved_mbps / rate.offered_mbps - 1.0).abs() < 0.01, "{rate:?}");
    assert_eq!(report.down.drops.before_link + report.down.drops.refused, 0, "{report}");
    // An ordinary thread waits behind the busy ones.
    if report.scheduling == Scheduling::RealTime {
        for late in [report.down.late, report.up.late] {
            assert!(late.unwrap().p99_ms < 1.0, "{report}");
        }
    }
}

#[test]
fn busy_processors_do_not_disturb() {
    let stop = Arc::new(AtomicBool::new(false));
    let spin = |stop: Arc<AtomicBool>| move || while !stop.load(Ordering::Relaxed) {};
    let busy: Vec<_> = (0..2).map(|_| thread::spawn(spin(stop.clone()))).collect();
    let report = fill(link(trace(constant_trace(4)), 200, DELAY), StdDuration::from_secs(3));
    stop.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
    report.iter().for_each(assert_true);
}

#[test]
fn a_link_of_200_mbps_holds() {
    let down = link(Capacity::Constant(Rate::from_mbps(200.0)), 500, DELAY);
    fill(down, StdDuration::from_secs(3)).iter().for_each(assert_true);
}

#[test]
fn four_at_once_do_not_disturb_each_other() {
    let four: Vec<_> = (0..4)
        .map(|_| {
            let down = link(trace(constant_trace(1)), 50, DELAY);
            thread::spawn(|| fill(down, StdDuration::from_secs(3)))
        })
        .collect();
    four.into_iter().for_each(|one| one.join().unwrap().iter().for_each(assert_true));
}
