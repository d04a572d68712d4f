//! Namespaces, addresses and what is left of them.

use std::io::Read;
use std::process::{Command, Stdio};

use trimtab_emu::{EmuError, Namespace, ServerSide, Topology};

use crate::support::topology;

/// The devices of a namespace.
fn devices(namespace: &Namespace) -> Vec<String> {
    let table = namespace.proc_net("dev").unwrap();
    let mut names: Vec<String> =
        table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    names.sort();
    names
}

/// A namespace that is nobody else's, in which links can be counted.
fn playground() -> Option<Topology> {
    topology()
}

#[test]
fn links_from_one_place_have_their_own_addresses_and_vanish() {
    let Some(playground) = playground() else { return };
    let before = devices(playground.client());
    let addresses = playground.client().run(|| {
        let links: Vec<Topology> =
            (0..5).map(|_| Topology::new(ServerSide::Here).unwrap()).collect();
        let mut all: Vec<_> =
            links.iter().flat_map(|l| [l.client_address(), l.server_address()]).collect();
        all.sort();
        all.dedup();
        all
    });
    assert_eq!(addresses.len(), 10);
    assert!(!addresses.contains(&playground.client_address()));
    // The kernel destroys devices a moment after their last file is closed.
    let gone = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        devices(playground.client()) == before
    });
    assert!(gone, "{:?}", devices(playground.client()));
}

#[test]
fn links_nest_four_deep() {
    let Some(playground) = playground() else { return };
    /// Makes a link in the client's namespace of `outer`, and another one in that; the depth that it came to.
    fn deeper(outer: &Namespace) -> usize {
        let file = outer.run(|| Topology::new(ServerSide::Here));
        match file {
            Ok(inner) => 1 + deeper(inner.client()),
            Err(EmuError::TooMany { links: 0 }) => 0,
            Err(e) => panic!("{e}"),
        }
    }
    // The playground is the first.
    assert_eq!(deeper(playground.client()), 3);
}

#[test]
fn a_namespace_has_its_own_settings_and_programs() {
    let Some(topology) = topology() else { return };
    topology.server().set_sysctl("net.ipv4.tcp_rmem", "4096 131072 67108864").unwrap();
    let read = |namespace: &Namespace| {
        namespace.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap())
    };
    assert_eq!(read(topology.server()), "4096\t131072\t67108864\n");
    assert_ne!(read(topology.client()), read(topology.server()));
    let e = topology.client().set_sysctl("net.ipv4.no_such", "1").unwrap_err();
    assert!(e.to_string().contains("net.ipv4.no_such"), "{e}");

    let e = topology.client().spawn(Command::new("trimtab-no-such-program")).unwrap_err();
    assert!(e.to_string().contains("there is no such program"), "{e}");

    let mut sleep = Command::new("sleep");
    sleep.arg("1000");
    let mut child = topology.client().spawn(sleep).unwrap();
    assert!(child.try_wait().unwrap().is_none());
    drop(topology);
    assert!(!child.wait().unwrap().success(), "it ends with its namespace's owner");
}

/// What a program started in turn is found by its namespace.
#[test]
fn kill_all_finds_grandchildren() {
    let Some(topology) = topology() else { return };
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 1000 & sleep 1000 &"]).stdout(Stdio::piped());
    let mut child = topology.client().spawn(shell).unwrap();
    let mut held_by_sleepers = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || held_by_sleepers.read_to_end(&mut Vec::new()));
    assert!(child.wait().unwrap().success());
    assert!(!reader.is_finished());
    topology.client().kill_all().unwrap();
    assert_eq!(reader.join().unwrap().unwrap(), 0);
}
