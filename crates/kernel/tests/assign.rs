//! Sockets that are given an algorithm, on a real kernel; skipped, with the reason, where it or the rights are missing.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use trimtab_fleet::Interval;
use trimtab_fleet::experiment::{Schedule, ThreeArms, ThreeArmsSpec};
use trimtab_kernel::{
    Algorithm, Arms, Assigner, Choice, Choices, Doctor, Gave, Gives, Health, Order, Outcome, Socket,
};

use common::{A, Loaded, Wire, cgroups, need_kernel, wait_for};

fn order(socket: &Socket, to: &str) -> Order {
    Order { cookie: socket.cookie, from: socket.algorithm.clone(), to: to.to_owned() }
}

fn runs(socket: impl AsFd) -> String {
    tcp_congestion(socket).expect("TCP_CONGESTION")
}

#[test]
fn sockets_that_listen_and_open_connections_get_an_algorithm_and_what_is_accepted_inherits_it() {
    need_kernel!();
    let walk = Doctor::default().examine().into_iter().find(|f| f.subject.contains("iter/tcp"));
    assert_eq!(walk.map(|finding| finding.health), Some(Health::Good));
    let loaded = Loaded::new("_A", 64);
    let wire = Wire::new("assign");
    wire.set_default("a", "reno");
    let (name, folder) = (loaded.options.name(), loaded.options.folder.clone());
    wire.spawn("a", move || {
        let listener = TcpListener::bind((A, 7301)).unwrap();
        let chooses = TcpListener::bind((A, 7302)).unwrap();
        set_tcp_congestion(&chooses, "cubic").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let mut open = listener.accept().unwrap().0;
        assert!(!Assigner::has_given(&folder));
        let assigner = Assigner::load(&folder).unwrap();

        // The walk tells of this namespace alone: both that listen, and the two ends of the connection.
        let before = assigner.sockets().unwrap();
        assert_eq!(before.len(), 4, "{before:?}");
        let find = |sockets: &[Socket], port: u16, listens: bool| {
            let it =
                sockets.iter().find(|s| s.local.port() == port && s.remote.is_none() == listens);
            it.cloned().unwrap()
        };
        assert!(find(&before, 7302, true).chosen);
        let (listens, connected) = (find(&before, 7301, true), find(&before, 7301, false));
        for socket in [&listens, &connected] {
            assert_eq!((socket.algorithm.as_str(), socket.chosen), ("reno", false));
            assert_eq!((&socket.given, socket.outcome), (&None, None));
        }
        assert_eq!(connected.remote, Some(client.local_addr().unwrap()));
        assert_eq!(connected.cookie, rustix::net::sockopt::socket_cookie(&open).unwrap());

        // What runs something else by then is left alone, and what the kernel does not have is refused.
        let wrong = Order { from: "bbr".to_owned(), ..order(&connected, &name) };
        let after = assigner.carry_out(&[wrong, order(&listens, "nobody")]).unwrap();
        assert_eq!(find(&after, 7301, false).outcome, None);
        assert!(matches!(find(&after, 7301, true).outcome, Some(Outcome::Refused(_))));
        assert_eq!((runs(&open), runs(&listener)), ("reno".to_owned(), "reno".to_owned()));

        let after =
            assigner.carry_out(&[order(&listens, &name), order(&connected, &name)]).unwrap();
        for socket in [find(&after, 7301, true), find(&after, 7301, false)] {
            assert_eq!((socket.outcome, &socket.algorithm), (Some(Outcome::Done), &name));
            assert_eq!(socket.given.unwrap().former, "reno");
        }
        assert_eq!(
            (runs(&open), runs(&listener), runs(&client)),
            (name.clone(), name.clone(), "reno".to_owned())
        );
        open.write_all(b"still there").unwrap();
        (&client).read_exact(&mut [0; 11]).unwrap();

        // Another process knows it, also of what was accepted since.
        drop(assigner);
        assert!(Assigner::has_given(&folder));
        let assigner = Assigner::load(&folder).unwrap();
        let client = TcpStream::connect(address).unwrap();
        let accepted = listener.accept().unwrap().0;
        assert_eq!(runs(&accepted), name);
        let port = client.local_addr().unwrap().port();
        let sockets = assigner.sockets().unwrap();
        let inherits = sockets.iter().find(|s| s.remote.is_some_and(|r| r.port() == port)).unwrap();
        assert_eq!(inherits.given.as_ref().unwrap().former, "reno", "{inherits:?}");
        assert!(assigner.sockets().unwrap().iter().all(|s| s.outcome.is_none()), "no order stays");

        // A choice by hand shows, and back is possible.
        set_tcp_congestion(&accepted, "cubic").unwrap();
        let sockets = assigner.sockets().unwrap();
        let chosen = sockets.iter().find(|s| s.cookie == inherits.cookie).unwrap();
        assert_eq!((chosen.algorithm.as_str(), &chosen.given), ("cubic", &inherits.given));
        let listens = find(&sockets, 7301, true);
        let back = assigner.carry_out(&[order(&listens, "reno")]).unwrap();
        let given = find(&back, 7301, true).given.unwrap();
        assert_eq!((given.algorithm.as_str(), given.former.as_str()), ("reno", "reno"));
        assert_eq!(runs(&listener), "reno");
    })
    .join()
    .unwrap();
    wait_for("the end of the connections", || (loaded.datapath().stats().live == 0).then_some(()));
}

/// The hook of the root cgroup, in a namespace that the process which hooks in is not in.
#[test]
fn sockets_get_an_algorithm_as_they_listen_and_connect() {
    need_kernel!();
    let loaded = Loaded::new("_B", 64);
    let wire = Wire::new("hook");
    wire.set_default("a", "reno");
    let (name, folder) = (loaded.options.name(), loaded.options.folder.clone());
    let assigner = Assigner::load(&folder).unwrap();
    let walk = |assigner: &Assigner| {
        let file = std::fs::File::open("/run/netns/tt-hook-a").unwrap();
        let kind = Some(rustix::thread::LinkNameSpaceType::Network);
        let there = || {
            rustix::thread::move_into_link_name_space(file.as_fd(), kind).unwrap();
            let late = TcpListener::bind((A, 7399)).unwrap();
            (assigner.sockets().unwrap(), runs(&late))
        };
        std::thread::scope(|scope| scope.spawn(there).join().unwrap())
    };
    let netns = Some(walk(&assigner).0[0].netns_cookie);
    let any = Choice { netns, cgroup: None, ports: (0, u16::MAX), to: None, gives: Gives::Nothing };
    let given =
        Choice { ports: (7311, 7312), gives: Gives::Algorithm(name.clone()), ..any.clone() };
    let to = Some(("10.77.1.0".parse().unwrap(), 24));
    let towards = Choice { to, gives: Gives::Algorithm("cubic".to_owned()), ..any };
    let choices = Choices { list: vec![given, towards], ..Choices::default() };
    assigner.follow(&choices).unwrap();
    assigner.hook(&folder, &cgroups()).unwrap();
    let algorithm = name.clone();
    let sockets = wire.spawn("a", move || {
        let listener = TcpListener::bind((A, 7311)).unwrap();
        assert_eq!(runs(&listener), algorithm);
        // Its own choice, before and after.
        let before = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        );
        let before = TcpListener::from(before.unwrap());
        set_tcp_congestion(&before, "cubic").unwrap();
        let address = SocketAddr::from((A, 7312));
        rustix::net::bind(&before, &address).unwrap();
        rustix::net::listen(&before, 8).unwrap();
        assert_eq!(runs(&before), "cubic");
        // It goes where the second choice says.
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        assert_eq!((runs(&client), runs(&server)), ("cubic".to_owned(), algorithm.clone()));
        set_tcp_congestion(&listener, "cubic").unwrap();
        let second = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(runs(&listener.accept().unwrap().0), "cubic", "chosen after the hook's");
        // Elsewhere.
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let unnamed = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        assert_eq!((runs(&other), runs(&unnamed)), ("reno".to_owned(), "reno".to_owned()));
        (listener, client, server, second)
    });
    let sockets = sockets.join().unwrap();
    assert_eq!(assigner.gave().unwrap(), Gave { given: 3, refused: 0, error: 0 });

    // What the hook gave is known to a walk, also of who comes next, whose hook takes its place.
    drop(assigner);
    let next = Assigner::load(&folder).unwrap();
    next.hook(&folder, &cgroups()).unwrap();
    let seen = walk(&next);
    assert_eq!(seen.1, "reno", "the next one has no choices yet");
    let port = sockets.1.local_addr().unwrap().port();
    let server = seen.0.iter().find(|s| s.remote.is_some_and(|r| r.port() == port)).unwrap();
    let given = server.given.clone().unwrap();
    assert_eq!((given.algorithm, given.former.as_str()), (name.clone(), "reno"));

    // Nothing of it stays, and what the kernel does not have is refused.
    let listens = |port| wire.spawn("a", move || runs(TcpListener::bind((A, port)).unwrap()));
    let wrong = Choice { gives: Gives::Algorithm("nobody".to_owned()), ..choices.list[0].clone() };
    next.follow(&Choices { list: vec![wrong], ..Choices::default() }).unwrap();
    assert_eq!(listens(7312).join().unwrap(), "reno");
    let gave = next.gave().unwrap();
    assert_eq!((gave.given, gave.refused, gave.error), (0, 1, 2), "ENOENT");
    next.follow(&choices).unwrap();
    assert_eq!(listens(7312).join().unwrap(), name);

    // Connections to some places get back what was before, though what listens does not.
    let back = Choice { ports: (0, u16::MAX), to, gives: Gives::Former, ..choices.list[0].clone() };
    let list = [vec![back], choices.list.clone()].concat();
    for (holdback, list) in [("0%", list.clone()), ("100%", list), ("100%", choices.list.clone())] {
        let is_back = list.len() == 3;
        let holdback = holdback.parse().unwrap();
        next.follow(&Choices { holdback, list, ..Choices::default() }).unwrap();
        let connects = wire.spawn("a", || {
            let listener = TcpListener::bind((A, 7312)).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let server = listener.accept().unwrap().0;
            [runs(&listener), runs(&server), runs(&client)]
        });
        let server = if is_back { "reno" } else { name.as_str() };
        assert_eq!(connects.join().unwrap(), [name.as_str(), server, "reno"], "{holdback}");
    }
    let chosen = wire.spawn("a", || {
        let listener = TcpListener::bind((A, 7313)).unwrap();
        set_tcp_congestion(&listener, "cubic").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        runs(listener.accept().unwrap().0)
    });
    assert_eq!(chosen.join().unwrap(), "cubic", "it was given nothing, so nothing comes back");
    Assigner::unhook(&folder).unwrap();
    drop(next);
    assert_eq!(listens(7312).join().unwrap(), "reno");
    drop(sockets);
}

/// Connections of networks whose turn it is begin with the copy of what they would run. All others
/// begin with what the choice gives. A block later they change sides.
#[test]
fn connections_begin_in_the_arm_of_their_network() {
    const NETWORKS: u8 = 40;
    need_kernel!();
    let loaded = Loaded::new("_T", 64);
    let wire = Wire::new("arms");
    let (name, folder) = (loaded.options.name(), loaded.options.folder.clone());
    let copy = loaded.options.name_of(Algorithm::Cubic);
    let assigner = Assigner::load(&folder).unwrap();
    assigner.hook(&folder, &cgroups()).unwrap();
    let step = trimtab_units::Duration::from_millis(500);
    let follow = |former: &str| {
        let spec = ThreeArmsSpec {
            start: Interval::at(trimtab_kernel::now(), step),
            block: 4,
            pairs: 10,
            wash_out: 1,
            share: 0.5,
            schedule: Schedule::Each,
            seed: 7,
        };
        let plan = Some(ThreeArms::new(spec).unwrap());
        let copies = vec![(former.to_owned(), copy.clone())];
        let arms = Arms { rollout: None, plan, step, copies };
        let (ports, gives) = ((7321, 7321), Gives::Algorithm(name.clone()));
        let given = Choice { netns: None, cgroup: None, ports, to: None, gives };
        let choices = Choices { arms: arms.clone(), list: vec![given], ..Choices::default() };
        assigner.follow(&choices).unwrap();
        arms
    };
    // What each network's connection runs at once, and whether it is in the arm all the while.
    let look = |listener: &TcpListener, arms: &Arms| {
        let (mut seen, mut open) = (Vec::new(), Vec::new());
        for network in 0..NETWORKS {
            let client = std::net::Ipv4Addr::new(127, 0, network + 1, 9);
            let is_former = || arms.runs_former(client.into(), trimtab_kernel::now());
            let before = is_former();
            let kind = rustix::net::SocketType::STREAM;
            let socket = rustix::net::socket(rustix::net::AddressFamily::INET, kind, None).unwrap();
            rustix::net::bind(&socket, &SocketAddr::from((client, 0))).unwrap();
            let to = SocketAddr::from(([127, 0, 0, 1], 7321));
            rustix::net::connect(&socket, &to).unwrap();
            let accepted = listener.accept().unwrap().0;
            let runs = runs(&accepted);
            assert_eq!(tcp_congestion(&socket).unwrap(), "reno", "the rule is not about it");
            if before == is_former() {
                assert_eq!(runs, if before { copy.as_str() } else { name.as_str() }, "{client}");
                seen.push((network, before));
            }
            open.push((accepted, socket));
        }
        (seen, open)
    };
    wire.set_default("a", "reno");
    std::thread::scope(|scope| {
        let there = || {
            let file = std::fs::File::open("/run/netns/tt-arms-a").unwrap();
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(file.as_fd(), kind).unwrap();
            let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            assert!(up.unwrap().success());
            let arms = follow("reno");
            let listener = TcpListener::bind("127.0.0.1:7321").unwrap();
            assert_eq!(runs(&listener), name);
            let (first, _open) = look(&listener, &arms);
            // A pair of blocks takes four seconds: two seconds later is the other block of it.
            std::thread::sleep(std::time::Duration::from_secs(2));
            let (second, _open_too) = look(&listener, &arms);
            let changed = first.iter().filter(|(network, is_former)| {
                second.iter().any(|(other, then)| other == network && then != is_former)
            });
            assert!(changed.count() >= 5, "{first:?}, {second:?}");
            for seen in [&first, &second] {
                assert!(seen.iter().any(|(_, is_former)| *is_former), "{seen:?}");
                assert!(seen.iter().any(|(_, is_former)| !is_former), "{seen:?}");
            }
            // What was given is kept, and what was before it.
            let sockets = assigner.sockets().unwrap();
            let copied: Vec<_> = sockets.iter().filter(|s| s.algorithm == copy).collect();
            for socket in &copied {
                let given = socket.given.as_ref().unwrap();
                assert_eq!((&given.algorithm, given.former.as_str()), (&copy, "reno"));
            }
            assert!(!copied.is_empty());
            // Without a copy all begin as the choice says.
            let without = follow("cubic");
            let plain = Arms { plan: None, ..without };
            look(&listener, &plain);
        };
        scope.spawn(there).join().unwrap();
    });
    assert_eq!(assigner.gave().unwrap().refused, 0);
    Assigner::unhook(&folder).unwrap();
}
