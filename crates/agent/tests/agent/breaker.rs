//! Rules that do harm to many connections at once, over links that the connections of a network
//! share: the breaker lets go of all of them, and they run their former algorithm again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use trimtab_agent::Standing;
use trimtab_kernel::Algorithm;
use trimtab_units::{Bytes, Rate};

use crate::access::{Access, Bulk, Line, told};
use crate::assign::runs;
use crate::common::{self, need_kernel, wait_for};
use crate::engine::Site;
use crate::model::Policy;
use crate::setup::{Agent, Setup};

/// Networks of the whole test, e.g. 84 for 1,008 connections; without it there are fewer.
const VARIABLE: &str = "TRIMTAB_HARM";
const NETWORKS: usize = 22;
/// Connections of a network that are busy at once.
const BUSY: usize = 3;
/// Connections of a network in the whole test. They are busy by turns, as a server's are.
const EACH: usize = 12;
/// Harm is stopped within this, from when the agent has the rule.
const WITHIN: Duration = Duration::from_secs(30);
/// The same on a machine that runs other tests meanwhile.
const WITHIN_BUSY: Duration = Duration::from_secs(45);
/// The connections run so long by a rule that does no harm: their queues at the start, which all
/// arms have, are gone then.
const BEFORE: Duration = Duration::from_secs(20);
/// What the connections ran before. Every network namespace has it, and Trimtab has not, so both
/// control arms run the rule's algorithm with its defaults.
const FORMER: &str = "reno";
/// Half of the networks' time is the control arms', so that both have some among few networks.
const COMPARE: &str = "[compare]\nshare = \"50%\"\nblock = \"60s\"\n";

/// Networks whose queues hold 60 packets, some 500 ms, and so many connections of each.
fn access() -> (Access, usize) {
    let given = std::env::var(VARIABLE).ok();
    let networks = given.as_ref().map_or(NETWORKS, |given| given.parse().expect("a number"));
    let line = |network: usize| Line {
        // They differ, as networks do.
        rate: Rate::from_mbps(1.4 + (network % 5) as f64 / 20.0),
        rtt: trimtab_units::Duration::from_millis(90 + 10 * (network as u64 % 3)),
        queue: Bytes::new(90_000),
        loss: 0.0,
    };
    let lines: Vec<Line> = (0..networks).map(line).collect();
    (Access::new(&lines), if given.is_some() { EACH } else { BUSY })
}

/// Lets a rule take over connections that are open without one, and has them send. Then the rule
/// does what it should not, and its breaker lets go of them.
fn is_stopped(
    setup: &Setup,
    (mut access, each): (Access, usize),
    port: u16,
    (first, always, harm): (&str, &str, &str),
) {
    access.set_default(FORMER);
    setup.configure("", &format!("{COMPARE}{first}"));
    let agent = setup.start_at(access.server());
    let bulk = Bulk::open(&access, port, (each, BUSY));
    let count = bulk.sockets.len();
    let former = || bulk.sockets.iter().filter(|socket| runs(socket) == FORMER).count();
    assert_eq!(former(), count);

    let rule = format!("[[rule]]\nname = \"web\"\nport = {port}\nassign = true\n{always}\n");
    let follow = |harm: &str| {
        setup.configure("", &format!("{COMPARE}{first}{rule}{harm}\n"));
        agent.signal(Signal::HUP);
    };
    follow("");
    wait_for("the rule", || (former() == 0).then_some(()));
    bulk.go();
    std::thread::sleep(BEFORE);
    follow(harm);
    let begun = Instant::now();
    let tripped = || agent.log().lines().find(|l| l.contains("did harm")).map(str::to_owned);
    let line = loop {
        std::thread::sleep(Duration::from_millis(250));
        if let Some(line) = tripped() {
            break line;
        }
        let took = begun.elapsed();
        assert!(took < 2 * WITHIN, "it is not stopped: {}\n{}", standings(&agent), agent.log());
    };
    let took = begun.elapsed();
    // The sockets follow within a second.
    while former() < count {
        assert!(begun.elapsed() < 2 * WITHIN, "{} of {count} are back", former());
        std::thread::sleep(Duration::from_millis(50));
    }
    let all_back = begun.elapsed();
    println!(
        "{count} connections: stopped after {:.1} s, all run {FORMER} again after {:.1} s\n{line}",
        took.as_secs_f64(),
        all_back.as_secs_f64()
    );
    let within = if std::env::var_os(VARIABLE).is_some() { WITHIN } else { WITHIN_BUSY };
    assert!(all_back <= within, "after {:.1} s", all_back.as_secs_f64());
    assert!(line.contains("`trimtab agent resume rule:web` arms it again"), "{line}");
    assert!(line.contains(" arm ("), "it has no control arm: {line}");

    // It stays so, and one line is enough.
    std::thread::sleep(Duration::from_secs(5));
    let flows = agent.flows();
    assert!(flows.iter().all(|flow| flow.standing == Standing::Tripped), "{}", standings(&agent));
    assert_eq!(former(), count);
    assert_eq!(agent.log().matches("did harm").count(), 1, "{}", agent.log());
    let status = agent.status().expect("it answers");
    assert_eq!(status.trips, BTreeMap::from([("web".to_owned(), 1)]));
    drop(bulk);
    told(access.stop());
}

/// How many connections stand in which way, what they lose and how long they queue, for a test
/// that fails.
fn standings(agent: &Agent) -> String {
    let mut all: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for flow in agent.flows() {
        let key = format!("{:?} {:?} {} {:?}", flow.arm, flow.standing, flow.algorithm, flow.delta);
        let seen = flow.loss.zip(flow.queueing_ms);
        all.entry(key).or_default().extend(seen);
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let lines = all.into_iter().map(|(key, seen)| {
        let (loss, queueing): (Vec<f64>, Vec<f64>) = seen.iter().copied().unzip();
        let (loss, queueing) = (100.0 * mean(&loss), mean(&queueing));
        format!("{key}: {}, {loss:.1}% lost, {queueing:.0} ms queueing\n", seen.len())
    });
    lines.collect()
}

/// Each connection keeps 18 packets waiting (Copa §3: 1.25/δ): 54 in all, or 430 ms.
#[test]
fn a_knob_that_fills_the_queues_of_many_connections_is_stopped() {
    need_kernel!();
    let setup = Setup::new("_A");
    is_stopped(&setup, access(), 7301, ("", "", "knobs = { delta = 0.07 }"));
}

/// The policy prefers CUBIC, which fills whatever queue there is.
#[test]
fn a_policy_that_chooses_what_fills_the_queues_is_stopped() {
    need_kernel!();
    let setup = Setup::new("_B");
    let candidates: &[(&str, f32, &[f32])] = &[("cubic", 2.0, &[0.0]), ("copa", 1.0, &[0.0])];
    let policy =
        Policy { features: &["rtt_min"], candidates, range: (-3.0, 3.0), period_ms: 12_000 };
    std::fs::write(setup.folder().join("policy.safetensors"), policy.file()).expect("write it");
    let more = "turns = [\"copa\", \"cubic\"]\nselect = \"floo\"\nevery = \"500ms\"\n\
                model = \"policy.safetensors\"\nsafe = \"copa\"";
    is_stopped(&setup, access(), 7302, ("", "", more));
}

/// An operator of the engine wrote `[fixed]` knobs that are deaf to delay and losses.
#[test]
fn knobs_of_a_fleet_that_fill_the_queues_are_stopped() {
    need_kernel!();
    let setup = Setup::new("_C");
    let access = access();
    let site = Site::at(0, "900ms", "");
    let service = site.folder.path().join("services/tv.toml");
    let text = "name = \"tv\"\ninterval = \"3s\"\nreward = \"mean(throughput)\"\n\
                [knobs]\nbeta = { min = 5, max = 6 }\n\
                [safe]\nbeta = 5\n[fixed]\ngamma = 1\ndelta = 0.99\nloss_filter = 0.1\nbrakes = 0\n\
                startup_exit_latency = 100\n";
    std::fs::write(&service, text).expect("write it");
    let (site, engine) = access.0.server().run(move || {
        let engine = site.start();
        (site, engine)
    });
    std::fs::write(setup.folder().join("edge.token"), &site.edge).expect("write it");
    let fleet = format!(
        "[fleet]\nengine = {:?}\ntoken_file = \"edge.token\"\nfolder = \"edge\"\n",
        engine.url
    );
    let algorithm = format!("algorithm = \"{}\"", Algorithm::Vivace.name());
    is_stopped(&setup, access, 7303, (&fleet, &algorithm, "steer = \"fleet\"\nservice = \"tv\""));
}
