//! Rules with a cgroup and `assign`: containers, whose network namespaces no file names, are reached
//! as their sockets begin.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::net::sockopt::set_tcp_congestion;
use rustix::process::Signal;

use crate::assign::{assigned, runs};
use crate::common::{self, A, Wire, need_kernel, wait_for};
use crate::policy::Cgroup;
use crate::setup::Setup;

const CGROUP_VARIABLE: &str = "TRIMTAB_TEST_CONTAINER_CGROUP";
const NETNS_VARIABLE: &str = "TRIMTAB_TEST_CONTAINER_NETNS";
const PORT: u16 = 7141;

/// Not a test by itself: a process in a cgroup and a network namespace of its own. For each line that
/// it gets it tells what its sockets run: a server that was there, a connection of it; and a server
/// that it starts now, both ends of a connection to it, and a server that chose CUBIC itself.
#[test]
fn container() {
    let Some(cgroup) = std::env::var_os(CGROUP_VARIABLE) else { return };
    let procs = PathBuf::from(cgroup).join("cgroup.procs");
    std::fs::write(procs, std::process::id().to_string()).expect("join the cgroup");
    let netns = std::env::var_os(NETNS_VARIABLE).expect("a namespace");
    let netns = std::fs::File::open(netns).expect("a namespace");
    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(netns.as_fd(), kind).expect("enter it");
    let connect = |listener: &TcpListener| {
        let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
        (listener.accept().expect("accept").0, client)
    };
    let first = TcpListener::bind((A, PORT)).expect("listen");
    let (accepted, _client) = connect(&first);
    for line in std::io::stdin().lines() {
        let port: u16 = line.expect("a line").parse().expect("a port");
        let server = TcpListener::bind((A, port)).expect("listen");
        let listens = runs(&server);
        let (one, other) = connect(&server);
        let (late, _client) = connect(&first);
        set_tcp_congestion(&server, "cubic").expect("CUBIC");
        let (chosen, _client) = connect(&server);
        let told = [&accepted, &late, &one, &other, &chosen].map(runs).join(" ");
        println!("runs {} {listens} {told}", runs(&first));
    }
}

struct Container {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    orders: ChildStdin,
    port: u16,
}

/// The algorithms of: the server that was there, the one that was started, the connection that was
/// there, one that was accepted now, both ends of one to the server that was started, and one of a
/// server whose program chose.
type Told = [String; 7];

impl Container {
    fn start(cgroup: &Cgroup, wire: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "hook::container", "--nocapture"])
            .env(CGROUP_VARIABLE, cgroup.0.join("inner"))
            .env(NETNS_VARIABLE, format!("/run/netns/tt-{wire}-a"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start it");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let orders = child.stdin.take().expect("piped");
        Self { child, lines, orders, port: PORT }
    }

    fn ask(&mut self) -> Told {
        self.port += 1;
        writeln!(self.orders, "{}", self.port).expect("it lives");
        let mut told = self.lines.by_ref().map_while(Result::ok);
        let told = told.find_map(|line| Some(line.split_once("runs ")?.1.to_owned()));
        let told: Vec<_> = told.expect("it lives").split(' ').map(str::to_owned).collect();
        told.try_into().expect("seven names")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_container_is_reached_without_the_file_of_its_namespace() {
    need_kernel!();
    let name = format!("trimtab-test-pods-{}", std::process::id());
    let Some(cgroup) = Cgroup::new(&name) else {
        eprintln!("skipped: no cgroup can be made here");
        return;
    };
    let setup = Setup::new("_8");
    let (ours, reno, cubic) = (setup.algorithm(), "reno".to_owned(), "cubic".to_owned());
    let wire = Wire::new("pods");
    wire.set_default("a", "reno");
    let mut container = Container::start(&cgroup, "pods");
    let all = |name: &String| [name; 6].map(String::clone);
    let with_choice = |told: [String; 6]| -> Told {
        let told = told.into_iter().chain([cubic.clone()]).collect::<Vec<_>>();
        told.try_into().expect("seven names")
    };
    assert_eq!(container.ask(), with_choice(all(&reno)));

    // At once, what was there and what comes.
    let rule = format!("[[rule]]\nname = \"web\"\ncgroup = \"/{name}\"\nassign = true\n");
    let elsewhere = "[[rule]]\nname = \"other\"\nport = \"1-65535\"\nassign = true\n\
                     algorithm = \"cubic\"\n";
    setup.configure("", &format!("{rule}{elsewhere}"));
    let mut agent = setup.start();
    assert_eq!(container.ask(), with_choice(all(&ours)), "{}", agent.log());
    let counted = wait_for("the count", || assigned(&agent).filter(|a| a.listeners > 0));
    assert_eq!((counted.rule.as_str(), counted.listeners), ("web", 1), "{counted:?}");
    // Another rule is about the agent's own namespace, and the cgroup's is not about it.
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(runs(&here), setup.options().name_of(trimtab_kernel::Algorithm::Cubic));

    // Advice changes nothing of what comes, and what was given comes back.
    setup.configure("mode = \"advise\"", &rule);
    agent.signal(Signal::HUP);
    let advised = || {
        let [_, listens, .., one, other, _] = container.ask();
        (listens == "reno" && one == "reno" && other == "reno").then_some(())
    };
    wait_for("advice", advised);
    setup.configure("", &rule);
    agent.signal(Signal::HUP);
    let given = |container: &mut Container| {
        let told = container.ask();
        (told == with_choice(all(&ours))).then_some(())
    };
    wait_for("the algorithm again", || given(&mut container));

    // Without an agent, too.
    agent.signal(Signal::KILL);
    agent.wait();
    assert_eq!(container.ask(), with_choice(all(&ours)));
    let mut agent = setup.start();
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    assert_eq!(container.ask(), with_choice(all(&ours)));

    // Until it is unloaded, from elsewhere.
    let unloaded = trimtab_agent::unload(Some(&setup.config())).unwrap();
    assert!(unloaded.given_back >= 2, "{unloaded}");
    assert_eq!(container.ask(), with_choice(all(&reno)));
}

/// A rule that goes takes back what it gave in namespaces that no file names.
#[test]
fn a_rule_that_goes_takes_back_what_it_gave_to_containers() {
    need_kernel!();
    let name = format!("trimtab-test-gone-{}", std::process::id());
    let Some(cgroup) = Cgroup::new(&name) else {
        eprintln!("skipped: no cgroup can be made here");
        return;
    };
    let setup = Setup::new("_9");
    let wire = Wire::new("gone");
    wire.set_default("a", "reno");
    // Some destinations alone, of which the client's end is none.
    let to = "to = \"10.77.1.0/24\"\nassign = true\n";
    setup.configure("", &format!("[[rule]]\ncgroup = \"/{name}\"\n{to}"));
    let agent = setup.start();
    let mut container = Container::start(&cgroup, "gone");
    let [_, listens, accepted, .., one, other, _] = container.ask();
    // What listens has connections to others, too.
    assert_eq!((listens.as_str(), &accepted), ("reno", &setup.algorithm()));
    assert_eq!((&one, &other), (&setup.algorithm(), &setup.algorithm()));
    setup.configure("", "");
    agent.signal(Signal::HUP);
    wait_for("what was before", || (container.ask()[2] == "reno").then_some(()));
    // Nobody is there any more; and another agent's rule about a port of the host leaves it alone.
    let outside = wire.spawn("a", || TcpListener::bind(SocketAddr::from((A, 7140))).unwrap());
    assert_eq!(runs(outside.join().unwrap()), "reno");
}
