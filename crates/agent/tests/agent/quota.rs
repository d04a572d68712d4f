//! The share of the slots that one cgroup may hold.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::container::{Container, run_if_asked};
use crate::common::{self, need_kernel, wait_for};
use crate::setup::{Agent, Setup};

/// The process in a cgroup that the test of this file starts.
const PROCESS: &str = "quota::connections_of_a_cgroup";

/// Not a test by itself: see [`Container`].
#[test]
fn connections_of_a_cgroup() {
    run_if_asked();
}

fn ids(agent: &Agent) -> BTreeSet<u64> {
    agent.flows().iter().map(|flow| flow.id).collect()
}

#[test]
fn a_cgroup_at_its_share_is_named_and_its_own_idle_connections_give_up_slots() {
    need_kernel!();
    let setup = Setup::new("_S");
    // Three slots of 16,384.
    setup.configure_datapath("cgroup_share = \"0.02%\"", "[[rule]]\nname = \"all\"\n");
    let agent = setup.start();
    let Some(mut few) = Container::new("few", PROCESS, &setup.algorithm()) else { return };
    let mut many = Container::new("many", PROCESS, &setup.algorithm()).unwrap();
    few.open(2);
    let of_few = wait_for("two of few", || Some(ids(&agent)).filter(|ids| ids.len() == 2));
    many.open(5);
    let before = wait_for("three of many", || Some(ids(&agent)).filter(|ids| ids.len() == 5));
    let status = wait_for("the trouble", || agent.status().filter(|s| !s.troubles.is_empty()));
    let of = status.datapath;
    assert_eq!((of.taken, of.cgroup_slots, of.over_quota, of.slotless), (5, 3, 2, 0), "{of:?}");
    let says = format!("cgroup {} holds the 3 slots that one cgroup may hold", many.path());
    assert!(status.troubles.len() == 1 && status.troubles[0].starts_with(&says), "{status:?}");

    // All are idle for long. The cgroup that holds its share gives one slot up, the other none.
    std::thread::sleep(Duration::from_secs(20));
    let left = wait_for("a free slot", || Some(ids(&agent)).filter(|ids| ids.len() == 4));
    assert!(of_few.is_subset(&left) && left.is_subset(&before), "{of_few:?} {before:?} {left:?}");
    // For one of its own that waits.
    many.order("say 4");
    let after = wait_for("one that waited", || Some(ids(&agent)).filter(|ids| ids.len() == 5));
    assert!(left.is_subset(&after) && !after.is_subset(&before), "{before:?} {after:?}");
    assert_eq!(agent.status().unwrap().datapath.over_quota, 2, "each is counted once");
}
