//! How many slots the connections of one cgroup may hold. On a real kernel; skipped, with the reason,
//! where it or the rights are missing.

mod common;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use trimtab_kernel::{Datapath, FlowId, Held, Options, Origin};

use common::container::{CLOSE, Container, SAY};
use common::{Loaded, container, need_kernel, wait_for};

/// The process in a cgroup that the tests of this file start.
const PROCESS: &str = "connections_of_a_cgroup";

/// Not a test by itself: see [`Container`].
#[test]
fn connections_of_a_cgroup() {
    container::run_if_asked();
}

fn holds(container: &Container, slots: u32) -> Held {
    Held { cgroup: container.cgroup(), slots }
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
    let Some(mut many) = Container::new("many", PROCESS, datapath.name()) else { return };
    let mut few = Container::new("few", PROCESS, datapath.name()).unwrap();
    many.open(5);
    let stats = datapath.stats();
    assert_eq!((stats.live, stats.over_quota, stats.slotless), (2, 3, 0), "{stats:?}");
    assert_eq!(datapath.held(), [holds(&many, 2)]);
    few.open(2);
    assert_eq!(datapath.held(), all(vec![holds(&many, 2), holds(&few, 2)]));
    assert_eq!((datapath.stats().live, datapath.stats().over_quota), (4, 3));

    // One that waits has the slot of one that closes.
    let opened = datapath.stats().opened;
    many.order(CLOSE);
    wait_for("the next in its slot", || {
        many.order(SAY);
        (datapath.stats().opened == opened + 1).then_some(())
    });
    assert_eq!(datapath.held(), all(vec![holds(&many, 2), holds(&few, 2)]));
    assert_eq!(datapath.stats().over_quota, 3, "each is counted once");

    // A larger share acts on those that are open.
    datapath.set_cgroup_slots(3);
    wait_for("another slot", || {
        many.order(SAY);
        (datapath.held() == all(vec![holds(&many, 3), holds(&few, 2)])).then_some(())
    });
    many.kill();
    wait_for("their end", || (datapath.held() == [holds(&few, 2)]).then_some(()));
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
    let Some(mut one) = Container::new("one", PROCESS, datapath.name()) else { return };
    one.open(2);
    assert_eq!(datapath.held(), [holds(&one, 2)]);

    // Out of its slot, and into one again.
    let ids = datapath.flows().map(|flow| flow.id()).collect();
    assert_eq!(datapath.evict(&ids).len(), 2);
    assert_eq!(datapath.held(), []);
    one.order(SAY);
    assert_eq!(datapath.held(), [holds(&one, 2)]);

    // A slot with the number of a connection that has no socket, as in lifetime.rs.
    let slots = MapHandle::from_pinned_path(datapath.folder().join("tt_slots")).unwrap();
    let key = datapath.flows().next().unwrap().slot_number().to_ne_bytes();
    let mut slot = slots.lookup(&key, MapFlags::ANY).unwrap().unwrap();
    slot[..8].copy_from_slice(&1000_u64.to_ne_bytes());
    slots.update(&key, &slot, MapFlags::ANY).unwrap();
    drop(slots);
    assert_eq!(datapath.reap().unwrap(), [FlowId(1000)]);
    assert_eq!(datapath.held(), [holds(&one, 1)]);
    one.open(2);
    assert_eq!(datapath.held(), [holds(&one, 2)]);

    // The next process counts on.
    let more = Options { slots: 16, ..loaded.options.clone() };
    loaded.let_go();
    let datapath = Datapath::load(&loaded.options).unwrap();
    assert_eq!(datapath.origin(), Origin::Adopted);
    assert_eq!((datapath.held(), datapath.cgroup_slots()), (vec![holds(&one, 2)], 2));
    drop(datapath);

    // Other programs have slots of their own.
    let datapath = Datapath::load(&more).unwrap();
    assert!(matches!(datapath.origin(), Origin::Replaced(_)), "{:?}", datapath.origin());
    assert_eq!((datapath.held(), datapath.cgroup_slots()), (vec![], 16));
    one.open(3);
    one.order(SAY);
    assert_eq!(datapath.held(), [holds(&one, 3)]);
    one.kill();
    wait_for("the end of all", || {
        (datapath.held().is_empty() && datapath.formers().is_empty()).then_some(())
    });
}
