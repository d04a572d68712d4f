//! A cgroup with a process that has connections, as the test wants them.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::net::sockopt::set_tcp_congestion;

use super::{cgroups, wait_for};

const CGROUP_VARIABLE: &str = "TRIMTAB_TEST_CONTAINER";
const ALGORITHM_VARIABLE: &str = "TRIMTAB_TEST_CONTAINER_ALGORITHM";
/// Orders for the process: open a connection, …
const OPEN: &str = "open";
/// … send on all that it has, or on one whose place follows, …
pub(crate) const SAY: &str = "say";
/// … and close the first of them.
pub(crate) const CLOSE: &str = "close";
/// Its answer when one is done.
const DONE: &str = "done";

/// Is the process in a cgroup, where the environment asks for it: does what each line orders.
pub(crate) fn run_if_asked() {
    let Some(cgroup) = std::env::var_os(CGROUP_VARIABLE) else { return };
    let procs = PathBuf::from(cgroup).join("cgroup.procs");
    std::fs::write(procs, std::process::id().to_string()).expect("join the cgroup");
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let algorithm = std::env::var(ALGORITHM_VARIABLE).expect("an algorithm");
    set_tcp_congestion(&listener, &algorithm).expect("TCP_CONGESTION");
    let mut open: Vec<(TcpStream, TcpStream)> = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let (order, place) = line.split_once(' ').unwrap_or((&line, ""));
        match order {
            OPEN => {
                let address = listener.local_addr().expect("address");
                let client = TcpStream::connect(address).expect("connect");
                open.push((listener.accept().expect("accept").0, client));
            }
            SAY => match place.parse::<usize>() {
                Ok(place) => say(&mut open[place]),
                Err(_) => open.iter_mut().for_each(say),
            },
            CLOSE => drop(open.remove(0)),
            other => panic!("{other}"),
        }
        println!("\n{DONE}");
    }
}

fn say((server, client): &mut (TcpStream, TcpStream)) {
    server.write_all(&[7; 1000]).expect("send");
    client.read_exact(&mut [0; 1000]).expect("receive");
}

/// A cgroup with such a process, gone when dropped.
pub(crate) struct Container {
    folder: PathBuf,
    process: Child,
    told: Lines<BufReader<ChildStdout>>,
}

impl Container {
    /// The process is the test of this name, which calls [`run_if_asked`]. `None` where no cgroup can
    /// be made, with the reason on the standard error.
    pub(crate) fn new(name: &str, test: &str, algorithm: &str) -> Option<Self> {
        let folder = cgroups().join(format!("trimtab-test-{}-{name}", std::process::id()));
        if let Err(error) = std::fs::create_dir_all(&folder) {
            eprintln!("skipped: no cgroup can be made here: {error}");
            return None;
        }
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CGROUP_VARIABLE, &folder)
            .env(ALGORITHM_VARIABLE, algorithm)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(process.stdout.take().unwrap()).lines();
        Some(Self { folder, process, told })
    }

    /// Its number.
    pub(crate) fn cgroup(&self) -> u64 {
        self.folder.metadata().unwrap().ino()
    }

    /// Its path, as in `/proc/PID/cgroup`.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.folder.strip_prefix(cgroups()).unwrap().display())
    }

    pub(crate) fn order(&mut self, what: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{what}").unwrap();
        assert!(self.told.any(|line| line.unwrap() == DONE), "{what}");
    }

    pub(crate) fn open(&mut self, connections: u32) {
        (0..connections).for_each(|_| self.order(OPEN));
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // It may have been killed by the test.
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The kernel needs a moment to see that its last process has ended.
        wait_for("an empty cgroup", || std::fs::remove_dir(&self.folder).ok());
    }
}
