//! Knobs, on a real kernel. Skipped, with the reason, where the kernel or the rights are missing.

mod common;

use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::Duration;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use rustix::net::sockopt::set_tcp_congestion;
use trimtab_kernel::{Algorithm, By, Datapath, Error, Flow, Origin, Reporter, Towards};
use trimtab_qoe::Factors;
use trimtab_steer::Report;

use common::{A, A6, Loaded, Wire, need_kernel, wait_for};

/// What a report says of a second, after half a second to get there.
fn settle(flow: &Flow) -> Report {
    std::thread::sleep(Duration::from_millis(500));
    let mut reporter = Reporter::new(flow, trimtab_kernel::now()).expect("open");
    std::thread::sleep(Duration::from_secs(1));
    reporter.report(flow, trimtab_kernel::now(), Factors::default()).expect("open")
}

/// Copa keeps 1.25/δ packets in the queue (§3): 12.5 at δ 0.1, 125 at δ 0.01, and a packet takes 0.6 ms here.
#[test]
fn delta_sets_the_queue_of_a_running_connection() {
    need_kernel!();
    let loaded = Loaded::new("_d", 64);
    loaded.datapath().set_default("delta", 0.1).unwrap();
    // A machine that stalls for five round trips, 50 ms here, looks like a rival, and Copa would compete (§2.4).
    loaded.datapath().set_default("competitive", 0.0).unwrap();
    let wire = Wire::new("delta");
    wire.limit("20mbit", 400_000);
    let _server = wire.serve(loaded.datapath().name(), 7002, u64::MAX, 1);
    let client = wire.fetch(7002, Duration::from_millis(3500));
    let flow = wait_for("the slot", || loaded.flow(7002));

    let short = settle(&flow);
    let set = flow.set("delta", 0.01).unwrap();
    assert!((set - 0.01).abs() < 1e-5 && (flow.knob("delta").unwrap() - 0.01).abs() < 1e-5);
    let long = settle(&flow);
    let sample = flow.sample().unwrap();
    client.join().unwrap();

    let mean = |report: &Report| report.rtt_mean.expect("samples").as_millis_f64();
    println!("mean RTT {:.1} ms at delta 0.1, {:.1} ms at delta 0.01", mean(&short), mean(&long));
    assert!(mean(&short) < 18.0, "{short:?}");
    assert!((35.0..110.0).contains(&mean(&long)) && mean(&long) > 4.0 * mean(&short), "{long:?}");
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

/// The initial window of connections to come.
#[test]
fn a_default_knob_holds_for_connections_to_come() {
    need_kernel!();
    let loaded = Loaded::new("_i", 8);
    loaded.datapath().set_default("initial_window", 40.0).unwrap();
    let wire = Wire::new("initial");
    let name = loaded.datapath().name().to_owned();
    let (tell, hear) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let host = wire.spawn("a", move || {
        let listener = TcpListener::bind((A, 7003)).unwrap();
        set_tcp_congestion(&listener, &name).unwrap();
        let _client = TcpStream::connect((A, 7003)).unwrap();
        let _server = listener.accept().unwrap();
        tell.send(()).unwrap();
        ended.recv().unwrap();
    });
    hear.recv_timeout(Duration::from_secs(5)).unwrap();
    // Nothing was sent, so it is as at first.
    let sample = loaded.flow(7003).expect("the slot").sample().unwrap();
    assert_eq!(sample.window, sample.mss * 40, "{sample:?}");
    end.send(()).unwrap();
    host.join().unwrap();
}

/// The knobs of CUBIC act on a connection that is open.
#[test]
fn knobs_of_cubic_turn_too() {
    need_kernel!();
    let loaded = Loaded::new("_c", 8);
    let datapath = loaded.datapath();
    assert_eq!(datapath.set_default_of(Algorithm::Cubic, "hystart", 1.0).unwrap(), 2.0);
    assert_eq!(datapath.default_knob_of(Algorithm::Cubic, "c").unwrap(), Some(410.0 / 1024.0));
    let wire = Wire::new("cubic");
    wire.limit("20mbit", 30_000);
    let _server = wire.serve(&datapath.name_of(Algorithm::Cubic), 7009, u64::MAX, 1);
    let client = wire.fetch(7009, Duration::from_secs(6));
    let flow = wait_for("the slot", || loaded.flow(7009));
    assert_eq!((flow.algorithm(), flow.identity().algorithm), (Algorithm::Cubic, "cubic"));
    assert!(matches!(flow.set("delta", 0.1), Err(Error::Knob(_))), "CUBIC has no delta");

    // What is left of the window after a loss: the lower quartile is in the lower part of the saw's
    // teeth, the highest decile at their tips. A machine that stalls leaves some samples far below, and
    // none of these two. A burst of a whole send buffer is not seen as a window, nor garbage.
    let bottom = |beta: f64| {
        flow.set("beta", beta).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let look = |_| {
            std::thread::sleep(Duration::from_millis(10));
            flow.sample().expect("the connection is open").window
        };
        let mut windows: Vec<_> = (0..120).map(look).collect();
        windows.sort_unstable();
        assert!(windows[119].get() < 16 << 20, "a window that no hook gave: {windows:?}");
        windows[30].ratio(windows[108])
    };
    flow.set("c", 10.0).unwrap();
    let (deep, flat) = (bottom(0.5), bottom(0.95));
    println!("a loss leaves {deep:.2} of the window at beta 0.5, {flat:.2} at beta 0.95");
    assert!(deep < 0.7 && flat > deep + 0.1, "{deep} {flat}");
    client.join().unwrap();
}

/// Connections begin with what is known of where they go, by the longest prefix that fits; others,
/// and those from other ports, with the defaults.
#[test]
fn knobs_of_a_destination_are_those_of_its_new_connections() {
    need_kernel!();
    let loaded = Loaded::new("_f", 16);
    let datapath = loaded.datapath();
    let by = By { port: true, ..By::default() };
    datapath.tell_apart(by).unwrap();
    let towards = |address: &str, bits, port| {
        Towards::new(Algorithm::Vivace, address.parse().unwrap(), bits).by(port, 0, 0)
    };
    let wire = Wire::new("first");
    wire.address_v6();
    let name = datapath.name_of(Algorithm::Vivace);
    // The first rate that a connection begins with, and whether it is said of it.
    let first = |address: IpAddr, port| {
        let _server = wire.serve_at(address, &name, port, u64::MAX, 1);
        let client = wire.fetch_at(address, port, Duration::from_millis(300));
        let flow = wait_for("the slot", || loaded.flow(port));
        let said = (flow.knob("initial_rate").unwrap(), flow.identity().towards);
        client.join().unwrap();
        wait_for("its end", || loaded.flow(port).is_none().then_some(()));
        said
    };
    let of = |mbps| [("initial_rate", mbps)];
    datapath.set_towards(&towards("10.77.0.0", 16, 7021), of(3.0)).unwrap();
    datapath.set_towards(&towards("10.77.2.0", 24, 7021), of(20.0)).unwrap();
    datapath.set_towards(&towards("10.77.2.0", 25, 7021), of(1e9)).unwrap();
    datapath.set_towards(&towards("10.77.3.0", 24, 7022), of(20.0)).unwrap();
    datapath.set_towards(&towards("fd77:2::", 48, 7023), of(5.0)).unwrap();
    let unknown = datapath.set_towards(&towards("10.77.2.0", 24, 1), [("beta2", 1.0)]);
    assert!(matches!(unknown, Err(Error::Knob(_))), "{unknown:?}");
    assert_eq!(datapath.towards().len(), 5);
    assert_eq!(first(A.into(), 7021), (1000.0, true), "the longest, and brought into its range");
    datapath.remove_towards(&towards("10.77.2.0", 25, 7021)).unwrap();
    assert_eq!(first(A.into(), 7021), (20.0, true));
    datapath.remove_towards(&towards("10.77.2.0", 24, 7021)).unwrap();
    assert_eq!(first(A.into(), 7021), (3.0, true));
    assert_eq!(first(A.into(), 7022), (0.0, false), "of another place");
    assert_eq!(first(A.into(), 7024), (0.0, false), "of another port");
    assert_eq!(first(A6.into(), 7023), (5.0, true));
    assert_eq!(first(A6.into(), 7021), (0.0, false));

    // What root writes past the library is brought into its range in the kernel.
    let map = MapHandle::from_pinned_path(loaded.options.folder.join("tt_towards_knobs")).unwrap();
    let keys: Vec<_> = map.keys().collect();
    for key in &keys {
        map.update(key, &[0xff; 64], MapFlags::ANY).unwrap();
    }
    assert_eq!(first(A.into(), 7021), (1000.0, true));
    // What they are distinguished by changes: nothing of before counts. The next process finds what there is.
    datapath.tell_apart(by).unwrap();
    let again = Datapath::load(&loaded.options).unwrap();
    assert!(
        again.origin() == Origin::Adopted && again.towards().len() == 3,
        "{:?}",
        again.towards()
    );
    datapath.tell_apart(By::default()).unwrap();
    assert_eq!(again.towards(), []);
}
