//! How many slots the connections of one cgroup may hold. On a real kernel; skipped, with the reason,
//! where it or the rights are missing.

mod common;

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use rustix::net::sockopt::set_tcp_congestion;
use trimtab_kernel::{Datapath, FlowId, Held, Options, Origin};

use common::{Loaded, cgroups, need_kernel, wait_for};

const CGROUP_VARIABLE: &str = "TRIMTAB_TEST_CGROUP";
const ALGORITHM_VARIABLE: &str = "TRIMTAB_TEST_ALGORITHM";
/// Orders for the process in the cgroup, and its answer when one is done.
const OPEN: &str = "open";
const SAY: &str = "say";
const CLOSE: &str = "close";
const DONE: &str = "done";

/// Not a test by itself: a process in a cgroup, which opens a connection, sends on all that it has,
/// or closes the first of them, by a line for each.
#[test]
fn connections_of_a_cgroup() {
    let Some(cgroup) = std::env::var_os(CGROUP_VARIABLE) else { return };
    let procs = PathBuf::from(cgroup).join("cgroup.procs");
    std::fs::write(procs, std::process::id().to_string()).expect("join the cgroup");
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let algorithm = std::env::var(ALGORITHM_VARIABLE).expect("an algorithm");
    set_tcp_congestion(&listener, &algorithm).expect("TCP_CONGESTION");
    let mut open: Vec<(TcpStream, TcpStream)> = Vec::new();
    for line in std::io::stdin().lines() {
        match line.expect("a line").as_str() {
            OPEN => {
                let address = listener.local_addr().expect("address");
                let client = TcpStream::connect(address).expect("connect");
                open.push((listener.accept().expect("accept").0, client));
            }
            SAY => {
                for (server, client) in &mut open {
                    server.write_all(&[7; 1000]).expect("send");
                    client.read_exact(&mut [0; 1000]).expect("receive");
                }
            }
            CLOSE => drop(open.remove(0)),
            other => panic!("{other}"),
        }
        println!("\n{DONE}");
    }
}

/// A cgroup with such a process.
struct Container {
    folder: PathBuf,
    cgroup: u64,
    process: Child,
    told: Lines<BufReader<ChildStdout>>,
}

impl Container {
    /// `None` where no cgroup can be made, with the reason on the standard error.
    fn new(name: &str, algorithm: &str) -> Option<Self> {
        let folder = cgroups().join(format!("trimtab-test-{}-{name}", std::process::id()));
        if let Err(error) = std::fs::create_dir_all(&folder) {
            eprintln!("skipped: no cgroup can be made here: {error}");
            return None;
        }
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "connections_of_a_cgroup", "--nocapture"])
            .env(CGROUP_VARIABLE, &folder)
            .env(ALGORITHM_VARIABLE, algorithm)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let told = BufReader::new(process.stdout.take().unwrap()).lines();
        let cgroup = folder.metadata().unwrap().ino();
        Some(Self { folder, cgroup, process, told })
    }

    fn order(&mut self, what: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{what}").unwrap();
        assert!(self.told.any(|line| line.unwrap() == DONE), "{what}");
    }

    fn open(&mut self, connections: u32) {
        (0..connections).for_each(|_| self.order(OPEN));
    }

    fn holds(&self, slots: u32) -> Held {
        Held { cgroup: self.cgroup, slots }
    }

    fn kill(&mut self) {
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

/// Sorted, as the ledger has them.
fn all(mut held: Vec<Held>) -> Vec<Held> {
    held.sort_by_key(|one| one.cgroup);
    held
}

#[test]
fn a_cgroup_at_its_share_leaves_slots_to_others() {
    need_kernel!();
    let loaded = Loaded::new("_1", 8);
    let datapath = loaded.datapath();
    assert_eq!(datapath.cgroup_slots(), 8, "all, by default");
    datapath.set_cgroup_slots(2);
    let Some(mut many) = Container::new("many", datapath.name()) else { return };
    let mut few = Container::new("few", datapath.name()).unwrap();
    many.open(5);
    let stats = datapath.stats();
    assert_eq!((stats.live, stats.over_quota, stats.slotless), (2, 3, 0), "{stats:?}");
    assert_eq!(datapath.held(), [many.holds(2)]);
    few.open(2);
    assert_eq!(datapath.held(), all(vec![many.holds(2), few.holds(2)]));
    assert_eq!((datapath.stats().live, datapath.stats().over_quota), (4, 3));

    // One that waits has the slot of one that closes.
    let opened = datapath.stats().opened;
    many.order(CLOSE);
    wait_for("the next in its slot", || {
        many.order(SAY);
        (datapath.stats().opened == opened + 1).then_some(())
    });
    assert_eq!(datapath.held(), all(vec![many.holds(2), few.holds(2)]));
    assert_eq!(datapath.stats().over_quota, 3, "each is counted once");

    // A larger share acts on those that are open.
    datapath.set_cgroup_slots(3);
    wait_for("another slot", || {
        many.order(SAY);
        (datapath.held() == all(vec![many.holds(3), few.holds(2)])).then_some(())
    });
    many.kill();
    wait_for("their end", || (datapath.held() == [few.holds(2)]).then_some(()));
    assert_eq!(datapath.stats().live, 2);
    few.order(CLOSE);
    few.order(CLOSE);
    wait_for("the end of all", || datapath.held().is_empty().then_some(()));
    assert_eq!(datapath.stats().live, 0);
}

#[test]
fn a_slot_that_is_taken_back_counts_no_more() {
    need_kernel!();
    let mut loaded = Loaded::new("_2", 8);
    let datapath = loaded.datapath();
    datapath.set_cgroup_slots(2);
    let Some(mut one) = Container::new("one", datapath.name()) else { return };
    one.open(2);
    assert_eq!(datapath.held(), [one.holds(2)]);

    // Out of its slot, and into one again.
    let ids = datapath.flows().map(|flow| flow.id()).collect();
    assert_eq!(datapath.evict(&ids).len(), 2);
    assert_eq!(datapath.held(), []);
    one.order(SAY);
    assert_eq!(datapath.held(), [one.holds(2)]);

    // A slot with the number of a connection that has no socket, as in lifetime.rs.
    let slots = MapHandle::from_pinned_path(datapath.folder().join("tt_slots")).unwrap();
    let key = datapath.flows().next().unwrap().slot_number().to_ne_bytes();
    let mut slot = slots.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    slot[..8].copy_from_slice(&1000_u64.to_ne_bytes());
    slots.update(&key, &slot, MapFlags::ANY).unwrap();
    drop(slots);
    assert_eq!(datapath.reap().unwrap(), [FlowId(1000)]);
    assert_eq!(datapath.held(), [one.holds(1)]);
    one.open(2);
    assert_eq!(datapath.held(), [one.holds(2)]);

    // The next process counts on.
    let more = Options { slots: 16, ..loaded.options.clone() };
    loaded.let_go();
    let datapath = Datapath::load(&loaded.options).unwrap();
    assert_eq!(datapath.origin(), Origin::Adopted);
    assert_eq!((datapath.held(), datapath.cgroup_slots()), (vec![one.holds(2)], 2));
    drop(datapath);

    // Other programs have slots of their own.
    let datapath = Datapath::load(&more).unwrap();
    assert!(matches!(datapath.origin(), Origin::Replaced(_)), "{:?}", datapath.origin());
    assert_eq!((datapath.held(), datapath.cgroup_slots()), (vec![], 16));
    one.open(3);
    one.order(SAY);
    assert_eq!(datapath.held(), [one.holds(3)]);
    one.kill();
    wait_for("the end of all", || {
        (datapath.held().is_empty() && datapath.formers().is_empty()).then_some(())
    });
}
