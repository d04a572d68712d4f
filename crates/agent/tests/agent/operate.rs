//! An operator's orders on a real kernel: open connections, the restart of the agent, and who may.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;
use trimtab_agent::{Order, Standing, Verb, order};

use crate::common::{self, need_kernel, wait_for};
use crate::setup::Setup;

fn give(setup: &Setup, verb: Verb, target: &str) -> String {
    let order_ = Order { verb, target: target.parse().expect("a target"), lasts: None };
    order(&setup.socket(), &order_).expect("the agent obeys").text
}

/// The algorithm of a socket, as the kernel has it.
fn algorithm(socket: &std::net::TcpStream) -> String {
    rustix::net::sockopt::tcp_congestion(socket).expect("an algorithm")
}

#[test]
fn a_restore_reaches_open_sockets_and_outlives_the_agent() {
    need_kernel!();
    let setup = Setup::new("_P");
    let port = 7291;
    // No program chose: the system's default is what comes back.
    let text = format!(
        "[[rule]]\nname = \"web\"\nport = {port}\nassign = true\nknobs = {{ delta = 0.2 }}\n"
    );
    setup.configure("", &text);
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("a port");
    let client = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connect");
    let (server, _) = listener.accept().expect("accept");
    let before = algorithm(&server);
    let mut agent = setup.start();
    wait_for("the rule's algorithm", || (algorithm(&server) == setup.algorithm()).then_some(()));
    wait_for("the rule's knobs", || agent.flow(port).filter(|flow| flow.delta == Some(0.2)));

    let told = give(&setup, Verb::Pause, "rule:web");
    assert!(told.contains("1 open connection got back"), "{told}");
    let flow = agent.flow(port).expect("it is measured");
    assert_eq!((flow.standing, flow.delta), (Standing::Paused, Some(0.5)));
    assert_eq!(algorithm(&server), setup.algorithm());

    give(&setup, Verb::Restore, "rule:web");
    wait_for("what it ran before", || (algorithm(&server) == before).then_some(()));
    agent.signal(Signal::TERM);
    agent.wait();
    let agent = setup.start();
    let orders = agent.status().expect("it answers").orders;
    assert_eq!(orders.len(), 2, "{orders:?}");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(algorithm(&server), before, "the order holds after a restart");
    agent.signal(Signal::HUP);
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(algorithm(&server), before, "and after a reload");

    give(&setup, Verb::Resume, "rule:web");
    wait_for("the rule again", || (algorithm(&server) == setup.algorithm()).then_some(()));
    drop(client);
}

/// What is accepted from an excluded network never runs the rule's algorithm, which the socket that
/// listens keeps for others; and does again when the order's time is over.
#[test]
fn an_exclusion_of_a_network_reaches_new_connections_from_their_beginning() {
    need_kernel!();
    let setup = Setup::new("_R");
    let port = 7292;
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("a port");
    let before = rustix::net::sockopt::tcp_congestion(&listener).expect("an algorithm");
    setup.configure("", &format!("[[rule]]\nname = \"web\"\nport = {port}\nassign = true\n"));
    let _agent = setup.start();
    let ours = setup.algorithm();
    let accepted = || {
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connect");
        let (server, _) = listener.accept().expect("accept");
        let runs = algorithm(&server);
        drop(client);
        runs
    };
    wait_for("the rule's algorithm", || (accepted() == ours).then_some(()));
    let target = "127.0.0.0/24".parse().expect("a target");
    let exclude = Order { verb: Verb::Exclude, target, lasts: Some(5.0) };
    order(&setup.socket(), &exclude).expect("the agent obeys");
    let ordered = std::time::Instant::now();
    wait_for("the order", || (accepted() == before).then_some(()));
    assert!(ordered.elapsed().as_secs_f64() < 1.5, "{:?}", ordered.elapsed());
    // No walk comes in between: it may be that one is due, but not for each.
    for _ in 0..100 {
        assert_eq!(accepted(), before);
    }
    let listens = rustix::net::sockopt::tcp_congestion(&listener).expect("an algorithm");
    assert_eq!(listens, ours);
    std::thread::sleep(std::time::Duration::from_secs(4));
    wait_for("its end", || (accepted() == ours).then_some(()));
}

/// A process of user 65534, in the group of readers, may ask and not give orders.
#[test]
fn readers_may_not_give_orders_and_operators_may() {
    need_kernel!();
    let setup = Setup::new("_Q");
    // Groups that every system has.
    setup.configure_sockets("", "group = \"mail\"\noperators = \"games\"", "");
    // The folder of the test is root's alone.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(setup.folder(), open).expect("open the folder");
    let agent = setup.start();
    let (mail, games) = (group("mail"), group("games"));
    let ask = |gid: u32, question: &str| {
        let (socket, question) = (setup.socket(), question.to_owned());
        // In a process of its own, which drops what root may.
        let exe = std::env::current_exe().expect("this test");
        let out = Command::new(exe)
            .args(["--exact", "operate::asks_as_who_it_is", "--nocapture"])
            .env("TRIMTAB_TEST_ASK", socket)
            .env("TRIMTAB_TEST_QUESTION", question)
            .uid(65534)
            .gid(gid)
            .output()
            .expect("ask");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let (status, pause) =
        (r#"{"ask":"status"}"#, r#"{"ask":"order","order":{"verb":"pause","target":"all"}}"#);
    let told = ask(mail, status);
    assert!(told.contains("trimtab.agent.status/1"), "{told}");
    let told = ask(mail, pause);
    assert!(told.contains("may not give orders") && told.contains("operators"), "{told}");
    assert_eq!(agent.status().expect("root may ask").orders, []);
    let told = ask(games, pause);
    assert!(told.contains("paused all"), "{told}");
    assert_eq!(agent.status().expect("root may ask").orders[0].by, "user 65534");
    let told = ask(65534, status);
    assert!(told.contains("may not ask"), "{told}");
}

fn group(name: &str) -> u32 {
    let groups = std::fs::read_to_string("/etc/group").expect("groups");
    let line = groups.lines().find(|line| line.starts_with(&format!("{name}:")));
    let id = line.and_then(|line| line.split(':').nth(2)).expect("a group that every system has");
    id.parse().expect("a number")
}

/// What the test above runs as somebody else; nothing when it is not asked to.
#[test]
fn asks_as_who_it_is() {
    let (Ok(socket), Ok(question)) =
        (std::env::var("TRIMTAB_TEST_ASK"), std::env::var("TRIMTAB_TEST_QUESTION"))
    else {
        return;
    };
    let mut stream = UnixStream::connect(socket).expect("the socket lets all groups in");
    writeln!(stream, "{question}").expect("ask");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    println!("{answer}");
}
