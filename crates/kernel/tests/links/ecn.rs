//! Congestion marks (ECN): who answers them on the kernel, and by how much.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration as StdDuration;

use trimtab_emu::Topology;
use trimtab_kernel::Algorithm;
use trimtab_net::{LinkConfig, MarkConfig};
use trimtab_units::Bytes;

use crate::common::{self, Loaded, need_kernel};
use crate::muses::shipped;
use crate::support::{flows, link, start, topology};

/// Slow start is over by then.
const WARM: StdDuration = StdDuration::from_secs(1);
const TIME: StdDuration = StdDuration::from_secs(6);

/// Flows of one algorithm over one link.
struct Flows {
    received: Vec<Arc<AtomicU64>>,
    _topology: Topology,
}

impl Flows {
    /// Starts them, with a client that asks for ECN, and waits until slow start is over.
    fn start(link: &LinkConfig, algorithm: &str, count: usize) -> Self {
        let mut topology = topology();
        // The server's 2, the default, accepts it.
        topology.client().set_sysctl("net.ipv4.tcp_ecn", "1").expect("the client's namespace");
        start(&mut topology, link.clone());
        let received = flows(&topology, algorithm, count);
        thread::sleep(WARM);
        Self { received, _topology: topology }
    }

    fn bytes(&self) -> Vec<u64> {
        self.received.iter().map(|counter| counter.load(Relaxed)).collect()
    }

    /// Mbit/s of each over the next [`TIME`].
    fn goodputs(&self) -> Vec<f64> {
        let before = self.bytes();
        thread::sleep(TIME);
        let mbps =
            |(after, before): (u64, u64)| (after - before) as f64 * 8e-6 / TIME.as_secs_f64();
        self.bytes().into_iter().zip(before).map(mbps).collect()
    }
}

/// Plain CUBIC, and each of ours; at the same time, each over a link of its own.
fn each(loaded: &Loaded, link: &LinkConfig) -> (f64, Vec<(Algorithm, f64)>) {
    const OURS: [Algorithm; 6] = [
        Algorithm::Cubic,
        Algorithm::Copa,
        Algorithm::Vivace,
        Algorithm::Muses,
        Algorithm::Bbr3,
        Algorithm::Bbr,
    ];
    let names = OURS.map(|algorithm| loaded.datapath().name_of(algorithm));
    thread::scope(|scope| {
        let run = |name: String| scope.spawn(move || Flows::start(link, &name, 1).goodputs()[0]);
        let plain = run("cubic".to_owned());
        let ours = names.map(run);
        let got = ours.map(|run| run.join().expect("it ran"));
        (plain.join().expect("it ran"), OURS.into_iter().zip(got).collect())
    })
}

/// On a path of 20 Mbit/s and 20 ms, whatever share of the packets is marked, each has at most 1.3
/// times what plain CUBIC gets. BBR does not answer, as Linux's own does not: `trimtab doctor`
/// reports it.
#[test]
fn random_marks_leave_nobody_much_more_than_cubic() {
    need_kernel!();
    let loaded = Loaded::new("_n", 32);
    shipped(&loaded);
    for share in [0.03, 0.1, 0.3] {
        let link = link(20.0, 100).mark(MarkConfig::Random(share));
        let (cubic, ours) = each(&loaded, &link);
        println!("{share} marked: cubic {cubic:.2} Mbit/s, {ours:.2?}");
        for (algorithm, mbps) in ours {
            let times = mbps / cubic;
            if algorithm == Algorithm::Bbr {
                assert!(times > 2.0, "{algorithm:?}, {share} marked: {times:.2}: does it answer?");
            } else {
                assert!(times <= 1.3, "{algorithm:?}, {share} marked: {times:.2} times CUBIC");
                assert!(times > 0.3, "{algorithm:?}, {share} marked: {times:.2} times CUBIC");
            }
        }
    }
}

/// A queue that marks from half a bandwidth-delay product on: the link stays in use, and two of a
/// kind share it. Vivace is unequal for tens of seconds at times: each of its trials lasts a round
/// trip, and a machine that stalls spoils many.
#[test]
fn a_threshold_leaves_the_link_in_use() {
    need_kernel!();
    let loaded = Loaded::new("_m", 32);
    shipped(&loaded);
    let link = link(20.0, 100).mark(MarkConfig::Above(Bytes::new(17 * 1500)));
    for algorithm in
        [Algorithm::Cubic, Algorithm::Copa, Algorithm::Vivace, Algorithm::Muses, Algorithm::Bbr3]
    {
        let flows = Flows::start(&link, &loaded.datapath().name_of(algorithm), 2);
        let shared = |_| {
            let mbps = flows.goodputs();
            println!("{algorithm:?}: {mbps:.2?}");
            mbps.iter().sum::<f64>() > 13.0 && mbps.iter().all(|one| *one > 2.0)
        };
        let windows = if algorithm == Algorithm::Vivace { 8 } else { 1 };
        assert!((0..windows).any(shared), "{algorithm:?} left the link or one of its kind starved");
    }
}
