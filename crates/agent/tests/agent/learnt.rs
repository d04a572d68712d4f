//! A learnt policy on connections of a real kernel: it chooses by what the kernel reports, and the
//! fallback runs where it has no answer.

use std::time::Duration;

use trimtab_agent::{Arm, FlowView, Standing, Status, ask_why};
use trimtab_kernel::Algorithm;

use crate::assign::start_in;
use crate::common::{self, Wire, need_kernel, wait_for};
use crate::model::Policy;
use crate::setup::{Agent, Setup};

/// Every number of the state, of which a policy that learnt in the simulator knows all.
const FEATURES: [&str; 21] = [
    "thpt_max",
    "rtt_min",
    "loss_rate",
    "rtt_rate",
    "rtt_var",
    "cca_cubic",
    "cca_bbr",
    "cca_copa",
    "cca_westwood",
    "cwnd",
    "goodput",
    "unsent_size",
    "qws",
    "qws_gradient",
    "bytes_interval",
    "busy",
    "rtt_max_rate",
    "loss_rtt_rate",
    "thpt_spread",
    "responses",
    "response_size",
];

/// Writes a configuration in which `file` chooses for the connections on this port among `turns`.
fn configure(setup: &Setup, port: u16, turns: &[&str], file: Option<&[u8]>) {
    if let Some(file) = file {
        std::fs::write(setup.folder().join("policy.safetensors"), file).unwrap();
    }
    let more = format!(
        "turns = {turns:?}\nevery = \"500ms\"\nselect = \"floo\"\nmodel = \"policy.safetensors\"\nsafe = \"copa\""
    );
    setup.configure("", &format!("[[rule]]\nname = \"web\"\nport = {port}\n{more}\n"));
}

fn unanswered(status: &Status) -> u64 {
    let of_web = status.rules.iter().filter(|rule| rule.rule == "web" && rule.arm == Arm::Treated);
    of_web.map(|rule| rule.tally.unanswered).sum()
}

/// Waits until a connection to this port runs another algorithm than at first.
fn wait_for_switch(agent: &Agent, port: u16, to: &str) {
    // The kernel counts a switch after the other algorithm has begun.
    let has_switched = |flow: &FlowView| flow.algorithm == to && flow.switches > 0;
    let flow = wait_for(to, || agent.flow(port).filter(has_switched));
    assert_eq!((flow.standing, flow.switches), (Standing::Selecting, 1), "{flow:?}");
}

/// It prefers Copa once the queue that CUBIC keeps in the buffer shows.
#[test]
fn a_policy_chooses_by_what_the_kernel_reports() {
    need_kernel!();
    let setup = Setup::new("_l");
    let wire = Wire::new("learnt");
    wire.limit("20mbit", 100_000);
    let queue = FEATURES.iter().position(|name| *name == "rtt_max_rate").unwrap();
    let mut weights = [0.0; 21];
    weights[queue] = 1.0;
    let candidates: &[(&str, f32, &[f32])] =
        &[("cubic", 0.2, &[0.0; 21]), ("bbr", 9.0, &[0.0; 21]), ("copa", 0.0, &weights)];
    // The base round-trip time is some 50 us here, so the queue is hundreds of them. A number that
    // is not finite is in no range.
    let policy = Policy { features: &FEATURES, candidates, range: (-3.0, 3.0), period_ms: 12_000 };
    configure(&setup, 7151, &["cubic", "copa"], Some(&policy.file()));
    let agent = start_in("learnt", &setup);
    let _server = wire.serve(&setup.options().name_of(Algorithm::Cubic), 7151, u64::MAX, 1);
    let client = wire.fetch(7151, Duration::from_secs(4));
    wait_for_switch(&agent, 7151, "copa");
    let why = ask_why(&setup.socket(), "7151").unwrap().to_string();
    assert!(why.contains("cubic -> copa: the learnt policy prefers it"), "{why}");
    // The window of 10 s still knows of the queue.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(500));
        let stays = agent.flow(7151).unwrap();
        assert_eq!((stays.algorithm.as_str(), stays.switches), ("copa", 1), "{stays:?}");
    }
    assert_eq!(unanswered(&agent.status().unwrap()), 0, "{}", agent.log());
    assert!(agent.log().contains("never chooses bbr here"), "{}", agent.log());
    assert!(client.join().unwrap() > 3_000_000, "{why}");
}

/// One without a hint of the application, whose socket tells what waits in it.
#[test]
fn a_policy_goes_by_what_waits_in_the_socket_and_chooses_bbr() {
    need_kernel!();
    let setup = Setup::new("_w");
    let wire = Wire::new("waits");
    wire.limit("20mbit", 100_000);
    let waits = FEATURES.iter().position(|name| *name == "unsent_size").unwrap();
    let mut weights = [0.0; 21];
    weights[waits] = 1.0;
    // More than 3 kB, since the number is the logarithm of one and the packets over that of 100 MB in packets.
    let candidates: &[(&str, f32, &[f32])] =
        &[("cubic", 0.1, &[0.0; 21]), ("bbr", 0.0, &weights), ("copa", -9.0, &[0.0; 21])];
    let policy = Policy { features: &FEATURES, candidates, range: (-3.0, 3.0), period_ms: 12_000 };
    configure(&setup, 7157, &["cubic", "bbr", "copa"], Some(&policy.file()));
    let agent = start_in("waits", &setup);
    let _server = wire.serve(&setup.options().name_of(Algorithm::Cubic), 7157, u64::MAX, 1);
    let client = wire.fetch(7157, Duration::from_secs(3));
    wait_for_switch(&agent, 7157, "bbr");
    let why = ask_why(&setup.socket(), "7157").unwrap().to_string();
    assert!(why.contains("cubic -> bbr: the learnt policy prefers it"), "{why}");
    assert!(client.join().unwrap() > 3_000_000, "{why}");
    assert_eq!(unanswered(&agent.status().unwrap()), 0, "{}", agent.log());
}

/// The policy that ships with the project has answers for what it sees here, among the three of its four that can run.
#[test]
fn the_policy_of_the_project_has_answers_here() {
    need_kernel!();
    let setup = Setup::new("_p");
    let wire = Wire::new("shipped");
    wire.limit("20mbit", 100_000);
    let file = include_bytes!("../../../../models/floo-counterfactual.safetensors");
    configure(&setup, 7152, &["cubic", "bbr", "copa"], Some(file));
    let agent = start_in("shipped", &setup);
    let _server = wire.serve(&setup.options().name_of(Algorithm::Cubic), 7152, u64::MAX, 1);
    let client = wire.fetch(7152, Duration::from_secs(3));
    let flow = wait_for("the connection", || agent.flow(7152));
    assert_eq!(flow.standing, Standing::Selecting);
    assert!(client.join().unwrap() > 3_000_000);
    let status = agent.status().unwrap();
    assert_eq!((unanswered(&status), status.troubles.len()), (0, 0), "{status:?}");
    assert!(!agent.log().contains("never chooses bbr"), "{}", agent.log());
}

/// Three files that cannot be used, and a policy that learnt nothing of such paths.
#[test]
fn what_is_safe_runs_without_an_answer() {
    need_kernel!();
    let candidates: &[(&str, f32, &[f32])] = &[("cubic", 1.0, &[0.0]), ("copa", 0.0, &[0.0])];
    let features = &["rtt_min"];
    let policy = Policy { features, candidates, range: (5.0, 6.0), period_ms: 12_000 };
    let unknown = policy.file();
    let mut damaged = unknown.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let (of, to) = (br#""version":"1""#, br#""version":"9""#);
    let at = unknown.windows(of.len()).position(|w| w == of).unwrap();
    let mut other = unknown.clone();
    other[at..at + to.len()].copy_from_slice(to);
    let setup = Setup::new("_n");
    let wire = Wire::new("nothing");
    wire.limit("20mbit", 100_000);
    let mut told = 0;
    for (port, file, said) in [
        (7153, None, "cannot be read"),
        (7154, Some(damaged), "its file is damaged"),
        (7155, Some(other), "its file is of another version"),
        (7156, Some(unknown), "rtt_min is outside the range"),
    ] {
        configure(&setup, port, &["cubic", "copa"], file.as_deref());
        let agent = start_in("nothing", &setup);
        let _server = wire.serve(&setup.options().name_of(Algorithm::Cubic), port, u64::MAX, 1);
        let client = wire.fetch(port, Duration::from_millis(2500));
        wait_for_switch(&agent, port, "copa");
        let why = ask_why(&setup.socket(), &port.to_string()).unwrap().to_string();
        assert!(why.contains("cubic -> copa: the learnt policy declined"), "{why}");
        assert!(why.contains(said), "{why}");
        client.join().unwrap();
        let status = agent.status().unwrap();
        let json = serde_json::to_value(&status).unwrap();
        assert!(unanswered(&status) >= 2 && json["rules"][0]["unanswered"].is_u64(), "{json}");
        let in_force = status.troubles.iter().filter(|t| t.contains("copa runs in its place"));
        assert_eq!(in_force.count(), usize::from(port != 7156), "{status:?}");
        // All agents of a setup write one log, and each says it once.
        told += 1;
        let log = agent.log();
        let lines = log.matches("copa runs in its place").count()
            + log.matches("the policy declined").count();
        assert_eq!(lines, told, "{log}");
    }
}
