//! A datapath of the test's own, and two hosts with a wire between them, in network namespaces of their own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use trimtab_tcp::{Datapath, Doctor, Flow, Options};

/// Why the tests of this file cannot run here; `None` when they can.
pub(crate) fn reason_to_skip() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it needs root, for eBPF and network namespaces".to_owned());
    }
    let bad: Vec<String> = Doctor::default()
        .examine()
        .iter()
        .filter(|f| f.health == trimtab_tcp::Health::Bad)
        .map(ToString::to_string)
        .collect();
    (!bad.is_empty()).then(|| bad.join("; "))
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
}

impl Loaded {
    pub(crate) fn new(suffix: &str, slots: u32) -> Self {
        let folder = PathBuf::from(format!("/sys/fs/bpf/trimtab-test-{suffix}"));
        let options = Options { folder, suffix: suffix.to_owned(), slots, ..Options::default() };
        // What a test that was killed has left.
        trimtab_tcp::unload_pins(&options.folder).expect("clean up");
        let datapath = Datapath::load(&options).expect("load");
        Self { options, datapath: Some(datapath) }
    }

    pub(crate) fn datapath(&self) -> &Datapath {
        self.datapath.as_ref().expect("loaded")
    }

    /// The connection whose local port this is.
    pub(crate) fn flow(&self, port: u16) -> Option<Flow> {
        self.datapath().flows().find(|flow| flow.identity().local.port() == port)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        drop(self.datapath.take());
        if let Err(error) = trimtab_tcp::unload_pins(&self.options.folder) {
            eprintln!("{}: {error}", self.options.folder.display());
        }
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two namespaces, `NAME-a` at 10.77.0.1 and `NAME-b` at 10.77.0.2, and a wire between them.
pub(crate) struct Wire {
    name: String,
}

pub(crate) const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

impl Wire {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("tt-{name}");
        for side in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &format!("{name}-{side}")]).output();
        }
        let wire = Self { name };
        for side in ["a", "b"] {
            ip(&format!("netns add {}", wire.side(side)));
        }
        ip(&format!(
            "-n {} link add wire type veth peer name wire netns {}",
            wire.side("a"),
            wire.side("b")
        ));
        for (side, address) in [("a", "10.77.0.1/24"), ("b", "10.77.0.2/24")] {
            let ns = wire.side(side);
            ip(&format!("-n {ns} addr add {address} dev wire"));
            ip(&format!("-n {ns} link set wire up"));
            ip(&format!("-n {ns} link set lo up"));
        }
        wire
    }

    fn side(&self, side: &str) -> String {
        format!("{}-{side}", self.name)
    }

    /// From `a` to `b` the wire carries this rate, behind a buffer of so many bytes.
    pub(crate) fn limit(&self, rate: &str, buffer: usize) {
        let ns = self.side("a");
        let shape =
            format!("qdisc replace dev wire root tbf rate {rate} burst 3000 limit {buffer}");
        let output = Command::new("tc")
            .args(["-n", &ns])
            .args(shape.split_whitespace())
            .output()
            .expect("tc");
        assert!(output.status.success(), "tc {shape}: {}", String::from_utf8_lossy(&output.stderr));
        // One packet a buffer, or the queue is counted in segments of 64 kB.
        let output = Command::new("ip")
            .args(["-n", &ns, "link", "set", "wire", "gso_max_segs", "1"])
            .output()
            .expect("ip");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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

    /// A server in `a`, whose algorithm is `name`: sends every client zeros, until it has sent `bytes` or the client
    /// goes; serves so many clients.
    pub(crate) fn serve(
        &self,
        name: &str,
        port: u16,
        bytes: u64,
        clients: usize,
    ) -> JoinHandle<()> {
        let name = name.to_owned();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server = self.spawn("a", move || {
            let listener = TcpListener::bind((A, port)).expect("listen");
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

    /// A client in `b`, which reads for so long or until the end; gives the bytes.
    pub(crate) fn fetch(&self, port: u16, at_most: Duration) -> JoinHandle<u64> {
        self.spawn("b", move || {
            let address = SocketAddr::from((A, port));
            let mut stream = TcpStream::connect(address).expect("connect");
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
        for side in ["a", "b"] {
            let _ = Command::new("ip").args(["netns", "del", &self.side(side)]).output();
        }
    }
}

/// Tries until something is there, for at most five seconds.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
