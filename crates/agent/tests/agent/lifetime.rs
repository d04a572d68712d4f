//! What an agent does when connections, agents and configurations come and go.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use rustix::process::Signal;
use trimtab_agent::{Error, Standing, ask_why};
use trimtab_kernel::{Algorithm, Datapath, Flow, Options, Origin};
use trimtab_steer::Mortise;

use crate::assign::start_in;
use crate::common::{self, Wire, need_kernel, wait_for};
use crate::setup::Setup;

const RULE: &str = "[[rule]]\nname = \"web\"\nport = 7101\nqoe = \"download\"\n\
                    factors = { R = 8 }\nsteer = \"mortise\"\n";

#[test]
fn it_tunes_live_connections_dies_without_harm_and_comes_back() {
    need_kernel!();
    let setup = Setup::new("_a");
    setup.configure("", RULE);
    let wire = Wire::new("agent");
    let mut first = start_in("agent", &setup);
    wire.limit("50mbit", 200_000);
    let server = wire.serve(&setup.algorithm(), 7101, 60_000_000, 1);
    let client = wire.fetch(7101, Duration::from_secs(60));
    let steered = wait_for("decisions", || {
        first.flow(7101).filter(|flow| flow.decisions > 8 && flow.score.is_some())
    });
    assert_eq!((steered.standing, steered.rule.as_str()), (Standing::Steered, "web"));
    let why = ask_why(&setup.socket(), "7101").unwrap();
    assert!(why.to_string().contains("the measured trade-off is"), "{why}");

    // A second agent would take the first one's measurements.
    let mut second = setup.spawn();
    assert_eq!(second.wait().code(), Some(2));
    let said = format!("another agent runs already (process {})", first.pid());
    assert!(second.log().contains(&said), "{}", second.log());

    // A configuration that is wrong is refused, and told with its place; the one in force stays.
    setup.configure("", &RULE.replace("mortise", "tortoise"));
    first.signal(Signal::HUP);
    let status = wait_for("the refusal", || first.status().filter(|s| !s.troubles.is_empty()));
    assert!(
        status.troubles[0].contains("agent.toml:16:9: \"tortoise\": unknown congestion control"),
        "{status}"
    );
    assert_eq!(first.flow(7101).unwrap().standing, Standing::Steered);
    setup.configure("", RULE);
    first.signal(Signal::HUP);
    wait_for("the mended one", || first.status().filter(|s| s.troubles.is_empty()));
    assert_eq!(first.flow(7101).unwrap().id, steered.id);

    first.signal(Signal::KILL);
    first.wait();
    let datapath = trimtab_kernel::Datapath::load(&setup.options()).unwrap();
    assert_eq!(datapath.origin(), trimtab_kernel::Origin::Adopted);
    let flow = datapath.flows().find(|flow| flow.identity().local.port() == 7101).unwrap();
    let (delta, acked) = (flow.knob("delta").unwrap(), flow.sample().unwrap().totals.acked);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(flow.knob("delta").unwrap(), delta);
    for &(knob, value) in
        Mortise::algorithm().settings().iter().filter(|(knob, _)| *knob != "delta")
    {
        let now = flow.knob(knob).unwrap();
        assert!((now - value).abs() <= 1e-3 * value, "{knob}: {now} and not {value}");
    }
    let more = flow.sample().unwrap().totals.acked - acked;
    assert!(more > trimtab_units::Bytes::new(1_000_000), "{more} went on in 0.3 s");

    let next = start_in("agent", &setup);
    let status = next.status().unwrap();
    assert_eq!(status.adopted, 1, "{status}");
    let again = next.flow(7101).unwrap();
    assert_eq!((again.id, again.standing), (steered.id, Standing::Steered));
    wait_for("more decisions", || next.flow(7101).filter(|flow| flow.decisions > 0));
    assert_eq!(client.join().unwrap(), 60_000_000);
    server.join().unwrap();
    wait_for("the end", || next.flows().is_empty().then_some(()));
    assert!(matches!(ask_why(&setup.socket(), "7101"), Err(Error::Refused(_))));
}

/// The next agent finds what was loaded with other options, as after an upgrade other programs,
/// under a connection that is open. It has to run, with the options of its configuration. (What
/// another version has loaded: `crates/kernel/tests/upgrade.rs`.)
#[test]
fn other_options_take_effect_with_the_next_agent() {
    need_kernel!();
    let setup = Setup::new("_u");
    setup.configure("", "[[rule]]\nknobs = { delta = 0.25 }\n");
    let mut first = setup.start();
    let before = first.status().unwrap().programs;
    assert_eq!((before.slots, before.former.len()), (16384, 0), "{before:?}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::sockopt::set_tcp_congestion(&listener, &setup.algorithm()).unwrap();
    let connect = || {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        server.write_all(&[1; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        (server, client)
    };
    let old = connect();
    wait_for("the connection", || (first.status()?.open == 1).then_some(()));
    first.signal(Signal::TERM);
    first.wait();

    let text = std::fs::read_to_string(setup.config()).unwrap();
    std::fs::write(setup.config(), text.replace("slots = 16384", "slots = 1000")).unwrap();
    let next = setup.start();
    assert!(next.log().contains("took the place of other programs or options"), "{}", next.log());
    let status = next.status().unwrap();
    assert_eq!((status.programs.slots, status.programs.layout), (1000, before.layout));
    assert_eq!(status.programs.former.len(), 1, "{status}");
    let former = &status.programs.former[0];
    assert_eq!((former.layout, former.connections), (before.layout, 1));
    assert!(status.to_string().contains("1 connection on former programs"));
    let new = connect();
    wait_for("the new connection", || (next.status()?.open == 1).then_some(()));
    drop(old);
    wait_for("the end of the former programs", || {
        next.status()?.programs.former.is_empty().then_some(())
    });
    drop(new);
}

#[test]
fn a_connection_that_is_given_another_algorithm_by_hand_is_left_to_it() {
    need_kernel!();
    let setup = Setup::new("_b");
    setup.configure("", "[[rule]]\nknobs = { delta = 0.25 }\n");
    let mut agent = setup.start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&stream, &setup.algorithm()).unwrap();
    let port = stream.local_addr().unwrap().port();
    let flow = wait_for("the connection", || agent.flow(port));
    assert_eq!((flow.standing, flow.delta), (Standing::Set, Some(0.25)));
    rustix::net::sockopt::set_tcp_congestion(&stream, "reno").unwrap();
    wait_for("the note", || agent.log().contains("was given reno by hand").then_some(()));
    assert!(agent.flow(port).is_none());
    stream.write_all(b"still there").unwrap();
    let mut buffer = [0; 11];
    listener.accept().unwrap().0.read_exact(&mut buffer).unwrap();
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    assert!(!setup.socket().exists());
}

/// Nobody chose the algorithm of a connection that has ended, whichever of our algorithms its port
/// listens with. Its end asks the kernel for what is left, and that answers with the socket that
/// listens.
#[test]
fn connections_that_end_are_not_told_as_changed_by_hand() {
    need_kernel!();
    let setup = Setup::new("_r");
    setup.configure("", "[[rule]]\nalgorithm = \"vivace\"\nknobs = { gamma = 20 }\n");
    let agent = setup.start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    set_tcp_congestion(&listener, &setup.options().name_of(Algorithm::Vivace)).unwrap();
    let connect = || {
        let mut client = TcpStream::connect(address).unwrap();
        let mut server = listener.accept().unwrap().0;
        server.write_all(&[0; 3000]).unwrap();
        client.read_exact(&mut [0; 3000]).unwrap();
        (client, server)
    };
    for _ in 0..20 {
        let (client, server) = connect();
        wait_for("the connection", || agent.flow(address.port()));
        // The client goes first, so that nothing stays of the server's end.
        drop(client);
        drop(server);
        wait_for("its end", || agent.flow(address.port()).is_none().then_some(()));
    }
    // Looked up a second later, and one whose algorithm did change with them.
    let (_client, server) = connect();
    wait_for("the connection", || agent.flow(address.port()));
    set_tcp_congestion(&server, "reno").unwrap();
    wait_for("the note", || agent.log().contains("was given reno by hand").then_some(()));
    let by_hand = agent.log().lines().filter(|line| line.contains("by hand")).count();
    assert_eq!(by_hand, 1, "{}", agent.log());
}

/// The agent's end gives live connections back what they had, and so does `unload` where it was killed.
#[test]
fn live_connections_get_back_their_own_knobs() {
    need_kernel!();
    let setup = Setup::new("_o");
    setup.configure("", "[[rule]]\nknobs = { delta = 0.04 }\n");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = || {
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        set_tcp_congestion(&stream, &setup.algorithm()).unwrap();
        (stream, accepted)
    };
    let mut agent = setup.start();
    let (stream, _accepted) = open();
    let port = stream.local_addr().unwrap().port();
    let flow = wait_for("the connection", || agent.flow(port).filter(|f| f.delta == Some(0.04)));
    assert_eq!(flow.standing, Standing::Set);
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    let datapath = Datapath::load(&setup.options()).unwrap();
    let flow = datapath.flows().find(|flow| flow.identity().local.port() == port).unwrap();
    assert_eq!(flow.knob("delta").unwrap(), 0.5, "after its end");

    let mut agent = setup.start();
    wait_for("the rule again", || agent.flow(port).filter(|f| f.delta == Some(0.04)));
    agent.signal(Signal::KILL);
    agent.wait();
    assert_eq!(flow.knob("delta").unwrap(), 0.04, "killed, it leaves all as it is");
    drop(datapath);
    trimtab_agent::unload(Some(&setup.config())).unwrap();
    assert_eq!(flow.knob("delta").unwrap(), 0.5, "after unload");
    drop(stream);
}

/// What an agent that was killed has left: an open connection with a delta of 0.04.
struct Left {
    flow: Flow,
    port: u16,
    _ends: (TcpListener, TcpStream),
}

fn leave_a_knob(setup: &Setup) -> Left {
    setup.configure("", "[[rule]]\nknobs = { delta = 0.04 }\n");
    let mut agent = setup.start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    set_tcp_congestion(&stream, &setup.algorithm()).unwrap();
    let port = stream.local_addr().unwrap().port();
    wait_for("the rule", || agent.flow(port).filter(|f| f.delta == Some(0.04)));
    agent.signal(Signal::KILL);
    agent.wait();
    let former = Datapath::find(&setup.options()).unwrap().expect("it is loaded");
    let flow = former.flows().find(|flow| flow.identity().local.port() == port).unwrap();
    Left { flow, port, _ends: (listener, stream) }
}

/// So does `unload` where other options have replaced the programs of the agent that was killed. It
/// replaces none itself, though its options are not those that are loaded either.
#[test]
fn connections_on_former_programs_get_back_their_own_knobs() {
    need_kernel!();
    let setup = Setup::new("_h");
    let Left { flow, .. } = &leave_a_knob(&setup);
    let other = Datapath::load(&Options { slots: 64, ..setup.options() }).unwrap();
    assert!(matches!(other.origin(), Origin::Replaced(_)));
    assert_eq!((other.flows().count(), flow.knob("delta").unwrap()), (0, 0.04));
    let unloaded = trimtab_agent::unload(Some(&setup.config())).unwrap();
    assert!(unloaded.was_loaded);
    assert_eq!(flow.knob("delta").unwrap(), 0.5);
    // The folder is gone, and what was loaded last is what was loaded before.
    assert_eq!(other.stats().slots, 64);
    assert!(!setup.options().folder.exists());
}

/// So does the next agent, when it replaces the programs of the one that was killed: nobody would
/// guard them any more.
#[test]
fn the_next_agent_gives_connections_on_former_programs_their_own_knobs() {
    need_kernel!();
    let setup = Setup::new("_2");
    let Left { flow, port, .. } = &leave_a_knob(&setup);
    assert_eq!(flow.knob("delta").unwrap(), 0.04);
    let text = std::fs::read_to_string(setup.config()).unwrap();
    std::fs::write(setup.config(), text.replace("slots = 16384", "slots = 1000")).unwrap();
    let next = setup.start();
    assert_eq!((next.flow(*port).map(|flow| flow.id), flow.is_open()), (None, true));
    assert_eq!(flow.knob("delta").unwrap(), 0.5);
    let told = "1 connection on former programs got back their own knobs";
    assert!(next.log().contains(told), "{}", next.log());
}

/// A server that has closed while the client keeps its side open is not open any more once the
/// client has all (FIN-WAIT-2). Until then its response is on its way (FIN-WAIT-1), and it is
/// steered.
#[test]
fn what_this_side_has_closed_is_open_until_all_has_arrived() {
    need_kernel!();
    let setup = Setup::new("_f");
    setup.configure("", "[[rule]]\nknobs = { delta = 0.04 }\n");
    let agent = setup.start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    set_tcp_congestion(&listener, &setup.algorithm()).unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let server = listener.accept().unwrap().0;
    let flow = wait_for("the connection", || agent.flow(address.port()));
    assert_eq!(flow.standing, Standing::Set);

    // As much as the buffers take, of which the client reads nothing: a closed window holds up the rest.
    server.set_nonblocking(true).unwrap();
    let mut sent = 0;
    while let Ok(more) = (&server).write(&[0; 1 << 16]) {
        sent += more;
    }
    server.shutdown(Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let flow = agent.flow(address.port()).expect("its response is on its way");
    assert_eq!(flow.standing, Standing::Set);
    let status = agent.status().unwrap();
    assert_eq!((status.open, status.closing), (1, 0), "{status}");

    client.read_exact(&mut vec![0; sent]).unwrap();
    let is_closing = || agent.flow(address.port()).filter(|f| f.standing == Standing::Closing);
    let flow = wait_for("all to arrive", is_closing);
    assert!(!flow.active);
    let status = agent.status().unwrap();
    assert_eq!((status.open, status.active, status.closing), (0, 0, 1), "{status}");
    assert!(status.to_string().contains("0 connections open, 0 active, 1 closing"), "{status}");
    drop(client);
    drop(server);
    wait_for("its end", || agent.flow(address.port()).is_none().then_some(()));
    assert_eq!(agent.status().unwrap().closing, 0);
}

/// A reset does not reach the algorithm, and a socket that is kept has its slot: the walk over the
/// sockets finds it.
#[test]
fn a_connection_that_was_reset_is_not_open_though_its_socket_is_kept() {
    need_kernel!();
    let setup = Setup::new("_g");
    setup.configure("", "[[rule]]\nknobs = { delta = 0.04 }\n");
    let agent = setup.start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    set_tcp_congestion(&listener, &setup.algorithm()).unwrap();
    let client = TcpStream::connect(address).unwrap();
    let _server = listener.accept().unwrap().0;
    wait_for("the connection", || agent.flow(address.port()));
    set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
    let start = Instant::now();
    while agent.flow(address.port()).is_none_or(|flow| flow.standing != Standing::Closing) {
        assert!(start.elapsed() < Duration::from_secs(15), "no walk came");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(agent.status().unwrap().open, 0);
}
