//! The example in C, compiled against the header and the library, before an agent of the test's.

use std::io::{BufRead, BufReader, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept, bind, getpeername, listen, recvmsg, send, socket_with,
};
use trimtab_app_sdk::wire::{Answer, Message};
use trimtab_app_sdk::{Factors, HintError, Hints};

/// The library for C is in the same folder as the programs that are built for tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libtrimtab_app_sdk.a")
}

fn compile(folder: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("hints");
    let done = Command::new("cc")
        .args(["-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &here.join("examples/hints.c")])
        .arg("-I")
        .arg(here.join("include"))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm"])
        .output()
        .expect("a C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn listener(path: &Path) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&socket, 4).unwrap();
    socket
}

/// A message, and the other end of the socket whose descriptor came along.
type Heard = (Message, Option<SocketAddr>);

/// Reads all messages of one sender; each message is answered with what `answer` gives.
fn agent(
    socket: OwnedFd,
    mut answer: impl FnMut(usize) -> Option<Answer> + Send + 'static,
) -> JoinHandle<Vec<Heard>> {
    std::thread::spawn(move || {
        let sender = accept(&socket).unwrap();
        let mut heard = Vec::new();
        let mut bytes = [0; 4096];
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut along = RecvAncillaryBuffer::new(&mut space);
            let parts = &mut [IoSliceMut::new(&mut bytes)];
            let length = recvmsg(&sender, parts, &mut along, RecvFlags::empty()).unwrap().bytes;
            if length == 0 {
                break;
            }
            let remote = along.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut all) => getpeername(all.next()?).unwrap(),
                _ => None,
            });
            let remote = remote.map(|remote| remote.try_into().unwrap());
            heard.push((serde_json::from_slice(&bytes[..length]).unwrap(), remote));
            if let Some(answer) = answer(heard.len()) {
                let bytes = serde_json::to_vec(&answer).unwrap();
                send(&sender, &bytes, SendFlags::NOSIGNAL).unwrap();
            }
        }
        heard
    })
}

#[test]
fn a_program_in_c_describes_its_connection_and_sends_what_changes() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path());
    let socket = folder.path().join("hints.sock");
    // The first time as if the connection were not known yet.
    let agent = agent(listener(&socket), |heard| match heard {
        1 => Some(Answer::Unknown("not yet".to_owned())),
        2 => Some(Answer::Ok),
        _ => None,
    });
    let mut child = Command::new(&program)
        .env("TRIMTAB_HINTS", &socket)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines.next().unwrap().unwrap();
    let port: u16 = port.strip_prefix("port ").unwrap().parse().unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), 500_000);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");

    let heard = agent.join().unwrap();
    assert_eq!(heard.len(), 4);
    let ((first, remote), (last, none)) = (&heard[1], &heard[3]);
    assert_eq!((*remote, *none), (Some(client.local_addr().unwrap()), None));
    assert_eq!((first.model.as_deref(), first.answer), (Some("vod"), true));
    assert_eq!(first.factors.get("C"), Some(&2.0), "Mbit");
    assert_eq!(first.factors.get("V"), Some(&0.0));
    assert!(!first.factors.contains_key("R"), "what is unknown is not said");
    assert!(first.cookie.is_none() && last.cookie.is_some_and(|cookie| cookie > 0));
    assert_eq!((last.model.as_deref(), last.answer), (None, false));
    assert_eq!(last.factors.get("V"), Some(&8.0));
}

#[test]
fn without_an_agent_the_program_serves_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path());
    let mut child = Command::new(&program)
        .env("TRIMTAB_HINTS", folder.path().join("none.sock"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port =
        lines.next().unwrap().unwrap().strip_prefix("port ").unwrap().parse::<u16>().unwrap();
    let mut received = Vec::new();
    TcpStream::connect(("127.0.0.1", port)).unwrap().read_to_end(&mut received).unwrap();
    assert_eq!(received.len(), 500_000);
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(
        said.contains("without hints: no agent takes hints at") && said.contains("none.sock"),
        "{said}"
    );
}

#[test]
fn what_was_refused_is_told_with_the_next_call_and_a_busy_agent_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hints.sock");
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
    let refusing = agent(listener(&path), |heard| match heard {
        1 => Some(Answer::Ok),
        _ => Some(Answer::Refused("no factor of that name".to_owned())),
    });
    let hints = Hints::connect_to(&path).unwrap();
    let mut live = Factors::new();
    live.set_named("viewers", 12.0).unwrap();
    let connection = hints.describe(&stream, Some("download"), &live).unwrap();
    hints.update(&connection, &live).unwrap();
    let error = loop {
        // The answer needs a moment; meanwhile an agent that is not scheduled may let its queue fill.
        match hints.update(&connection, &live) {
            Ok(()) | Err(HintError::Busy) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => break error,
        }
    };
    assert_eq!(error, HintError::Refused("no factor of that name".to_owned()));
    drop(hints);
    refusing.join().unwrap();

    // An agent that reads nothing.
    std::fs::remove_file(&path).unwrap();
    let _silent = listener(&path);
    let hints = Hints::connect_to(&path).unwrap();
    let mut sent = 0;
    let error = loop {
        match hints.update(&connection, &live) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(sent > 1 && error == HintError::Busy, "{sent}: {error}");
    assert!(matches!(hints.describe(&tcp, None, &live), Err(HintError::NotConnected(_))));
}
