//! The loader and the steerer: who has which rights, and what a steerer that somebody has taken over
//! can ask for.

use std::fs::{Permissions, read_dir, read_to_string, set_permissions};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg,
    sendmsg,
};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, getpid, kill_process, pidfd_getfd, pidfd_open,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};

use crate::common::{self, need_kernel, wait_for};
use crate::setup::Setup;

/// A steerer with this in its environment attacks its loader.
const ATTACKER: &str = "TRIMTAB_TEST_ATTACKER";
/// What the loader tells a steerer by.
const LOADER: &str = "TRIMTAB_LOADER";
/// The user without rights of every Linux (`nobody`).
const NOBODY: &str = "65534";

/// A field of `/proc/PID/status`.
fn field(status: &Path, name: &str) -> String {
    let text = read_to_string(status).expect("a process");
    let mut lines = text.lines().filter_map(|line| line.split_once(":\t"));
    let value = lines.find(|(field, _)| *field == name).expect("a field").1;
    value.to_owned()
}

/// A setup whose configuration every user may read.
fn open_setup(suffix: &str) -> Setup {
    let setup = Setup::new(suffix);
    set_permissions(setup.folder(), Permissions::from_mode(0o755)).unwrap();
    setup
}

fn is_there(pid: u32) -> bool {
    // A zombie has no program.
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

/// A connection of our algorithm.
fn connection(setup: &Setup) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    set_tcp_congestion(&listener, &setup.algorithm()).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

#[test]
fn the_steerer_has_no_rights_in_any_thread_and_steers() {
    need_kernel!();
    let setup = open_setup("_P");
    setup.configure("user = \"nobody\"", "[[rule]]\nname = \"all\"\nport = \"1-65535\"");
    let agent = setup.start();
    let (loader, steerer) = (agent.pid(), agent.steerer());
    let threads: Vec<PathBuf> = read_dir(format!("/proc/{steerer}/task"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("status"))
        .collect();
    assert!(threads.len() >= 3, "{threads:?}");
    for thread in &threads {
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(field(thread, set), "0000000000000000", "{set} of {thread:?}");
        }
        for ids in ["Uid", "Gid"] {
            assert_eq!(field(thread, ids), [NOBODY; 4].join("\t"), "{thread:?}");
        }
        assert_eq!(field(thread, "NoNewPrivs"), "1");
        // By a filter.
        assert_eq!(field(thread, "Seccomp"), "2");
    }
    let rights = field(Path::new(&format!("/proc/{loader}/status")), "CapEff");
    assert_ne!(rights, "0000000000000000");
    let (_client, server) = connection(&setup);
    let port = server.local_addr().unwrap().port();
    let flow = wait_for("the connection", || agent.flow(port));
    assert_eq!(flow.rule, "all");
}

#[test]
fn a_configuration_that_the_user_cannot_read_is_one_clear_error() {
    need_kernel!();
    let setup = open_setup("_Q");
    setup.configure("user = \"nobody\"", "");
    set_permissions(setup.config(), Permissions::from_mode(0o600)).unwrap();
    let mut agent = setup.spawn();
    assert_eq!(agent.wait().code(), Some(2));
    let log = agent.log();
    assert!(log.contains("agent.toml: permission denied") && log.contains("chgrp"), "{log}");
    let token = setup.folder().join("edge.token");
    std::fs::write(&token, "secret").unwrap();
    set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    set_permissions(setup.config(), Permissions::from_mode(0o644)).unwrap();
    let fleet = "[fleet]\nengine = \"http://127.0.0.1:1\"\ntoken_file = \"edge.token\"";
    setup.configure("user = \"nobody\"", fleet);
    let mut agent = setup.spawn();
    assert_eq!(agent.wait().code(), Some(2));
    let log = agent.log();
    assert!(log.contains("edge.token: permission denied") && log.contains("chgrp"), "{log}");
    setup.configure("user = \"no-such-user\"", "");
    let mut agent = setup.spawn();
    assert_eq!(agent.wait().code(), Some(2));
    assert!(agent.log().contains("no such user"), "{}", agent.log());
    assert!(!setup.options().folder.exists());
}

#[test]
fn killing_either_process_ends_both_and_connections_go_on() {
    need_kernel!();
    let setup = open_setup("_R");
    setup.configure("user = \"nobody\"", "");
    for kills_loader in [true, false] {
        let mut agent = setup.start();
        let (mut client, mut server) = connection(&setup);
        let port = server.local_addr().unwrap().port();
        wait_for("the connection", || agent.flow(port));
        let steerer = agent.steerer();
        if kills_loader {
            agent.signal(Signal::KILL);
        } else {
            let pid = Pid::from_raw(steerer.try_into().unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
        let status = agent.wait();
        wait_for("the end of the steerer", || (!is_there(steerer)).then_some(()));
        if !kills_loader {
            assert_eq!(status.code(), Some(2));
            assert!(agent.log().contains("was killed (signal: 9"), "{}", agent.log());
        }
        for _ in 0..10 {
            use std::io::{Read as _, Write as _};
            server.write_all(&[1; 100_000]).unwrap();
            client.read_exact(&mut [0; 100_000]).unwrap();
        }
        // The next one takes it up, at once.
        let next = setup.start();
        assert!(next.flow(port).is_some());
    }
}

/// Whether this process is to be an attacker in the place of the steerer.
pub(crate) fn is_attacker() -> bool {
    std::env::var_os(ATTACKER).is_some() && std::env::var_os(LOADER).is_some()
}

/// The attacker's end of the channel.
struct Channel(OwnedFd);

impl Channel {
    fn open() -> Self {
        let told = std::env::var(LOADER).unwrap();
        let number = told.split_once(':').unwrap().0.parse().unwrap();
        let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        Self(pidfd_getfd(own, number, PidfdGetfdFlags::empty()).unwrap())
    }

    fn send(&self, bytes: &[u8], descriptors: usize) -> Result<(), Errno> {
        let file = std::fs::File::open("/dev/null").unwrap();
        let all = vec![file.as_fd(); descriptors];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if descriptors > 0 {
            assert!(control.push(SendAncillaryMessage::ScmRights(&all)));
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).map(drop)
    }

    /// What the loader answers to these bytes.
    fn ask(&self, bytes: &[u8], descriptors: usize) -> Value {
        self.send(bytes, descriptors).unwrap();
        let mut buffer = vec![0; 1 << 18];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut buffer)];
        let got = recvmsg(&self.0, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
        serde_json::from_slice(&buffer[..got.bytes]).unwrap()
    }

    fn is_refused(&self, bytes: &[u8], descriptors: usize, why: &str) {
        let answer = self.ask(bytes, descriptors);
        let said = answer["Err"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(said.contains(why), "{said} for {}", String::from_utf8_lossy(bytes));
    }
}

/// Tries what a steerer that somebody has taken over could try.
pub(crate) fn attack() {
    let channel = Channel::open();
    channel.is_refused(b"{\"formers\":{}}", 0, "not taken");
    channel.is_refused(b"\xff\0{{{{", 0, "no request");
    channel.is_refused(b"{\"take\":{\"folder\":\"/etc\"}}", 0, "no request");
    channel.is_refused(&[b' '; 70_000], 0, "at most");
    channel.is_refused(b"{\"formers\":{}}", 3, "no descriptors");
    let taken = channel.ask(b"{\"take\":{}}", 0);
    assert!(taken["Ok"]["maps"].as_u64().is_some(), "{taken}");
    channel.is_refused(b"{\"take\":{}}", 0, "taken already");
    for (request, why) in [
        (json!({"order": {"orders": [{"cookie": 1, "from": "cubic", "to": "bbr"}]}}), "\"bbr\""),
        (json!({"walk": {"far": false, "place": 99}}), "no network namespace 99"),
        (json!({"walk": {"far": false, "place": -1}}), "no request"),
        (json!({"walk": {"path": "/proc/1/ns/net"}}), "no request"),
        (json!({"alive": {"status": "x\nMAINPID=1"}}), "a status is a line"),
        (json!({"set-default": {}}), "no default algorithm"),
        (
            json!({"follow": {"holdback": 0.0, "list": [{"netns": null, "cgroup": null,
                "ports": [1, 2], "to": null, "gives": {"algorithm": "cubic"}}]}}),
            "\"cubic\"",
        ),
    ] {
        channel.is_refused(request.to_string().as_bytes(), 0, why);
    }
    // It cannot do for itself what the loader refuses either.
    let options = trimtab_kernel::Options {
        folder: PathBuf::from("/sys/fs/bpf/trimtab-test-attack"),
        ..trimtab_kernel::Options::default()
    };
    trimtab_kernel::Datapath::load(&options).unwrap_err();
    assert!(trimtab_kernel::Assigner::load(Path::new("/sys/fs/bpf")).is_err());
    let own = std::fs::File::open("/proc/self/ns/net").unwrap();
    move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Network)).unwrap_err();
    std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").unwrap_err();
    assert_eq!(channel.ask(b"{\"formers\":{}}", 0), json!({"Ok": []}));
}

#[test]
fn a_steerer_that_was_taken_over_gets_nothing_more_out_of_the_loader() {
    need_kernel!();
    let setup = open_setup("_S");
    setup.configure("user = \"nobody\"", "[[rule]]\nport = 443\nassign = true");
    let mut agent = setup.spawn_with(&[(ATTACKER, "1".as_ref())]);
    let status = agent.wait();
    let log = agent.log();
    assert!(status.success(), "{status}: {log}");
    let refused = log.matches("the loader has refused a request of the steerer").count();
    // Ten are reported.
    assert_eq!(refused, 10, "{log}");
}
