//! One algorithm takes over from another on a running connection.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_cc::Phase;
use trimtab_cc::migrate::Switch;
use trimtab_emu::Topology;
use trimtab_kernel::{Algorithm, Flow};

use super::common::{self, Loaded, need_kernel, wait_for};
use super::support::{PORT, flows, link, start, topology};

const LINK_MBPS: f64 = 24.0;
/// One and a half times what the path holds.
const BUFFER: u32 = 60;
/// Between switches.
const TURN: Duration = Duration::from_secs(1);
/// What takes over in turn, beginning with Copa: every algorithm from every other.
const ORDER: [Algorithm; 20] = [
    Algorithm::Cubic,
    Algorithm::Bbr,
    Algorithm::Copa,
    Algorithm::Bbr,
    Algorithm::Cubic,
    Algorithm::Copa,
    Algorithm::Vivace,
    Algorithm::Cubic,
    Algorithm::Vivace,
    Algorithm::Bbr,
    Algorithm::Vivace,
    Algorithm::Copa,
    Algorithm::Bbr3,
    Algorithm::Cubic,
    Algorithm::Bbr3,
    Algorithm::Bbr,
    Algorithm::Bbr3,
    Algorithm::Vivace,
    Algorithm::Bbr3,
    Algorithm::Copa,
];
/// Throughput is looked at in pieces of this.
const PIECE: Duration = Duration::from_millis(100);
/// So many of them until BBR has emptied the queue (ProbeRTT lasts 200 ms and a round trip) and is
/// back at its rate. It does so when it begins, or when the minimum round-trip time is due again.
const PROBE_RTT: usize = 5;
/// And so many of any other's: a busy machine stands still for a tenth of a second at times.
const STALLED: usize = 1;

/// A flow that has left slow start, on a link.
fn running(loaded: &Loaded, topology: &Topology) -> (Flow, Arc<AtomicU64>) {
    // The one before, on a link that is gone, has a slot until it gives up.
    let ours = |flow: &Flow| flow.identity().local.port() == PORT;
    let newest = || loaded.datapath().flows().filter(ours).max_by_key(Flow::id);
    let known = newest().map(|flow| flow.id());
    let received = flows(topology, loaded.datapath().name(), 1).remove(0);
    let flow = wait_for("the slot", || newest().filter(|flow| Some(flow.id()) != known));
    thread::sleep(Duration::from_secs(1));
    (flow, received)
}

/// What the switches of one flow did.
#[derive(Debug, Default)]
struct Seen {
    /// The least of any piece, in Mbit/s, but for the lowest [`PROBE_RTT`] of each turn of BBR
    /// and BBRv3, and [`STALLED`] of the others.
    least_mbps: f64,
    mean_mbps: f64,
    /// Packets lost in all turns.
    lost: u64,
    /// What the slowest switch took.
    took: Duration,
}

/// Lets the algorithms take turns.
fn turns(loaded: &Loaded, how: Switch) -> Seen {
    let mut topology = topology();
    start(&mut topology, link(LINK_MBPS, BUFFER));
    let (flow, received) = running(loaded, &topology);
    let id = flow.id();
    let opened = loaded.datapath().stats().opened;
    let before = flow.sample().expect("open");
    let mut seen = Seen { least_mbps: f64::MAX, ..Seen::default() };
    for (turn, to) in ORDER.into_iter().enumerate() {
        // What was set the first time, and turned later, is as it was left.
        let settings: &[_] = if to == Algorithm::Copa { &[("delta", 0.2)] } else { &[] };
        flow.switch(to, (turn < 3).then_some(settings), how).unwrap();
        wait_for("the switch", || {
            let switching = flow.switching().expect("open");
            assert_eq!(switching.refused, None);
            (switching.pending.is_none()).then_some(())
        });
        let switching = flow.switching().expect("open");
        assert_eq!((flow.algorithm(), switching.switches), (to, turn as u32 + 1));
        if turn == 2 {
            flow.set("delta", 0.1).unwrap();
        }
        seen.took = seen.took.max(Duration::from_nanos(switching.took.as_nanos()));
        let mut pieces = Vec::new();
        for _ in 0..TURN.as_millis() / PIECE.as_millis() {
            let bytes = received.load(Relaxed);
            thread::sleep(PIECE);
            let mbps = (received.load(Relaxed) - bytes) as f64 * 8e-6 / PIECE.as_secs_f64();
            seen.mean_mbps += mbps / (ORDER.len() * 10) as f64;
            pieces.push(mbps);
        }
        pieces.sort_by(f64::total_cmp);
        let probes = matches!(to, Algorithm::Bbr | Algorithm::Bbr3);
        let least = pieces[if probes { PROBE_RTT } else { STALLED }];
        println!("{how:?} to {to:?}: {pieces:.1?}");
        seen.least_mbps = seen.least_mbps.min(least);
    }
    let after = flow.sample().expect("open");
    seen.lost = (after.totals.lost - before.totals.lost).get() / after.mss.get();
    // It is the same connection throughout, in the same slot, and nobody was told that it ended.
    assert_eq!((flow.id(), loaded.datapath().stats().opened), (id, opened));
    assert_eq!((after.delta, flow.knob("delta").ok()), (0.1, Some(0.1)), "{after:?}");
    seen
}

/// The state survives: a full switch loses nothing and goes on at the rate, where a part switch
/// begins with slow start on top of a full queue.
#[test]
fn another_algorithm_takes_over_a_running_connection_without_a_seam() {
    need_kernel!();
    let loaded = Loaded::new("_s", 64);
    let full = turns(&loaded, Switch::Full);
    let part = turns(&loaded, Switch::Part);
    println!("full {full:?}\npart {part:?}");
    assert!(full.least_mbps > 0.5 * LINK_MBPS && full.mean_mbps > 0.85 * LINK_MBPS, "{full:?}");
    assert!(part.lost > 2 * full.lost + 30, "full {full:?}, part {part:?}");
    // Some microseconds, most of them the kernel's own; see docs/reference/datapath-cost.md.
    assert!(full.took < Duration::from_micros(200), "{full:?}");
}

/// Small answers over one connection never fill the window, so nothing ever converges. The new
/// algorithm then starts from the beginning, when nothing is in flight.
#[test]
fn where_nothing_is_known_another_algorithm_starts_from_the_beginning() {
    need_kernel!();
    let loaded = Loaded::new("_n", 8);
    let mut topology = topology();
    start(&mut topology, link(LINK_MBPS, BUFFER));
    let address = (topology.server_address(), PORT);
    let name = loaded.datapath().name_of(Algorithm::Cubic);
    let listener = topology.server().run(move || {
        let listener = TcpListener::bind(address).unwrap();
        set_tcp_congestion(&listener, &name).unwrap();
        listener
    });
    let mut client = topology.client().run(move || TcpStream::connect(address).unwrap());
    let (mut server, _) = listener.accept().unwrap();
    let mut answer = |client: &mut TcpStream| {
        server.write_all(&[1; 3000]).unwrap();
        client.read_exact(&mut [0; 3000]).unwrap();
        // Its acknowledgement has to arrive before the next packet leaves.
        thread::sleep(Duration::from_millis(80));
    };
    answer(&mut client);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    flow.switch(Algorithm::Copa, None, Switch::Full).unwrap();
    answer(&mut client);
    answer(&mut client);
    let switching = flow.switching().unwrap();
    assert_eq!((flow.algorithm(), switching.pending), (Algorithm::Copa, None), "{switching:?}");
    let sample = flow.sample().unwrap();
    assert_eq!((sample.phase, sample.delta), (Phase::SlowStart, 0.5), "{sample:?}");
    // What the program then chooses for itself ends that: the slot is free, as with any other algorithm.
    set_tcp_congestion(&server, "reno").unwrap();
    assert!(!flow.is_open() && flow.switch(Algorithm::Cubic, None, Switch::Full).is_err());
}

/// A request can be taken back by asking for what runs, and another takes the place of one that waits.
#[test]
fn a_request_that_waits_can_be_taken_back() {
    need_kernel!();
    let loaded = Loaded::new("_q", 8);
    let mut topology = topology();
    start(&mut topology, link(LINK_MBPS, 2000));
    let received = flows(&topology, &loaded.datapath().name_of(Algorithm::Cubic), 1).remove(0);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    // Slow start goes on for a while in a long buffer.
    flow.set("hystart", 0.0).unwrap();
    flow.switch(Algorithm::Copa, None, Switch::Full).unwrap();
    assert_eq!(flow.switching().unwrap().pending, Some(Algorithm::Copa.neutral()));
    flow.switch(Algorithm::Cubic, Some(&[("hystart", 0.0)]), Switch::Full).unwrap();
    wait_for("the answer", || flow.switching().unwrap().pending.is_none().then_some(()));
    thread::sleep(Duration::from_millis(300));
    assert_eq!((flow.algorithm(), flow.switching().unwrap().switches), (Algorithm::Cubic, 0));
    let error = flow.switch(Algorithm::Cubic, Some(&[("delta", 0.1)]), Switch::Full).unwrap_err();
    assert!(error.to_string().starts_with("no such knob"), "{error}");
    assert!(received.load(Relaxed) > 0);
}
