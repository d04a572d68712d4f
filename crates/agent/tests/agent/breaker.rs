//! Rules that do harm to many connections at once, over links that the connections of a network
//! share: the breaker lets go of all of them, and they run their former algorithm again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use trimtab_kernel::Algorithm;
use trimtab_units::{Bytes, Rate};

use crate::access::{Access, Line, told};
use crate::assign::runs;
use crate::bulk::{Bulk, Load};
use crate::common::{self, need_kernel, wait_for};
use crate::engine::Site;
use crate::model::Policy;
use crate::setup::{Agent, Setup};

/// Networks of the whole test, which `./dev arms --harm` gives. Without it there is a short one.
const VARIABLE: &str = "TRIMTAB_HARM";
/// What the connections ran before. Every network namespace has it, and Trimtab has not, so both
/// control arms run the rule's algorithm with its defaults.
const FORMER: &str = "reno";
/// Half of the networks' time is the control arms', so that both have some among few networks.
const COMPARE: &str = "[compare]\nshare = \"50%\"\nblock = \"60s\"\n";

/// How large a test is.
struct Form {
    lines: Vec<Line>,
    load: Load,
    /// The connections run so long by a rule that does no harm: their queues at the start, which
    /// all arms have, are gone then.
    before: Duration,
    /// Harm is stopped within this, from when the agent has the rule.
    within: Duration,
    is_whole: bool,
}

impl Form {
    /// The whole one where the variable gives the networks: 12 connections of each, busy by turns,
    /// behind round trips of 10 to 200 ms. The queues of a third hold 30 packets, those of the others
    /// 120. Two of eleven networks have a rival: one connection of the kernel's BBR or CUBIC.
    fn new() -> Self {
        let Ok(given) = std::env::var(VARIABLE) else { return Self::short() };
        let networks: usize = given.parse().expect("a number of networks");
        let line = |network: usize| Line {
            rate: Rate::from_mbps(1.2 + (network % 4) as f64 / 10.0),
            rtt: trimtab_units::Duration::from_millis([10, 40, 90, 140, 200][network % 5]),
            queue: Bytes::new([180_000, 45_000, 180_000][network % 3]),
            loss: 0.0,
        };
        let rival = |network: usize| match network % 11 {
            4 => Some("bbr"),
            9 => Some("cubic"),
            _ => None,
        };
        Self {
            lines: (0..networks).map(line).collect(),
            load: Load {
                each: 12,
                busy: 3,
                pause: Duration::from_secs(1),
                rivals: (0..networks).map(rival).collect(),
            },
            before: Duration::from_secs(20),
            within: Duration::from_secs(30),
            is_whole: true,
        }
    }

    /// Few networks that are alike but for their rates and round trips, on a machine that runs other
    /// tests meanwhile. Their queues hold 60 packets, some 500 ms.
    fn short() -> Self {
        const NETWORKS: usize = 22;
        let line = |network: usize| Line {
            rate: Rate::from_mbps(1.4 + (network % 5) as f64 / 20.0),
            rtt: trimtab_units::Duration::from_millis(90 + 10 * (network as u64 % 3)),
            queue: Bytes::new(90_000),
            loss: 0.0,
        };
        Self {
            lines: (0..NETWORKS).map(line).collect(),
            load: Load { each: 3, busy: 3, pause: Duration::ZERO, rivals: vec![None; NETWORKS] },
            before: Duration::from_secs(10),
            within: Duration::from_secs(45),
            is_whole: false,
        }
    }
}

/// A rule over connections that are open without one and send, and what it does to them.
struct Trial {
    agent: Agent,
    access: Access,
    bulk: Bulk,
    form: Form,
}

impl Trial {
    /// Lets a rule without harm take over the connections, and has them send.
    fn begin(
        setup: &Setup,
        (form, access): (Form, Access),
        (port, first, always): (u16, &str, &str),
    ) -> Self {
        access.set_default(FORMER);
        setup.configure("", &format!("{COMPARE}{first}"));
        let agent = setup.start_at(access.server());
        let bulk = Bulk::open(&access, port, &form.load);
        let trial = Self { agent, access, bulk, form };
        assert_eq!(trial.former(), trial.count());
        trial.follow(setup, (port, first, always));
        wait_for("the rule", || (trial.former() == 0).then_some(()));
        trial.bulk.go();
        std::thread::sleep(trial.form.before);
        assert_eq!(trial.line(), None, "a rule that does no harm");
        trial
    }

    fn follow(&self, setup: &Setup, (port, first, more): (u16, &str, &str)) {
        let rule = format!("[[rule]]\nname = \"web\"\nport = {port}\nassign = true\n{more}\n");
        setup.configure("", &format!("{COMPARE}{first}{rule}"));
        self.agent.signal(Signal::HUP);
    }

    fn count(&self) -> usize {
        self.bulk.sockets.len()
    }

    /// How many connections run their former algorithm.
    fn former(&self) -> usize {
        self.bulk.sockets.iter().filter(|socket| runs(socket) == FORMER).count()
    }

    /// The line that says that the breaker tripped.
    fn line(&self) -> Option<String> {
        self.agent.log().lines().find(|line| line.contains("did harm")).map(str::to_owned)
    }

    /// How many connections' clients have read more than at that time.
    fn have_sent(&self, since: &[u64]) -> usize {
        self.bulk.read().iter().zip(since).filter(|(now, then)| now > then).count()
    }

    fn end(mut self) {
        drop(self.bulk);
        let links = self.access.stop();
        told(links);
        assert!(!self.form.is_whole || links.is_good(), "{links}");
    }
}

/// A rule takes over connections, and does what it should not: its breaker lets go of all of them.
fn is_stopped(
    setup: &Setup,
    (form, access): (Form, Access),
    port: u16,
    (first, always, harm): (&str, &str, &str),
) {
    let trial = Trial::begin(setup, (form, access), (port, first, always));
    let (count, within) = (trial.count(), trial.form.within);
    let read = trial.bulk.read();
    let load = Machine::now();
    trial.follow(setup, (port, first, &format!("{always}\n{harm}")));
    let begun = Instant::now();
    let line = loop {
        std::thread::sleep(Duration::from_millis(250));
        if let Some(line) = trial.line() {
            break line;
        }
        let is_over = begun.elapsed() > 2 * within;
        assert!(!is_over, "it is not stopped: {}", standings(&trial.agent));
    };
    let took = begun.elapsed();
    // The sockets follow within a second.
    while trial.former() < count {
        assert!(begun.elapsed() < 2 * within, "{} of {count} are back", trial.former());
        std::thread::sleep(Duration::from_millis(50));
    }
    let all_back = begun.elapsed();
    println!(
        "{count} connections, of which {} sent: stopped after {:.1} s, all run {FORMER} again after \
         {:.1} s\n{line}\n{}",
        trial.have_sent(&read),
        took.as_secs_f64(),
        all_back.as_secs_f64(),
        load.since()
    );
    assert!(all_back <= within, "after {:.1} s", all_back.as_secs_f64());
    assert!(line.contains("`trimtab agent resume rule:web` arms it again"), "{line}");
    assert!(line.contains(" arm ("), "it has no control arm: {line}");

    // It stays so, and one line is enough. What runs its former algorithm is no flow of the agent's.
    std::thread::sleep(Duration::from_secs(3));
    let agent = &trial.agent;
    assert_eq!((agent.flows().len(), trial.former()), (0, count), "{}", standings(agent));
    assert_eq!(agent.log().matches("did harm").count(), 1, "{}", agent.log());
    let status = agent.status().expect("it answers");
    assert_eq!(status.trips, BTreeMap::from([("web".to_owned(), 1)]));
    trial.end();
}

/// What the machine and this process have computed, in seconds of a core.
struct Machine {
    at: Instant,
    all: f64,
    here: f64,
}

impl Machine {
    fn now() -> Self {
        let read = |path| std::fs::read_to_string(path).expect("a file of the kernel");
        // user_hz is 100 on every architecture that Linux shows it to.
        let sum = |fields: &[&str]| {
            fields.iter().map(|field| field.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
        };
        let stat = read("/proc/stat");
        let fields: Vec<&str> =
            stat.lines().next().expect("all cores").split_whitespace().collect();
        // user, nice, system; irq, softirq.
        let all = sum(&fields[1..4]) + sum(&fields[6..8]);
        let own = read("/proc/self/stat");
        let fields: Vec<&str> = own.rsplit_once(") ").expect("a name").1.split(' ').collect();
        Self { at: Instant::now(), all, here: sum(&fields[11..13]) }
    }

    /// Shares of a core since then.
    fn since(&self) -> String {
        let now = Self::now();
        let share = |then: f64, now: f64| 100.0 * (now - then) / self.at.elapsed().as_secs_f64();
        let (all, here) = (share(self.all, now.all), share(self.here, now.here));
        format!("CPU: {all:.0}% of a core, of which links and traffic {here:.0}%")
    }
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
    let form = Form::new();
    let access = Access::new(&form.lines);
    is_stopped(&setup, (form, access), 7301, ("", "", "knobs = { delta = 0.07 }"));
}

/// The policy prefers CUBIC, which fills whatever queue there is.
#[test]
fn a_policy_that_chooses_what_fills_the_queues_is_stopped() {
    need_kernel!();
    let form = Form::new();
    if !form.is_whole {
        return;
    }
    let setup = Setup::new("_B");
    let candidates: &[(&str, f32, &[f32])] = &[("cubic", 2.0, &[0.0]), ("copa", 1.0, &[0.0])];
    let policy =
        Policy { features: &["rtt_min"], candidates, range: (-3.0, 3.0), period_ms: 12_000 };
    std::fs::write(setup.folder().join("policy.safetensors"), policy.file()).expect("write it");
    let more = "turns = [\"copa\", \"cubic\"]\nselect = \"floo\"\nevery = \"500ms\"\n\
                model = \"policy.safetensors\"\nsafe = \"copa\"";
    let access = Access::new(&form.lines);
    is_stopped(&setup, (form, access), 7311, ("", "", more));
}

/// An operator of the engine wrote `[fixed]` knobs that are deaf to delay and losses.
#[test]
fn knobs_of_a_fleet_that_fill_the_queues_are_stopped() {
    need_kernel!();
    let form = Form::new();
    if !form.is_whole {
        return;
    }
    let setup = Setup::new("_C");
    let access = Access::new(&form.lines);
    let site = Site::at(0, "900ms", "");
    let service = site.folder.path().join("services/tv.toml");
    let text = "name = \"tv\"\ninterval = \"3s\"\nreward = \"mean(throughput)\"\n\
                [knobs]\nbeta = { min = 5, max = 6 }\n\
                [safe]\nbeta = 5\n[fixed]\ngamma = 1\ndelta = 0.99\nloss_filter = 0.1\nbrakes = 0\n\
                startup_exit_latency = 100\n";
    std::fs::write(&service, text).expect("write it");
    let (site, engine) = access.server().run(move || {
        let engine = site.start();
        (site, engine)
    });
    std::fs::write(setup.folder().join("edge.token"), &site.edge).expect("write it");
    let fleet = format!(
        "[fleet]\nengine = {:?}\ntoken_file = \"edge.token\"\nfolder = \"edge\"\n",
        engine.url
    );
    let algorithm = format!("algorithm = \"{}\"", Algorithm::Vivace.name());
    let harm = "steer = \"fleet\"\nservice = \"tv\"";
    is_stopped(&setup, (form, access), 7321, (&fleet, &algorithm, harm));
}

/// A queue somewhat longer than in the control arms is within the limits, on the same networks.
#[test]
fn a_knob_that_does_no_harm_is_left_alone() {
    need_kernel!();
    let form = Form::new();
    if !form.is_whole {
        return;
    }
    let setup = Setup::new("_M");
    let access = Access::new(&form.lines);
    let trial = Trial::begin(&setup, (form, access), (7331, "", ""));
    let (count, load, read) = (trial.count(), Machine::now(), trial.bulk.read());
    trial.follow(&setup, (7331, "", "knobs = { delta = 0.4 }"));
    std::thread::sleep(trial.form.within);
    let sent = trial.have_sent(&read);
    let seconds = trial.form.within.as_secs();
    println!(
        "{count} connections, of which {sent} sent: not stopped within {seconds} s\n{}\n{}",
        standings(&trial.agent),
        load.since()
    );
    assert_eq!((sent, trial.line()), (count, None));
    assert_eq!(trial.former(), 0, "the rule has them all");
    trial.end();
}
