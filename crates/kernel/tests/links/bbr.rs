//! BBR in eBPF vs. the kernel's own.

use std::thread;
use std::time::Duration as StdDuration;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_cc::Phase;
use trimtab_kernel::Algorithm;
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig, Trace};
use trimtab_units::Duration;

use crate::common::{self, Loaded, need_kernel, wait_for};
use crate::support::{Bulk, PORT, bulk, flows, link, start, topology};

const TIME: StdDuration = StdDuration::from_secs(4);
/// How far apart the two may be, each one run on a machine that does other things, too.
const TOLERANCE: f64 = 0.1;

fn kernel_has_bbr() -> bool {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    set_tcp_congestion(socket, "bbr").is_ok()
}

/// A second of 24 Mbit/s and one of 8, again and again; 20 ms there and back.
fn square_wave() -> LinkConfig {
    let fast = (0..1000_u32).flat_map(|ms| [ms, ms]);
    let slow = (1000..2000_u32).filter(|ms| ms % 3 != 0);
    let trace = Trace::from_opportunities(fast.chain(slow).collect()).expect("in order");
    LinkConfig::new(Capacity::trace(trace))
        .queue(QueueConfig::drop_tail_packets(100))
        .delay(Duration::from_millis(10))
}

/// The same link with both, at the same time: what one has to do with, the other has, too.
fn both(loaded: &Loaded, link: &LinkConfig) -> [Bulk; 2] {
    let names = ["bbr".to_owned(), loaded.datapath().name_of(Algorithm::Bbr)];
    thread::scope(|scope| {
        let run = |name| scope.spawn(move || bulk(link.clone(), name, 1, TIME));
        let running = names.each_ref().map(|name| run(name));
        running.map(|run| run.join().expect("it ran"))
    })
}

/// A link that is full, one that changes, and one that loses a twentieth: the rate that the kernel's own BBR gets.
#[test]
fn bbr_gets_what_the_kernels_own_gets() {
    need_kernel!();
    if !kernel_has_bbr() {
        eprintln!(
            "skipped: this kernel does not offer bbr; load its module with `modprobe tcp_bbr`"
        );
        return;
    }
    let loaded = Loaded::new("_b", 8);
    let lossy = link(24.0, 100).loss(LossConfig::Independent(0.05));
    for (name, link, least_mbps) in [
        ("constant", link(24.0, 100), 20.0),
        ("changing", square_wave(), 12.0),
        ("lossy", lossy, 15.0),
    ] {
        let [kernel, ours] = both(&loaded, &link);
        println!("{name}: kernel {kernel:?}\n{name}: ours   {ours:?}");
        let ratio = ours.goodput_mbps / kernel.goodput_mbps;
        assert!((1.0 - ratio).abs() < TOLERANCE, "{name}: {ratio} times the kernel's");
        assert!(ours.goodput_mbps > least_mbps, "{name}: {ours:?}");
    }
}

/// Each phase comes up in the slot, ProbeRTT by a knob that is turned; what a program writes slowly
/// is no measure of the path.
#[test]
fn bbr_shows_its_phases_and_heeds_its_knobs() {
    need_kernel!();
    let loaded = Loaded::new("_p", 8);
    let mut topology = topology();
    start(&mut topology, link(24.0, 100));
    let received = flows(&topology, &loaded.datapath().name_of(Algorithm::Bbr), 1).remove(0);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    assert_eq!(flow.identity().algorithm, "bbr");
    let phase =
        |wanted| wait_for("the phase", || flow.sample().filter(|sample| sample.phase == wanted));
    phase(Phase::SlowStart);
    let steady = phase(Phase::Steady);
    let pacing = steady.pacing.expect("BBR paces").mbps();
    assert!((15.0..40.0).contains(&pacing), "{steady:?}");
    assert_eq!(flow.set("probe_rtt_interval", 1.0).unwrap(), 1.0);
    assert_eq!(flow.set("probe_rtt_cwnd", 5.0).unwrap(), 5.0);
    let probing = phase(Phase::ProbeRtt);
    assert!(probing.window <= probing.mss * 5, "{probing:?}");
    // The next probe may come up while the rate is looked at, and five packets per round trip are 2.9 Mbit/s.
    assert_eq!(flow.set("probe_rtt_interval", 60.0).unwrap(), 60.0);
    phase(Phase::Steady);
    wait_for("the rate after the probe", || {
        let before = received.load(std::sync::atomic::Ordering::Relaxed);
        thread::sleep(StdDuration::from_millis(500));
        let bytes = received.load(std::sync::atomic::Ordering::Relaxed) - before;
        (bytes > 1_000_000).then_some(bytes)
    });
}
