//! Knobs, on a real kernel. Skipped, with the reason, where the kernel or the rights are missing.

mod common;

use std::time::Duration;

use trimtab_qoe::Factors;
use trimtab_steer::Report;
use trimtab_tcp::{Flow, Reporter};

use common::{Loaded, Wire, need_kernel, wait_for};

/// What a report says of a second, after half a second to get there.
fn settle(flow: &Flow) -> Report {
    std::thread::sleep(Duration::from_millis(500));
    let mut reporter = Reporter::new(flow, trimtab_tcp::now()).expect("open");
    std::thread::sleep(Duration::from_secs(1));
    reporter.report(flow, trimtab_tcp::now(), Factors::default()).expect("open")
}

/// Copa keeps 1.25/δ packets in the queue (§3): 12.5 at δ 0.1, 125 at δ 0.01, and a packet takes 0.6 ms here.
#[test]
fn delta_sets_the_queue_of_a_running_connection() {
    need_kernel!();
    let loaded = Loaded::new("_d", 64);
    loaded.datapath().set_default("delta", 0.1).unwrap();
    let wire = Wire::new("delta");
    wire.limit("20mbit", 400_000);
    let _server = wire.serve(loaded.datapath().name(), 7002, u64::MAX, 1);
    let client = wire.fetch(7002, Duration::from_secs(5));
    let flow = wait_for("the slot", || loaded.flow(7002));

    let short = settle(&flow);
    let set = flow.set("delta", 0.01).unwrap();
    assert!((set - 0.01).abs() < 1e-5 && (flow.knob("delta").unwrap() - 0.01).abs() < 1e-5);
    let long = settle(&flow);
    let sample = flow.sample().unwrap();
    client.join().unwrap();

    let mean = |report: &Report| report.rtt_mean.expect("samples").as_millis_f64();
    println!("mean RTT {:.1} ms at delta 0.1, {:.1} ms at delta 0.01", mean(&short), mean(&long));
    assert!((3.0..18.0).contains(&mean(&short)), "{short:?}");
    assert!((45.0..110.0).contains(&mean(&long)), "{long:?}");
    assert!((sample.delta - 0.01).abs() < 1e-5, "{sample:?}");
}

#[test]
fn a_knob_is_brought_into_its_range_and_an_unknown_one_refused() {
    need_kernel!();
    let loaded = Loaded::new("_k", 8);
    let datapath = loaded.datapath();
    assert_eq!(datapath.set_default("delta", 100.0).unwrap(), 2.0);
    assert_eq!(datapath.set_default("velocity_max", 0.0).unwrap(), 1.0);
    let error = datapath.set_default("beta", 0.7).unwrap_err().to_string();
    assert!(error.starts_with("no such knob; this algorithm has: delta, "), "{error}");
    assert_eq!(datapath.default_knob("initial_window").unwrap(), None, "the system's");
    datapath.reset_defaults();
    assert_eq!(datapath.default_knob("delta").unwrap(), Some(0.5));
}

/// The initial window of connections to come, seen in what leaves before any acknowledgement could come.
#[test]
fn a_default_knob_holds_for_connections_to_come() {
    need_kernel!();
    let loaded = Loaded::new("_i", 8);
    loaded.datapath().set_default("initial_window", 40.0).unwrap();
    let wire = Wire::new("initial");
    wire.set_default("a", loaded.datapath().name());
    let _server = wire.serve(loaded.datapath().name(), 7003, 1000, 1);
    let events = loaded.datapath().events().unwrap();
    let client = wire.fetch(7003, Duration::from_secs(2));
    let flow = wait_for("the slot", || {
        events.take().unwrap().iter().find_map(|event| loaded.datapath().flow(event.slot))
    });
    let window = flow.sample().map(|sample| sample.window.get() / sample.mss.get().max(1));
    client.join().unwrap();
    assert!(window.is_none_or(|packets| packets >= 40), "{window:?}");
}
