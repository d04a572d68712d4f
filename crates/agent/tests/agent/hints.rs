//! Applications tell what is good for their connections, and only for theirs.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::net::sockopt::socket_cookie;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketType};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, connect, recv, sendmsg, socket};
use rustix::thread::{Uid, set_thread_res_uid};
use trimtab_agent::{ask_status, ask_why};
use trimtab_app_sdk::wire::{Answer, Message};
use trimtab_app_sdk::{Factors, HintError, Hints};
use trimtab_units::Bytes;

use crate::common::{self, Wire, need_kernel, wait_for};
use crate::setup::Setup;

/// Two ends of a connection of this machine; the first runs the agent's algorithm.
fn connection(algorithm: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let stream = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    rustix::net::sockopt::set_tcp_congestion(&stream, algorithm).expect("TCP_CONGESTION");
    (stream, listener.accept().expect("accept").0)
}

/// Runs something as another user, on a thread of its own.
fn as_user<T: Send>(uid: u32, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let uid = Uid::from_raw(uid);
                set_thread_res_uid(uid, uid, uid).expect("another user");
                work()
            })
            .join()
            .expect("it ends")
    })
}

/// The factors of a connection's model, as the agent has them.
fn factors(setup: &Setup, port: u16) -> Vec<(String, Option<f64>)> {
    ask_why(&setup.socket(), &format!(":{port}")).expect("the connection").factors
}

/// A factor of the application's own.
fn own(name: &str, value: f64) -> Factors {
    let mut factors = Factors::new();
    factors.set_named(name, value).expect("the name is free");
    factors
}

const RULE: &str = "[[rule]]\nname = \"all\"\nqoe = \"download\"\n";

#[test]
fn without_privilege_one_speaks_for_ones_own_connections_and_for_nobody_elses() {
    need_kernel!();
    let setup = Setup::new("_h");
    // Others may pass to the sockets.
    std::fs::set_permissions(setup.folder(), Permissions::from_mode(0o755)).unwrap();
    setup.configure("", RULE);
    let agent = setup.start();
    let path = setup.folder().join("run/hints.sock");
    let algorithm = setup.algorithm();
    const ALICE: u32 = 61_001;
    const MALLORY: u32 = 61_002;
    let (mut stream, mut far) = as_user(ALICE, || connection(&algorithm));
    let port = stream.local_addr().unwrap().port();

    // The agent knows nothing but what it sees on the wire.
    stream.write_all(&[0; 50_000]).unwrap();
    far.read_exact(&mut [0; 50_000]).unwrap();
    wait_for("the connection", || agent.flow(port));

    // Whose way to the agent it is was settled when it was opened.
    let hints = as_user(ALICE, || Hints::connect_to(&path).unwrap());
    let live = Factors::new().with_request(Bytes::new(1_000_000));
    let named = hints.describe(&stream, None, &live).unwrap();
    assert_eq!(factors(&setup, port), [("R".to_owned(), Some(8.0))]);
    // Her own formula, with a factor of her own.
    let live = own("patience", 3.0);
    hints.describe(&stream, Some("T - patience * D"), &live).unwrap();
    assert_eq!(factors(&setup, port), [("patience".to_owned(), Some(3.0))]);
    hints.update(&named, &own("patience", 4.0)).unwrap();
    wait_for("the update", || {
        (factors(&setup, port) == [("patience".to_owned(), Some(4.0))]).then_some(())
    });
    let error = hints.describe(&stream, Some("T - patince"), &Factors::new()).unwrap_err();
    let HintError::Refused(why) = error else { panic!("{error}") };
    assert!(why.starts_with("the QoE model: ") && why.contains("patince"), "{why}");
    as_user(MALLORY, || {
        let hints = Hints::connect_to(&path).unwrap();
        // She has no descriptor, and knows the cookie.
        let live = own("patience", 99.0);
        hints.update(&named, &live).unwrap();
        let error = wait_for("the refusal", || hints.update(&named, &live).err());
        assert!(matches!(&error, HintError::Unknown(_)), "{error}");
        // Of her own she may speak, and the control socket is not hers.
        let (own, _far) = connection(&algorithm);
        hints.describe(&own, Some("web"), &Factors::new()).unwrap();
        let error = ask_status(&setup.socket()).unwrap_err().to_string();
        assert!(
            error.contains("not allowed to ask the agent") && error.contains("[sockets] group"),
            "{error}"
        );
    });
    assert_eq!(factors(&setup, port), [("patience".to_owned(), Some(4.0))]);
    assert!(agent.flow(port).unwrap().hinted);

    // Root may speak for all; a connection that the agent does not steer is none of its business.
    let hints = Hints::connect_to(&path).unwrap();
    hints.describe(&stream, None, &own("patience", 5.0)).unwrap();
    let error = hints.describe(&far, None, &Factors::new()).unwrap_err();
    assert!(matches!(&error, HintError::Unknown(why) if why.contains("TCP_CONGESTION")), "{error}");
}

const VARIABLE: &str = "TRIMTAB_TEST_HINTS";

/// Not a test by itself: an application, which opens a connection and describes it.
#[test]
fn application_of_its_own() {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let algorithm = std::env::var("TRIMTAB_TEST_ALGORITHM").expect("an algorithm");
    let (stream, _far) = connection(&algorithm);
    let hints = Hints::connect_to(Path::new(&path)).expect("the agent");
    let live = Factors::new().with_request(Bytes::new(250_000));
    let said = hints.describe(&stream, None, &live).map_err(|e| e.to_string());
    println!("port {} {said:?}", stream.local_addr().expect("address").port());
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn an_application_in_another_network_namespace_is_found_there() {
    need_kernel!();
    let setup = Setup::new("_i");
    let wire = Wire::new("hints");
    setup.configure("", &format!("{RULE}netns = \"/run/netns/tt-hints-a\"\n"));
    let _agent = setup.start();
    let path: PathBuf = setup.folder().join("run/hints.sock");
    let algorithm = setup.algorithm();
    let spawn = move || {
        Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "hints::application_of_its_own", "--nocapture"])
            .env(VARIABLE, path)
            .env("TRIMTAB_TEST_ALGORITHM", algorithm)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the application")
    };
    let mut child = wire.spawn("a", spawn).join().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("port ")?.1.to_owned()))
        .expect("what it says");
    let (port, said) = said.split_once(' ').unwrap();
    assert!(said.starts_with("Ok("), "{said}");
    assert_eq!(factors(&setup, port.parse().unwrap()), [("R".to_owned(), Some(2.0))]);
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn nonsense_on_the_hints_socket_is_refused_and_a_flood_starves_nobody() {
    need_kernel!();
    let setup = Setup::new("_j");
    setup.configure("", RULE);
    let agent = setup.start();
    let path = setup.folder().join("run/hints.sock");
    let (stream, _far) = connection(&setup.algorithm());
    let port = stream.local_addr().unwrap().port();
    let hints = Hints::connect_to(&path).unwrap();
    let live = |value: f64| own("mine", value);
    let named = hints.describe(&stream, Some("T - mine * D"), &live(0.0)).unwrap();
    for value in [f64::NAN, f64::INFINITY] {
        // JSON has no such numbers, so that they do not even arrive as such.
        assert!(hints.describe(&stream, None, &live(value)).is_err());
    }
    let start = std::time::Instant::now();
    let (mut sent, mut dropped) = (0, 0);
    while start.elapsed() < Duration::from_millis(500) {
        match hints.update(&named, &live(1.0)) {
            Ok(()) => sent += 1,
            Err(HintError::Busy) => dropped += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(dropped > 0 && sent < 4000, "2,000 a second and 500 at once: {sent}, {dropped}");
    let asked = std::time::Instant::now();
    assert!(agent.status().is_some() && asked.elapsed() < Duration::from_millis(500));
    assert_eq!(factors(&setup, port), [("mine".to_owned(), Some(1.0))]);
}

/// A way to the agent without the library.
fn open(path: &Path) -> OwnedFd {
    let agent = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    connect(&agent, &SocketAddrUnix::new(path).expect("a path")).expect("the agent");
    agent
}

/// Sends a message with these descriptors, and gives the answer.
fn say(agent: &OwnedFd, message: &Message, descriptors: &[BorrowedFd<'_>]) -> Answer {
    let bytes = serde_json::to_vec(message).expect("JSON");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(along.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    sendmsg(agent, &[IoSlice::new(&bytes)], &mut along, SendFlags::NOSIGNAL).expect("sent");
    let mut answer = [0; 4096];
    let (length, _) = recv(agent, &mut answer[..], RecvFlags::empty()).expect("an answer");
    serde_json::from_slice(&answer[..length]).expect("an answer")
}

fn about(cookie: Option<u64>) -> Message {
    let model = Some("T - 100 * D".to_owned());
    Message { cookie, model, factors: std::collections::BTreeMap::new(), answer: true }
}

/// Open descriptors of a process.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the agent").count()
}

/// Who knows the cookie, which is easily guessed, has to hold the socket, too. A process that does may speak
/// for it from any network namespace.
#[test]
fn nobody_speaks_for_a_connection_without_its_descriptor() {
    need_kernel!();
    let setup = Setup::new("_s");
    std::fs::set_permissions(setup.folder(), Permissions::from_mode(0o755)).unwrap();
    setup.configure("", RULE);
    let agent = setup.start();
    let path: PathBuf = setup.folder().join("run/hints.sock");
    const ALICE: u32 = 61_003;
    let (mut stream, mut far) = as_user(ALICE, || connection(&setup.algorithm()));
    stream.write_all(&[0; 50_000]).unwrap();
    far.read_exact(&mut [0; 50_000]).unwrap();
    let port = stream.local_addr().unwrap().port();
    wait_for("the connection", || agent.flow(port));
    let cookie = Some(socket_cookie(&stream).unwrap());
    let is_unknown = |answer: &Answer| matches!(answer, Answer::Unknown(_));

    // Her own user, without it.
    let answer = as_user(ALICE, || say(&open(&path), &about(cookie), &[]));
    assert!(is_unknown(&answer), "{answer:?}");
    assert_eq!(factors(&setup, port)[0].0, "R", "the model of the rule is in force");
    let way = open(&path);
    let answer = say(&way, &about(None), &[far.as_fd()]);
    assert!(is_unknown(&answer), "the other end runs another algorithm: {answer:?}");
    assert!(is_unknown(&say(&way, &about(cookie), &[])));

    let wire = Wire::new("foreign");
    let (there, socket) = (path.clone(), stream.try_clone().unwrap());
    let speak = move || as_user(ALICE, || say(&open(&there), &about(None), &[socket.as_fd()]));
    assert_eq!(wire.spawn("a", speak).join().unwrap(), Answer::Ok);
    assert_eq!(factors(&setup, port), []);
    // From then on the cookie is enough, for that sender.
    assert_eq!(say(&way, &about(None), &[stream.as_fd()]), Answer::Ok);
    assert_eq!(say(&way, &about(cookie), &[]), Answer::Ok);
    assert!(is_unknown(&say(&open(&path), &about(cookie), &[])));
}

/// The agent keeps no descriptor, and refuses what is no connection.
#[test]
fn hostile_descriptors_are_closed_and_refused() {
    need_kernel!();
    let setup = Setup::new("_6");
    setup.configure("", RULE);
    let agent = setup.start();
    let path: PathBuf = setup.folder().join("run/hints.sock");
    let (stream, far) = connection(&setup.algorithm());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    wait_for("the connection", || agent.flow(stream.local_addr().unwrap().port()));
    let way = open(&path);
    assert_eq!(say(&way, &about(None), &[stream.as_fd()]), Answer::Ok);
    let before = descriptors(agent.steerer());
    let refused = |answer: &Answer, why: &str| {
        assert!(matches!(answer, Answer::Refused(said) if said.contains(why)), "{answer:?}");
    };
    let cookie = Some(socket_cookie(&stream).unwrap());
    for _ in 0..20 {
        refused(&say(&way, &about(None), &[listener.as_fd()]), "no TCP connection");
        refused(&say(&way, &about(None), &[datagrams.as_fd()]), "another protocol");
        refused(&say(&way, &about(cookie), &[stream.as_fd()]), "one descriptor");
        refused(&say(&way, &about(None), &[]), "one descriptor");
        // More than it takes: the kernel closes the rest.
        let many = [stream.as_fd(); 8];
        say(&way, &about(None), &many);
    }
    // What is no socket may be of a file system that never answers: its sender is not heard again
    // before it is closed.
    let file = std::fs::File::open("/proc/self/status").unwrap();
    refused(&say(&way, &about(None), &[file.as_fd()]), "none of a socket");
    wait_for("another way", || {
        let hints = Hints::connect_to(&path).expect("the agent");
        hints.describe(&stream, None, &Factors::new()).ok()
    });
    drop(way);
    wait_for("their end", || (descriptors(agent.steerer()) <= before).then_some(()));
    drop(far);
}

/// Who names what does not exist gets an answer 200 times a second at most (2,000 hints that are taken in), and the
/// time that the agent takes for it does not grow with the connections that there are.
#[test]
fn a_flood_of_cookies_that_nobody_has_is_slowed_down() {
    need_kernel!();
    let setup = Setup::new("_5");
    setup.configure("", RULE);
    let _agent = setup.start();
    let path = setup.folder().join("run/hints.sock");
    let message = about(Some(1));
    let start = std::time::Instant::now();
    let mut answers = 0;
    while start.elapsed() < Duration::from_secs(1) {
        let way = open(&path);
        for _ in 0..10 {
            say(&way, &message, &[]);
            answers += 1;
        }
    }
    let most = 50.0 + 200.0 * start.elapsed().as_secs_f64() + 10.0;
    assert!((50.0..most).contains(&(answers as f64)), "{answers} answers");
}
