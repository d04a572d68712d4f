//! Connections begin in the arm of their network: those of the arm `former` with the copy of the
//! algorithm that the host had, from their first packet on.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trimtab_agent::Arm;
use trimtab_kernel::Algorithm;

use crate::assign::{rule_here, runs, start_in};
use crate::common::{self, Wire, need_kernel, wait_for};
use crate::setup::{Agent, Setup};

const PORT: u16 = 7341;
const NETWORKS: u8 = 16;

/// Both ends of a connection from a network of the loopback interface.
struct Open {
    accepted: TcpStream,
    _client: std::os::fd::OwnedFd,
    /// What it ran as soon as it was accepted.
    began: String,
}

/// A connection from each network, by the client's address and port.
fn connect(wire: &str, listener: &TcpListener) -> BTreeMap<String, Open> {
    let namespace = std::fs::File::open(format!("/run/netns/tt-{wire}-a")).unwrap();
    let all = || {
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(namespace.as_fd(), kind).unwrap();
        let one = |network: u8| {
            let client = Ipv4Addr::new(127, 0, network + 1, 9);
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
            let socket = socket.unwrap();
            rustix::net::bind(&socket, &SocketAddr::from((client, 0))).unwrap();
            let server = SocketAddr::from(([127, 0, 0, 1], PORT));
            rustix::net::connect(&socket, &server).unwrap();
            let (accepted, from) = listener.accept().unwrap();
            let began = runs(&accepted);
            (from.to_string(), Open { accepted, _client: socket, began })
        };
        (0..NETWORKS).map(one).collect()
    };
    std::thread::scope(|scope| scope.spawn(all).join().unwrap())
}

/// The arm of each connection, as the agent has it.
fn arms(agent: &Agent) -> BTreeMap<String, Arm> {
    agent.flows().into_iter().map(|flow| (flow.remote, flow.arm)).collect()
}

#[test]
fn connections_of_the_arm_former_begin_with_the_copy() {
    need_kernel!();
    let setup = Setup::new("_V");
    // A network namespace takes as its default what the machine allows to everyone.
    let allowed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let allowed = allowed.unwrap();
    let is_allowed = |name: &&str| allowed.split_whitespace().any(|other| other == *name);
    let Some(host) = ["cubic", "bbr"].into_iter().find(is_allowed) else {
        eprintln!("skipped: neither cubic nor bbr is in net.ipv4.tcp_allowed_congestion_control");
        return;
    };
    let copied = Algorithm::from_name(host).unwrap();
    let (ours, copy) = (setup.algorithm(), setup.options().name_of(copied));
    let wire = Wire::new("former");
    wire.set_default("a", host);
    let up = |file: std::fs::File| {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
        assert!(up.unwrap().success());
        TcpListener::bind(("127.0.0.1", PORT)).unwrap()
    };
    let file = std::fs::File::open("/run/netns/tt-former-a").unwrap();
    let listener = std::thread::scope(|scope| scope.spawn(|| up(file)).join().unwrap());
    let compare = "[compare]\nshare = \"50%\"\nblock = \"20s\"\nwash_out = \"5s\"\npairs = 4\n";
    setup.configure("", &format!("{compare}{}", rule_here(PORT, "assign = true")));
    let agent = start_in("former", &setup);
    wait_for("the rule's algorithm", || (runs(&listener) == ours).then_some(()));
    // The first block begins within five seconds.
    std::thread::sleep(Duration::from_secs(6));

    let named = |arm: Arm| if arm == Arm::Former { &copy } else { &ours };
    let told = |open: &BTreeMap<String, Open>| {
        wait_for("the agent to know them", || {
            let known = arms(&agent);
            open.keys().all(|who| known.contains_key(who)).then_some(known)
        })
    };
    let first = connect("former", &listener);
    let before = told(&first);
    for (who, open) in &first {
        assert_eq!(&open.began, named(before[who]), "{who} in {:?}", before[who]);
    }
    let formers =
        |open: &BTreeMap<String, Open>| open.values().filter(|open| open.began == copy).count();
    assert!((1..usize::from(NETWORKS)).contains(&formers(&first)), "{before:?}");

    // Two walks later they are what they were, and none has been moved.
    let walks = Duration::from_secs(5);
    std::thread::sleep(walks);
    for (who, open) in &first {
        assert_eq!(runs(&open.accepted), open.began, "{who}: {}", agent.log());
    }
    let flows = agent.flows();
    let given = flows.iter().filter(|flow| flow.remote.starts_with("127.0."));
    assert!(given.clone().all(|flow| flow.former.as_deref() == Some(host)), "{flows:?}");
    assert!(given.clone().all(|flow| flow.decisions == 0), "nothing was decided: {flows:?}");

    // The other block of the pair: both arms change sides, open connections when they send next.
    std::thread::sleep(Duration::from_secs(20) - walks);
    let second = connect("former", &listener);
    let after = told(&second);
    for (who, open) in &second {
        assert_eq!(&open.began, named(after[who]), "{who} in {:?}", after[who]);
    }
    let changed = wait_for("open connections to change sides", || {
        let now = arms(&agent);
        for open in first.values() {
            // An acknowledgement is what carries a change out.
            std::io::Write::write_all(&mut &open.accepted, b"x").unwrap();
        }
        let follows = |(who, open): (&String, &Open)| runs(&open.accepted) == *named(now[who]);
        first.iter().all(follows).then_some(now)
    });
    for (who, open) in &first {
        let is_former = [before[who], changed[who]].map(|arm| arm == Arm::Former);
        let network = |who: &str| who.rsplit_once(':').map(|(network, _)| network.to_owned());
        let other = second.keys().find(|other| network(other) == network(who)).unwrap();
        assert_eq!(changed[who], after[other], "a network has one side: {who}");
        if open.began == copy {
            assert_eq!(is_former, [true, false], "{who}");
        }
    }
    assert!(formers(&second) > 0, "{after:?}");
    std::thread::sleep(walks);
    for (who, open) in first.iter().chain(&second) {
        let arm = arms(&agent)[who];
        assert_eq!(&runs(&open.accepted), named(arm), "{who} in {arm:?}: {}", agent.log());
    }
    assert!(!agent.log().contains("by hand"), "{}", agent.log());
}
