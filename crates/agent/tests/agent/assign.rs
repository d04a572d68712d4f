//! Rules with `assign` on a real kernel: servers that know nothing of Trimtab, and were there before the agent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use rustix::process::Signal;
use trimtab_agent::{Assigned, Standing, ask_why};

use crate::common::{self, A, Wire, need_kernel, wait_for};
use crate::setup::{Agent, Setup};

/// A rule about what listens in the namespace `a` of a wire.
fn rule(wire: &str, port: u16, more: &str) -> String {
    format!("[[rule]]\nname = \"web\"\nport = {port}\nnetns = \"/run/netns/tt-{wire}-a\"\n{more}\n")
}

/// A rule about what listens in the agent's own namespace.
pub(crate) fn rule_here(port: u16, more: &str) -> String {
    format!("[[rule]]\nname = \"web\"\nport = {port}\n{more}\n")
}

/// A server that was there before the agent: what listens, and the server's end of a connection.
pub(crate) fn server(wire: &Wire, port: u16) -> (TcpListener, TcpStream, TcpStream) {
    let listener = wire.spawn("a", move || TcpListener::bind((A, port)).unwrap()).join().unwrap();
    let client = wire
        .spawn("b", move || TcpStream::connect(SocketAddr::from((A, port))).unwrap())
        .join()
        .unwrap();
    let accepted = listener.accept().unwrap().0;
    (listener, accepted, client)
}

pub(crate) fn assigned(agent: &Agent) -> Option<Assigned> {
    agent.status()?.assigned.into_iter().next()
}

pub(crate) fn runs(socket: impl AsFd) -> String {
    tcp_congestion(socket).unwrap()
}

/// Starts an agent in the namespace `a` of a wire, and waits until it answers.
pub(crate) fn start_in(wire: &str, setup: &Setup) -> Agent {
    setup.started(spawn_in(wire, setup))
}

/// Starts an agent in the namespace `a` of a wire.
pub(crate) fn spawn_in(wire: &str, setup: &Setup) -> Agent {
    let namespace = std::fs::File::open(format!("/run/netns/tt-{wire}-a")).unwrap();
    let spawn = || {
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).unwrap();
        setup.spawn()
    };
    std::thread::scope(|scope| scope.spawn(spawn).join().unwrap())
}

/// Sends in the background until the client is gone.
pub(crate) fn send(mut stream: TcpStream) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || while stream.write_all(&[0; 1 << 14]).is_ok() {})
}

/// Reads in the background until the server is gone.
pub(crate) fn read(mut stream: TcpStream) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while stream.read(&mut buffer).is_ok_and(|length| length > 0) {}
    })
}

#[test]
fn servers_that_know_nothing_of_trimtab_are_steered_and_get_their_own_back() {
    need_kernel!();
    let setup = Setup::new("_u");
    let ours = setup.algorithm();
    let wire = Wire::new("given");
    wire.set_default("a", "reno");
    wire.limit("20mbit", 100_000);
    let (listener, accepted, client) = server(&wire, 7121);
    let steer = "assign = true\nqoe = \"download\"\nfactors = { R = 8 }\nsteer = \"mortise\"";
    setup.configure("", &rule_here(7121, steer));
    let mut agent = start_in("given", &setup);
    assert_eq!((runs(&listener), runs(&accepted)), (ours.clone(), ours.clone()));
    assert!(
        agent.log().contains(&format!("listens at {A}:7121 runs {ours} now")),
        "{}",
        agent.log()
    );
    let counted = assigned(&agent).unwrap();
    assert_eq!((counted.rule.as_str(), &counted.algorithm), ("web", &ours));
    assert_eq!((counted.listeners, counted.connections, counted.pending), (1, 1, 0), "{counted:?}");

    // The connection that was open is steered.
    let (sender, reader) = (send(accepted.try_clone().unwrap()), read(client.try_clone().unwrap()));
    let flow = wait_for("decisions", || agent.flow(7121).filter(|flow| flow.decisions > 2));
    assert_eq!((flow.standing, flow.former.as_deref()), (Standing::Steered, Some("reno")));
    let why = ask_why(&setup.socket(), "7121").unwrap().to_string();
    assert!(why.contains("the agent assigned its algorithm; otherwise it would run reno"), "{why}");
    client.shutdown(std::net::Shutdown::Both).unwrap();
    reader.join().unwrap();
    sender.join().unwrap();
    drop((accepted, client));

    // A new connection inherits it, and the next agent knows what this one gave.
    let address = SocketAddr::from((A, 7121));
    let second = wire.spawn("b", move || TcpStream::connect(address).unwrap()).join().unwrap();
    let accepted = listener.accept().unwrap().0;
    assert_eq!(runs(&accepted), ours);
    agent.signal(Signal::KILL);
    agent.wait();
    assert_eq!((runs(&listener), runs(&accepted)), (ours.clone(), ours.clone()));
    let agent = start_in("given", &setup);
    let port = second.local_addr().unwrap().port();
    let flow = agent.flows().into_iter().find(|f| f.remote.ends_with(&format!(":{port}"))).unwrap();
    assert_eq!(flow.former.as_deref(), Some("reno"), "{flow:?}");

    // The rule goes, and with it what it gave; nobody is blamed for that.
    setup.configure("", &rule_here(7121, "knobs = { delta = 0.2 }"));
    agent.signal(Signal::HUP);
    let back = || runs(&listener) == "reno" && runs(&accepted) == "reno";
    wait_for("what was before", || back().then_some(()));
    wait_for("its end in the datapath", || agent.flows().is_empty().then_some(()));
    setup.configure("", &rule_here(7121, "assign = true"));
    agent.signal(Signal::HUP);
    wait_for("it again", || (runs(&listener) == ours && runs(&accepted) == ours).then_some(()));
    assert!(!agent.log().contains("by hand"), "{}", agent.log());

    // And when all is taken out of the kernel.
    let mut agent = agent;
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    assert_eq!(runs(&accepted), ours);
    let config = setup.config();
    let unloaded = move || trimtab_agent::unload(Some(&config)).unwrap();
    let unloaded = wire.spawn("a", unloaded).join().unwrap();
    assert_eq!((unloaded.was_loaded, unloaded.given_back), (true, 2), "{unloaded}");
    assert_eq!(unloaded.elsewhere, Vec::<String>::new());
    assert_eq!((runs(&listener), runs(&accepted)), ("reno".to_owned(), "reno".to_owned()));

    // They did not choose what came back: the next agent gives them the algorithm again.
    let agent = start_in("given", &setup);
    wait_for("it once more", || (runs(&listener) == ours && runs(&accepted) == ours).then_some(()));
    assert_eq!(assigned(&agent).unwrap().by_hand, 0);
}

/// Mahimahi's shells: a rule for the host's port took what listens in a namespace that another rule names.
#[test]
fn what_listens_in_another_namespace_is_given_what_a_rule_about_it_says() {
    need_kernel!();
    let setup = Setup::new("_z");
    let ours = setup.algorithm();
    let wire = Wire::new("leak");
    wire.set_default("a", "reno");
    let (named, _accepted, _client) = server(&wire, 7125);
    let (other, accepted, _other_client) = server(&wire, 7126);
    let rules = rule("leak", 7125, "assign = true");
    setup.configure("", &(rules + &rule_here(7126, "assign = true").replace("web", "here")));
    let agent = setup.start();
    assert_eq!([runs(&named), runs(&other), runs(&accepted)], [&ours, "reno", "reno"]);
    let here = TcpListener::bind("127.0.0.1:7126").unwrap();
    wait_for("the rule here", || (runs(&here) == ours).then_some(()));
    assert_eq!(runs(&other), "reno", "{}", agent.log());
}

#[test]
fn what_somebody_chose_is_left_and_advice_changes_nothing() {
    need_kernel!();
    let setup = Setup::new("_v");
    let ours = setup.algorithm();
    let wire = Wire::new("chosen");
    wire.set_default("a", "reno");
    let (listener, accepted, _client) = server(&wire, 7122);
    let chooses = wire.spawn("a", || TcpListener::bind((A, 7123)).unwrap()).join().unwrap();
    set_tcp_congestion(&chooses, "cubic").unwrap();
    let rules = rule("chosen", 7122, "assign = true").replace("7122", "[7122, 7123]");

    setup.configure("mode = \"advise\"", &rules);
    let agent = setup.start();
    let counted = wait_for("advice", || assigned(&agent));
    assert_eq!((counted.pending, counted.by_hand), (2, 1), "{counted:?}");
    assert!(agent.status().unwrap().to_string().contains("; 2 sockets would get it; 1 is left"));
    assert!(agent.log().contains(&format!("runs reno, and would get {ours}")), "{}", agent.log());
    assert_eq!((runs(&listener), runs(&accepted)), ("reno".to_owned(), "reno".to_owned()));

    setup.configure("", &rules);
    agent.signal(Signal::HUP);
    wait_for("the algorithm", || {
        (runs(&listener) == ours && runs(&accepted) == ours).then_some(())
    });
    assert_eq!(runs(&chooses), "cubic");

    // Taken back by hand, it stays so over walks, and over an agent that is killed.
    for socket in [listener.try_clone().unwrap().into(), accepted.try_clone().unwrap().into()] {
        let socket: std::os::fd::OwnedFd = socket;
        set_tcp_congestion(&socket, "cubic").unwrap();
    }
    let counted = wait_for("the notice", || assigned(&agent).filter(|a| a.by_hand == 3));
    assert_eq!((counted.listeners, counted.connections, counted.pending), (0, 0, 0), "{counted:?}");
    let said = format!("listens at {A}:7122 was given cubic by hand, and is left to it");
    assert!(agent.log().contains(&said), "{}", agent.log());
    let mut agent = agent;
    agent.signal(Signal::KILL);
    agent.wait();
    let agent = setup.start();
    assert_eq!(assigned(&agent).unwrap().by_hand, 3);
    assert_eq!((runs(&listener), runs(&accepted)), ("cubic".to_owned(), "cubic".to_owned()));

    // A socket that listens since is found, too.
    let later = wire.spawn("a", || TcpListener::bind((A, 7123)).unwrap_err()).join().unwrap();
    assert_eq!(later.kind(), std::io::ErrorKind::AddrInUse);
    drop(chooses);
    let later = wire.spawn("a", || TcpListener::bind((A, 7123)).unwrap()).join().unwrap();
    wait_for("its algorithm", || (runs(&later) == ours).then_some(()));
}

#[test]
fn destinations_that_are_held_back_and_rules_about_some_destinations_are_minded() {
    need_kernel!();
    let setup = Setup::new("_w");
    let ours = setup.algorithm();
    let wire = Wire::new("some");
    wire.set_default("a", "reno");
    let (listener, accepted, _client) = server(&wire, 7124);
    // Not every connection of the socket that listens would get it.
    setup.configure("", &rule("some", 7124, "to = \"10.77.2.0/24\"\nassign = true"));
    let agent = setup.start();
    assert_eq!((runs(&listener), runs(&accepted)), ("reno".to_owned(), ours.clone()));
    // All of them, of whom all are held back: what listens gets it, and the connection stays as it is.
    drop(agent);
    trimtab_agent::unload(Some(&setup.config())).unwrap();
    assert_eq!(runs(&accepted), "reno");
    setup.configure("holdback = \"100%\"", &rule("some", 7124, "assign = true"));
    let _agent = setup.start();
    assert_eq!((runs(&listener), runs(&accepted)), (ours, "reno".to_owned()));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(runs(&accepted), "reno");
}
