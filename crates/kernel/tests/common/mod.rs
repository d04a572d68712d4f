//! A datapath of the test's own, and two hosts with a wire between them, in network namespaces of their own.
#![allow(dead_code, reason = "each file of tests uses a part")]

pub(crate) mod container;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trimtab_kernel::{Datapath, Doctor, Flow, Options};

/// Why the tests of this file cannot run here; `None` when they can. In CI they have to, and a program
/// that the verifier refuses is a failure anywhere.
pub(crate) fn reason_to_skip() -> Option<String> {
    // The doctor tries the programs out, which takes a while: once is enough.
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return Some("it needs root, for eBPF and network namespaces".to_owned());
        }
        let findings = Doctor::default().examine();
        let bad = findings.iter().filter(|f| f.health == trimtab_kernel::Health::Bad);
        let refused = findings.iter().find(|f| f.is_refusal());
        assert_eq!(refused, None, "this kernel has all that is needed, and refuses a program");
        let bad: Vec<String> = bad.map(ToString::to_string).collect();
        (!bad.is_empty()).then(|| bad.join("; "))
    });
    if let Some(reason) = reason {
        let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
        assert!(!in_ci, "CI must run this test: {reason}");
    }
    reason.clone()
}

/// Keeps a name for this process until it is dropped: another run of the same tests waits for it.
/// The kernel knows an algorithm's name once for the whole machine, and 15 letters of it, which
/// leaves no room for a process's number.
pub(crate) fn claim(name: &str) -> File {
    let path = std::env::temp_dir().join(format!("trimtab-test-{name}.lock"));
    let file = File::create(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("lock");
    file
}

/// Leaves the test, and says why, where it cannot run.
macro_rules! need_kernel {
    () => {
        if let Some(reason) = common::reason_to_skip() {
            eprintln!("skipped: {reason}");
            return;
        }
    };
}
pub(crate) use need_kernel;

/// A datapath under a name and in a folder of its own, gone when dropped.
pub(crate) struct Loaded {
    pub(crate) options: Options,
    datapath: Option<Datapath>,
    _claim: File,
}

impl Loaded {
    pub(crate) fn new(suffix: &str, slots: u32) -> Self {
        let claim = claim(suffix);
        let folder = PathBuf::from(format!("/sys/fs/bpf/trimtab-test-{suffix}"));
        let options = Options { folder, suffix: suffix.to_owned(), slots, ..Options::default() };
        // What a test that was killed has left.
        trimtab_kernel::unload_pins(&options.folder).expect("clean up");
        let datapath = Datapath::load(&options).expect("load");
        Self { options, datapath: Some(datapath), _claim: claim }
    }

    pub(crate) fn datapath(&self) -> &Datapath {
        self.datapath.as_ref().expect("loaded")
    }

    /// Closes what this process holds of it, as its end does.
    pub(crate) fn let_go(&mut self) {
        drop(self.datapath.take());
    }

    /// The connection whose local port this is.
    pub(crate) fn flow(&self, port: u16) -> Option<Flow> {
        self.datapath().flows().find(|flow| flow.identity().local.port() == port)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        drop(self.datapath.take());
        if let Err(error) = trimtab_kernel::unload_pins(&self.options.folder) {
            eprintln!("{}: {error}", self.options.folder.display());
        }
    }
}

/// Where the cgroup file system of the second version is mounted.
pub(crate) fn cgroups() -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let line = lines.find(|fields| fields[2] == "cgroup2").expect("a kernel with cgroups");
    PathBuf::from(line[1])
}

fn run(program: &str, arguments: &str) {
    let output =
        Command::new(program).args(arguments.split_whitespace()).output().expect("iproute2");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {error}");
}

fn ip(arguments: &str) {
    run("ip", arguments);
}

/// Two hosts, `NAME-a` at 10.77.1.1 and `NAME-b` at 10.77.2.1, and a router `NAME-r` between them: a queue of the
/// sending host itself would stay short, since Linux keeps a connection from filling it (TCP small queues).
pub(crate) struct Wire {
    name: String,
    _claim: File,
}

pub(crate) const A: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
pub(crate) const A6: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 1);
const SIDES: [&str; 3] = ["r", "a", "b"];

impl Wire {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("tt-{name}");
        let wire = Self { _claim: claim(&name), name };
        wire.remove(); // what a test that was killed has left
        for side in SIDES {
            ip(&format!("netns add {}", wire.side(side)));
        }
        let router = wire.side("r");
        for (side, net) in [("a", 1), ("b", 2)] {
            let host = wire.side(side);
            ip(&format!("-n {host} link add wire type veth peer name to-{side} netns {router}"));
            ip(&format!("-n {host} addr add 10.77.{net}.1/24 dev wire"));
            ip(&format!("-n {host} link set dev lo up"));
            ip(&format!("-n {host} link set dev wire up"));
            ip(&format!("-n {router} addr add 10.77.{net}.254/24 dev to-{side}"));
            ip(&format!("-n {router} link set dev to-{side} up"));
            ip(&format!("-n {host} route add default via 10.77.{net}.254"));
        }
        let forward = || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1");
        wire.spawn("r", forward).join().expect("thread").expect("forward");
        wire
    }

    fn side(&self, side: &str) -> String {
        format!("{}-{side}", self.name)
    }

    fn remove(&self) {
        for side in SIDES {
            let _ = Command::new("ip").args(["netns", "del", &self.side(side)]).output();
        }
    }

    /// From `a` to `b` the router forwards this rate, behind a buffer of so many bytes.
    pub(crate) fn limit(&self, rate: &str, buffer: usize) {
        let router = self.side("r");
        let shape = format!(
            "-n {router} qdisc replace dev to-b root tbf rate {rate} burst 3000 limit {buffer}"
        );
        run("tc", &shape);
        // Packets and not segments of 64 kB.
        for (side, device) in [("a", "wire"), ("r", "to-b")] {
            let host = self.side(side);
            ip(&format!("-n {host} link set dev {device} gso_max_segs 1"));
        }
    }

    /// New connections of `a` begin with so many packets.
    pub(crate) fn set_initial_window(&self, packets: u32) {
        let host = self.side("a");
        ip(&format!("-n {host} route change default via 10.77.1.254 initcwnd {packets}"));
    }

    /// What the kernel says of the connections from this port of `a`, in the words of `ss`.
    pub(crate) fn socket_info(&self, port: u16) -> String {
        let port = format!(":{port}");
        let output = Command::new("ip")
            .args(["netns", "exec", &self.side("a"), "ss", "-tinH", "sport", "=", &port])
            .output()
            .expect("iproute2");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Gives both hosts an IPv6 address, too: [`A6`] in `a`.
    pub(crate) fn address_v6(&self) {
        let router = self.side("r");
        for (side, net) in [("a", 1), ("b", 2)] {
            let host = self.side(side);
            ip(&format!("-n {host} addr add fd77:{net}::1/64 dev wire nodad"));
            ip(&format!("-n {router} addr add fd77:{net}::fe/64 dev to-{side} nodad"));
            ip(&format!("-n {host} -6 route add default via fd77:{net}::fe"));
        }
        let forward = || std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1");
        self.spawn("r", forward).join().expect("thread").expect("forward");
    }

    /// Runs something in one of the namespaces, on a thread of its own.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        side: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let file = File::open(format!("/run/netns/{}", self.side(side))).expect("namespace");
        std::thread::spawn(move || {
            use std::os::fd::AsFd;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("enter it");
            work()
        })
    }

    /// The system's default for new connections of a namespace.
    pub(crate) fn set_default(&self, side: &str, name: &str) {
        let name = name.to_owned();
        self.spawn(side, move || std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", name))
            .join()
            .expect("thread")
            .expect("set the default");
    }

    /// A server in `a`, whose algorithm is `name`: sends every client zeros, until it has sent `bytes` or the client
    /// goes; serves so many clients.
    pub(crate) fn serve(
        &self,
        name: &str,
        port: u16,
        bytes: u64,
        clients: usize,
    ) -> JoinHandle<()> {
        self.serve_at(A.into(), name, port, bytes, clients)
    }

    /// The same at another address of `a`.
    pub(crate) fn serve_at(
        &self,
        address: IpAddr,
        name: &str,
        port: u16,
        bytes: u64,
        clients: usize,
    ) -> JoinHandle<()> {
        let name = name.to_owned();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server = self.spawn("a", move || {
            let listener = TcpListener::bind((address, port)).expect("listen");
            rustix::net::sockopt::set_tcp_congestion(&listener, &name).expect("TCP_CONGESTION");
            ready.send(()).expect("the test waits");
            for _ in 0..clients {
                let (mut stream, _) = listener.accept().expect("accept");
                std::thread::spawn(move || {
                    let zeros = [0; 1 << 16];
                    let mut left = bytes;
                    while left > 0 {
                        let now = left.min(zeros.len() as u64) as usize;
                        if stream.write_all(&zeros[..now]).is_err() {
                            return;
                        }
                        left -= now as u64;
                    }
                });
            }
        });
        is_ready.recv().expect("the server is there");
        server
    }

    /// What the kernel says of the connection from this port of `a` (`ss -tin`).
    pub(crate) fn transport(&self, port: u16) -> String {
        let arguments =
            format!("netns exec {} ss -Htin state established sport = :{port}", self.side("a"));
        let output = Command::new("ip").args(arguments.split_whitespace()).output();
        String::from_utf8_lossy(&output.expect("iproute2").stdout).into_owned()
    }

    /// A client in `b`, which reads for so long or until the end; gives the bytes.
    pub(crate) fn fetch(&self, port: u16, at_most: Duration) -> JoinHandle<u64> {
        self.fetch_at(A.into(), port, at_most)
    }

    /// A client in `b`, which reads to the end. An emulated machine that others keep busy takes half a
    /// minute for 12 MB.
    pub(crate) fn fetch_all(&self, port: u16) -> JoinHandle<u64> {
        self.fetch(port, Duration::from_secs(180))
    }

    /// As [`Wire::fetch`], from another address of `a`.
    pub(crate) fn fetch_at(
        &self,
        address: IpAddr,
        port: u16,
        at_most: Duration,
    ) -> JoinHandle<u64> {
        self.spawn("b", move || {
            let mut stream = TcpStream::connect((address, port)).expect("connect");
            let start = std::time::Instant::now();
            let mut buffer = vec![0; 1 << 16];
            let mut sum = 0;
            stream.set_read_timeout(Some(Duration::from_millis(500))).expect("timeout");
            while start.elapsed() < at_most {
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(n) => sum += n as u64,
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(e) => panic!("read: {e}"),
                }
            }
            sum
        })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Tries until something is there, for at most a minute: an agent's start takes 15 seconds on a
/// machine that also builds.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
