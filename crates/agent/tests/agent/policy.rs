//! Rules on a real kernel: which connections they take, and what an administrator does by hand.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use trimtab_agent::Standing;

use crate::common::{self, Wire, need_kernel, wait_for};
use crate::setup::Setup;

#[test]
fn a_network_namespace_and_a_prefix_pick_the_rule() {
    need_kernel!();
    let setup = Setup::new("_c");
    let wire = Wire::new("policy");
    setup.configure(
        "",
        "[[rule]]\nname = \"elsewhere\"\nto = \"10.78.0.0/16\"\nknobs = { delta = 0.4 }\n\
         [[rule]]\nname = \"other-namespace\"\nnetns = \"/run/netns/tt-policy-b\"\nknobs = { delta = 0.3 }\n\
         [[rule]]\nname = \"here\"\nnetns = \"/run/netns/tt-policy-a\"\nto = [\"10.77.2.0/24\"]\n\
         knobs = { delta = 0.2 }\n",
    );
    let agent = setup.start();
    wire.limit("20mbit", 100_000);
    let server = wire.serve(&setup.algorithm(), 7111, 2_000_000, 1);
    let client = wire.fetch(7111, Duration::from_secs(20));
    let flow = wait_for("the connection", || agent.flow(7111));
    assert_eq!((flow.rule.as_str(), flow.standing), ("here", Standing::Set));
    assert!((flow.delta.unwrap() - 0.2).abs() < 1e-3, "{flow:?}");
    assert_eq!(client.join().unwrap(), 2_000_000);
    server.join().unwrap();
}

const CGROUP_VARIABLE: &str = "TRIMTAB_TEST_CGROUP";

/// Not a test by itself: joins a cgroup, opens a connection there, and tells its port.
#[test]
fn connection_of_a_cgroup() {
    let Ok(cgroup) = std::env::var(CGROUP_VARIABLE) else { return };
    let pid = std::process::id().to_string();
    std::fs::write(PathBuf::from(cgroup).join("cgroup.procs"), pid).expect("join it");
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let stream = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let algorithm = std::env::var("TRIMTAB_TEST_ALGORITHM").expect("an algorithm");
    rustix::net::sockopt::set_tcp_congestion(&stream, &algorithm).expect("TCP_CONGESTION");
    println!("port {}", stream.local_addr().expect("address").port());
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// A cgroup of the second version, gone when dropped.
pub(crate) struct Cgroup(pub(crate) PathBuf);

impl Cgroup {
    pub(crate) fn new(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let folder = PathBuf::from(line.split(' ').nth(1)?).join(name);
        std::fs::create_dir_all(folder.join("inner")).ok()?;
        Some(Self(folder))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel needs a moment to see that its last process has ended.
        for folder in [self.0.join("inner"), self.0.clone()] {
            wait_for("an empty cgroup", || std::fs::remove_dir(&folder).ok());
        }
    }
}

#[test]
fn a_cgroup_picks_the_rule_for_all_below_it() {
    need_kernel!();
    let name = format!("trimtab-test-{}", std::process::id());
    let Some(cgroup) = Cgroup::new(&name) else {
        eprintln!("skipped: no cgroup can be made here");
        return;
    };
    let setup = Setup::new("_d");
    setup.configure(
        "",
        &format!(
            "[[rule]]\nname = \"other\"\ncgroup = \"/{name}-other\"\n\
             [[rule]]\nname = \"ours\"\ncgroup = \"/{name}\"\nknobs = {{ delta = 0.2 }}\n"
        ),
    );
    let agent = setup.start();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "policy::connection_of_a_cgroup", "--nocapture"])
        .env(CGROUP_VARIABLE, cgroup.0.join("inner"))
        .env("TRIMTAB_TEST_ALGORITHM", setup.algorithm())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("port ")?.1.parse().ok())
        .expect("its port");
    let flow = wait_for("the connection", || agent.flow(port));
    assert_eq!((flow.rule.as_str(), flow.delta), ("ours", Some(0.2)), "{flow:?}");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_systems_default_is_set_and_left_to_an_administrator_who_changes_it() {
    need_kernel!();
    let setup = Setup::new("_e");
    let wire = Wire::new("sysctl");
    let sysctl = "/proc/sys/net/ipv4/tcp_congestion_control";
    let read = || {
        wire.spawn("a", move || std::fs::read_to_string(sysctl).unwrap().trim().to_owned())
            .join()
            .unwrap()
    };
    setup.configure("default_algorithm = true", "");
    let before = read();
    // Of the namespace in which the agent runs, which is not the machine's here.
    let spawn = || {
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    use std::os::fd::AsFd;
                    let namespace = std::fs::File::open("/run/netns/tt-sysctl-a").unwrap();
                    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
                    rustix::thread::move_into_link_name_space(namespace.as_fd(), kind).unwrap();
                    setup.spawn()
                })
                .join()
                .unwrap()
        })
    };
    let mut agent = setup.started(spawn());
    assert_eq!(read(), setup.algorithm());
    // Killed and started again, it still knows what was there before.
    agent.signal(rustix::process::Signal::KILL);
    agent.wait();
    let mut agent = setup.started(spawn());
    agent.signal(rustix::process::Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    assert_eq!(read(), before);

    let mut agent = setup.started(spawn());
    wire.set_default("a", "reno");
    let status = wait_for("the notice", || agent.status().filter(|s| !s.troubles.is_empty()));
    assert!(status.troubles[0].contains("was set to reno by hand, and is left so"), "{status}");
    assert!(agent.log().contains("was set to reno by hand"), "{}", agent.log());
    assert_eq!(read(), "reno");
    agent.signal(rustix::process::Signal::TERM);
    assert_eq!(agent.wait().code(), Some(0));
    assert_eq!(read(), "reno");
}
