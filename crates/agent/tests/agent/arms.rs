//! The three arms on the kernel: networks of clients download over links of their own, and what the
//! agent says of a rule is held against what the rule really brings.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trimtab_agent::{Arm, Comparison};
use trimtab_kernel::Datapath;
use trimtab_units::{Bytes, Rate};

use crate::access::{Access, Line, told};
use crate::assign::rule_here;
use crate::common::{self, need_kernel};
use crate::setup::{Agent, Setup};

/// Minutes of each run, which `./dev arms` gives; without it only who runs what is looked at.
const VARIABLE: &str = "TRIMTAB_ARMS";
const NETWORKS: usize = 20;
/// Clients of a network. Each downloads again and again, on a connection of its own each time.
const EACH: usize = 2;
const BYTES: usize = 1_000_000;
/// Of a comparison, in seconds.
const BLOCK_S: u64 = 25;
/// What is tried: the share of the window that a loss leaves. It keeps a link with a short queue
/// busier than CUBIC's own 0.7.
const BETA: f64 = 0.9;
/// By turns all networks run what is tried, and CUBIC's own; that tells what it is worth.
const PHASES: u32 = 6;

/// Networks whose queues hold six packets.
fn access(networks: usize) -> Access {
    let line = |network: usize| Line {
        // They differ, as networks do.
        rate: Rate::from_mbps(2.5 + (network % 5) as f64 / 4.0),
        rtt: trimtab_units::Duration::from_millis(90 + 10 * (network as u64 % 3)),
        queue: Bytes::new(9_000),
        loss: 0.0,
    };
    let lines: Vec<Line> = (0..networks).map(line).collect();
    Access::new(&lines)
}

/// Clients that download all the time, and how long each download took.
struct Downloads {
    took: Arc<Mutex<Vec<(Instant, Duration)>>>,
    over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Downloads {
    fn begin(access: &Access, port: u16) -> Self {
        let listener = access.listen(port);
        std::thread::spawn(move || serve(&listener));
        let took = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for (place, server) in access.networks() {
            for _ in 0..EACH {
                let file = place.as_fd().try_clone_to_owned().expect("a descriptor");
                let (took, over) = (Arc::clone(&took), Arc::clone(&over));
                clients.push(std::thread::spawn(move || {
                    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                        .expect("enter it");
                    while !over.load(Relaxed) {
                        let begun = Instant::now();
                        fetch(SocketAddr::from((server, port)));
                        took.lock().expect("no panic").push((begun, begun.elapsed()));
                    }
                }));
            }
        }
        Self { took, over, clients }
    }

    /// Of downloads that began and ended within this time: the mean of the logarithms of how many
    /// seconds they took, and their number.
    fn mean_log(&self, from: Instant, to: Instant) -> (f64, usize) {
        let took = self.took.lock().expect("no panic");
        let within = took.iter().filter(|(begun, took)| *begun >= from && *begun + *took <= to);
        let logs: Vec<f64> = within.map(|(_, took)| took.as_secs_f64().ln()).collect();
        (logs.iter().sum::<f64>() / logs.len() as f64, logs.len())
    }

    fn end(self) {
        self.over.store(true, Relaxed);
        self.clients.into_iter().for_each(|client| client.join().expect("a client"));
    }
}

fn serve(listener: &TcpListener) {
    let zeros: Arc<[u8]> = vec![0; BYTES].into();
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let zeros = Arc::clone(&zeros);
        std::thread::spawn(move || stream.write_all(&zeros));
    }
}

fn fetch(server: SocketAddr) {
    let mut stream = TcpStream::connect(server).expect("connect");
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    while bytes < BYTES {
        let length = stream.read(&mut buffer).expect("a connection that does not break");
        assert!(length > 0, "the server closed after {bytes} bytes");
        bytes += length;
    }
}

fn compare(pairs: u64) -> String {
    format!(
        "[compare]\nshare = \"50%\"\nblock = \"{BLOCK_S}s\"\nwash_out = \"5s\"\npairs = {pairs}\n"
    )
}

fn rule(port: u16, beta: f64) -> String {
    rule_here(port, &format!("assign = true\nalgorithm = \"cubic\"\nknobs = {{ beta = {beta} }}"))
}

/// What the agent says of the rule and the holdback when the comparison is over.
fn result(agent: &Agent, pairs: u64) -> Comparison {
    let begun = Instant::now();
    loop {
        std::thread::sleep(Duration::from_secs(5));
        let status = agent.status().expect("it answers");
        let found = |of: &&Comparison| of.control == Arm::Holdback && of.over;
        if let Some(of) = status.comparisons.iter().find(found) {
            status.comparisons.iter().for_each(|of| println!("{of}"));
            return of.clone();
        }
        let most = Duration::from_secs(2 * BLOCK_S * pairs + 60);
        assert!(begun.elapsed() < most, "{status}\n{}", agent.log());
    }
}

/// What the rule really brings, by the clients' clocks: all networks run the rule's knob and the
/// algorithm's own by turns, without any comparison.
fn truth(setup: &Setup, agent: &Agent, downloads: &Downloads, port: u16, phase: Duration) -> f64 {
    let mut sums = [(0.0, 0); 2];
    for at in 0..PHASES {
        // Each is as often first, so that what drifts is no part of it.
        let is_rule = [false, true, true, false][at as usize % 4];
        setup.configure("", &rule(port, if is_rule { BETA } else { 0.7 }));
        agent.signal(Signal::HUP);
        std::thread::sleep(Duration::from_secs(5));
        let from = Instant::now();
        std::thread::sleep(phase);
        let (log, count) = downloads.mean_log(from, Instant::now());
        let sum = &mut sums[usize::from(is_rule)];
        *sum = (sum.0 + log * count as f64, sum.1 + count);
    }
    let [without, with] = sums.map(|(sum, count)| sum / count as f64);
    (with - without).exp_m1()
}

fn run(suffix: &str, port: u16, beta: f64, minutes: u64) -> (Comparison, Option<f64>) {
    let setup = Setup::new(suffix);
    let mut access = access(NETWORKS);
    let pairs = (minutes * 60 / (2 * BLOCK_S)).max(4);
    setup.configure("", &format!("{}{}", compare(pairs), rule(port, beta)));
    let agent = setup.start_at(access.server());
    let downloads = Downloads::begin(&access, port);
    let found = result(&agent, pairs);
    let is_gain = beta != 0.7;
    let phase = Duration::from_secs(minutes * 3);
    let gain = is_gain.then(|| truth(&setup, &agent, &downloads, port, phase));
    downloads.end();
    told(access.stop());
    (found, gain)
}

/// A metric's change, and the ends of its interval.
fn change(of: &Comparison, metric: &str) -> (f64, f64, f64) {
    let found = of.metrics.iter().find(|of| of.metric == metric).and_then(|of| of.change);
    let change = found.expect("an estimate");
    (change.value, change.low, change.high)
}

fn minutes() -> Option<u64> {
    std::env::var(VARIABLE).ok().map(|given| given.parse().expect("a number of minutes"))
}

#[test]
fn a_gain_on_the_kernel_is_found_and_none_is_not() {
    need_kernel!();
    // Shorter than four pairs of blocks nothing is known, and that takes longer than a test may.
    let Some(minutes) = minutes() else { return };
    let zero = std::thread::spawn(move || run("_E", 7312, 0.7, minutes));
    let (gain, truth) = run("_D", 7311, BETA, minutes);
    let (zero, _) = zero.join().expect("the other run");
    let truth = truth.expect("it was measured");
    println!("measured apart: downloads take {:+.1}%", truth * 100.0);
    let (_, low, _) = change(&gain, "throughput_mbps");
    assert!(low > 0.0 && truth < 0.0, "{gain}; measured apart: {truth}");
    for metric in ["throughput_mbps", "completion_s"] {
        let (_, low, high) = change(&zero, metric);
        assert!(low <= 0.0 && 0.0 <= high, "{metric}: {zero}");
    }
}

/// The arm of each network, all of whose connections have the knob that it stands for.
fn arms(agent: &Agent, datapath: &Datapath) -> BTreeMap<String, Arm> {
    let mut arms = BTreeMap::new();
    // What has just begun may not be told yet.
    for flow in agent.flows().into_iter().filter(|flow| flow.age_s > 2.0 && flow.next.is_none()) {
        let open = datapath.flows().find(|open| open.identity().id.0 == flow.id);
        let Some(open) = open else { continue };
        let beta = open.knob("beta").ok();
        let has_rule = beta.is_some_and(|beta| (beta - BETA).abs() < 0.01);
        assert_eq!(has_rule, flow.arm == Arm::Treated, "{flow:?} with {beta:?}");
        let network = flow.remote.rsplit_once(':').expect("a port").0.to_owned();
        let before = arms.insert(network, flow.arm);
        assert!(before.is_none_or(|arm| arm == flow.arm), "{flow:?} is next to {before:?}");
    }
    arms
}

#[test]
fn networks_run_what_their_arm_says_and_change_sides() {
    const NETWORKS: usize = 10;
    need_kernel!();
    let setup = Setup::new("_F");
    let port = 7313;
    let mut access = access(NETWORKS);
    setup.configure("", &format!("{}{}", compare(4), rule(port, BETA)));
    let agent = setup.start_at(access.server());
    let downloads = Downloads::begin(&access, port);
    let datapath = Datapath::load(&setup.options()).expect("what the agent has loaded");
    // The first block begins within five seconds, and the second one 25 s later.
    let look = |after: Instant| {
        std::thread::sleep(Duration::from_secs(15).saturating_sub(after.elapsed()));
        arms(&agent, &datapath)
    };
    let begun = Instant::now();
    let first = look(begun);
    std::thread::sleep(Duration::from_secs(BLOCK_S - 15));
    let second = look(begun + Duration::from_secs(BLOCK_S));
    assert!(first.len() > NETWORKS / 2, "{first:?}");
    for (network, arm) in &first {
        let Some(then) = second.get(network) else { continue };
        let treated = [arm, then].map(|arm| *arm == Arm::Treated);
        assert_ne!(treated[0], treated[1], "{network}: {arm:?}, then {then:?}");
    }
    downloads.end();
    told(access.stop());
}
