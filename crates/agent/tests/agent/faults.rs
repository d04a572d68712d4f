//! What must not happen, whatever happens to the agent, its connections and its kernel.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use trimtab_agent::Error;

use crate::assign::start_in;
use crate::common::{self, A, Wire, need_kernel, wait_for};
use crate::setup::{CONFIG_VARIABLE, Setup};

const RULE: &str =
    "[[rule]]\nname = \"web\"\nqoe = \"download\"\nfactors = { R = 8 }\nsteer = \"mortise\"\n";

/// Short connections one after the other, each with an answer of 3 kB.
fn flood(wire: &Wire, algorithm: &str, port: u16, connections: usize) {
    let algorithm = algorithm.to_owned();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let server = wire.spawn("a", move || {
        let listener = TcpListener::bind((A, port)).unwrap();
        rustix::net::sockopt::set_tcp_congestion(&listener, &algorithm).unwrap();
        ready.send(()).unwrap();
        for _ in 0..connections {
            listener.accept().unwrap().0.write_all(&[7; 3000]).unwrap();
        }
    });
    is_ready.recv().unwrap();
    let client = wire.spawn("b", move || {
        let mut answer = Vec::new();
        for _ in 0..connections {
            answer.clear();
            TcpStream::connect((A, port)).unwrap().read_to_end(&mut answer).unwrap();
            assert_eq!(answer.len(), 3000);
        }
    });
    client.join().unwrap();
    server.join().unwrap();
}

#[test]
fn ten_thousand_short_connections_pass_and_nothing_of_them_stays() {
    need_kernel!();
    const CONNECTIONS: usize = 10_000;
    let setup = Setup::new("_k");
    setup.configure("", RULE);
    let wire = Wire::new("flood");
    let agent = start_in("flood", &setup);
    flood(&wire, &setup.algorithm(), 7121, CONNECTIONS);
    let status =
        wait_for("an agent without connections", || agent.status().filter(|s| s.open == 0));
    // Some have gone again before it could look at them.
    assert!((1..=CONNECTIONS as u64).contains(&status.rules[0].tally.opened), "{status}");
    assert!(agent.flows().is_empty() && status.troubles.is_empty(), "{status}");
    drop(agent);
    let datapath = trimtab_kernel::Datapath::load(&setup.options()).unwrap();
    let stats = datapath.stats();
    assert_eq!((stats.opened, stats.slotless), (CONNECTIONS as u64, 0), "{stats:?}");
    assert_eq!((stats.live, datapath.flows().count()), (0, 0), "{stats:?}");
}

/// Connections come and go while the agent is killed over and over.
#[test]
fn killed_again_and_again_it_leaves_no_connection_behind() {
    need_kernel!();
    let setup = Setup::new("_l");
    setup.configure("", RULE);
    let wire = Wire::new("kills");
    let mut agent = start_in("kills", &setup);
    wire.limit("40mbit", 200_000);
    let server = wire.serve(&setup.algorithm(), 7122, 15_000_000, 1);
    let transfer = wire.fetch(7122, Duration::from_secs(60));
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        flood(&wire, &setup.algorithm(), 7123, 20);
        agent.signal(Signal::KILL);
        agent.wait();
        flood(&wire, &setup.algorithm(), 7124, 20);
        agent = start_in("kills", &setup);
    }
    assert_eq!(transfer.join().unwrap(), 15_000_000, "no kill disturbs a transfer");
    server.join().unwrap();
    wait_for("an agent without connections", || agent.status().filter(|s| s.open == 0));
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    let datapath = trimtab_kernel::Datapath::load(&setup.options()).unwrap();
    assert_eq!((datapath.stats().live, datapath.flows().count()), (0, 0));
}

/// A kernel that describes no types: hidden from the agent in a mount namespace of its own.
#[test]
fn a_kernel_without_btf_is_refused_with_what_to_boot() {
    need_kernel!();
    let setup = Setup::new("_m");
    setup.configure("", "");
    let agent = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg("mount -t tmpfs none /sys/kernel/btf && exec \"$0\" --exact agent_in_a_process_of_its_own --nocapture")
        .arg(agent)
        .env(CONFIG_VARIABLE, setup.config())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("this kernel has no BTF") && said.contains("CONFIG_DEBUG_INFO_BTF=y"),
        "{said}"
    );
    assert!(matches!(trimtab_agent::ask_status(&setup.socket()), Err(Error::NoAgent { .. })));
}

/// `ip netns exec` makes a mount namespace without the bpf file system, and what is kept in one of
/// its own is found nowhere else.
#[test]
fn an_agent_whose_pins_nobody_else_sees_says_so() {
    need_kernel!();
    let setup = Setup::new("_n");
    setup.configure("", "");
    let wire = Wire::new("hidden");
    let mut child = Command::new("ip")
        .args(["netns", "exec", "tt-hidden-a"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "agent_in_a_process_of_its_own", "--nocapture"])
        .env(CONFIG_VARIABLE, setup.config())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the agent", || trimtab_agent::ask_status(&setup.socket()).ok());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(said.contains("finds it nowhere else") && said.contains("nsenter --net"), "{said}");
    drop(wire);
}
