//! Muses' trees in the kernel: what they do is the tree's doing, user space chooses the tree, and the guard hands over.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration as StdDuration;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use trimtab_cc::muses::Trees;
use trimtab_kernel::{Alarm, Algorithm, Error, Flow, TreesRefused};

use crate::common::{self, Loaded, need_kernel, wait_for};
use crate::support::{PORT, flows, link, start, topology};

static MUSES: &[u8] = include_bytes!("../../../../models/muses.trees");
/// Tree 0 doubles the window where there is no queue, and keeps it while the queue is short; tree 1
/// makes it smaller, always.
static SMALL: &[u8] = include_bytes!("../../../../fuzz/seeds/trees/small");

/// A model for connections to come; and the fallback.
fn model(loaded: &Loaded, bytes: &'static [u8], safe: Option<Algorithm>) -> Trees<'static> {
    let trees = Trees::parse(bytes).expect("a model");
    let datapath = loaded.datapath();
    let number = datapath.add_trees(&trees).expect("room");
    let safe = safe.and_then(|safe| safe.neutral().as_fallback()).unwrap_or(0.0);
    for (knob, value) in [("model", number), ("tree", trees.first() as f64), ("safe", safe)] {
        assert_eq!(datapath.set_default_of(Algorithm::Muses, knob, value).unwrap(), value);
    }
    trees
}

/// The model that ships, with Copa behind it.
pub(crate) fn shipped(loaded: &Loaded) {
    model(loaded, MUSES, Some(Algorithm::Copa));
    loaded.datapath().set_default_of(Algorithm::Copa, "delta", 0.04).unwrap();
}

/// The first model has seen no state in training: the greatest value of each signal is -1
/// (layout.h: six words, eight words of least values, then these).
fn learnt_from_nothing(loaded: &Loaded) {
    let models = MapHandle::from_pinned_path(loaded.options.folder.join("tt_models")).unwrap();
    let number = 1_u32.to_ne_bytes();
    let mut model = models.lookup(&number, MapFlags::ANY).unwrap().unwrap();
    model[56..88].fill(0xff);
    models.update(&number, &model, MapFlags::ANY).unwrap();
}

/// What arrives in so long.
fn arrives(received: &AtomicU64, time: StdDuration) -> u64 {
    let before = received.load(Relaxed);
    thread::sleep(time);
    received.load(Relaxed) - before
}

/// The states that the kernel has counted.
fn states(flow: &Flow) -> u32 {
    flow.sample().and_then(|sample| sample.states).map_or(0, |states| states.seen())
}

#[test]
fn the_shipped_trees_fill_a_link_and_count_their_states() {
    need_kernel!();
    let loaded = Loaded::new("_t", 8);
    let trees = model(&loaded, MUSES, None);
    let mut topology = topology();
    start(&mut topology, link(12.0, 100));
    let name = loaded.datapath().name_of(Algorithm::Muses);
    assert!(name.starts_with("trimtab_tree"), "{name}");
    let received = flows(&topology, &name, 1).remove(0);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    assert_eq!(
        (flow.identity().algorithm, flow.knob("tree").unwrap()),
        ("muses", trees.first() as f64)
    );
    // 12 Mbit/s are 1.5 MB in a second; the states of two seconds are 200 where no processor is withheld.
    thread::sleep(StdDuration::from_secs(1));
    let before = states(&flow);
    let bytes = arrives(&received, StdDuration::from_secs(2));
    let seen = states(&flow) - before;
    println!("{bytes} bytes in 2 s, {seen} states, {:?}", flow.sample());
    assert!(bytes > 1_500_000, "{bytes}");
    assert!((50..=201).contains(&seen), "{seen} states");
    assert_eq!(flow.sample().unwrap().alarm, None);
}

/// The same connection, with the one tree and with the other, twice.
#[test]
fn the_tree_that_user_space_chooses_decides() {
    need_kernel!();
    let loaded = Loaded::new("_u", 8);
    model(&loaded, SMALL, None);
    let mut topology = topology();
    start(&mut topology, link(12.0, 100));
    let name = loaded.datapath().name_of(Algorithm::Muses);
    let _received = flows(&topology, &name, 1);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    let window = || flow.sample().map_or(0, |sample| sample.window.get() / sample.mss.get());
    for _ in 0..2 {
        // Tree 1: down to two packets a round trip. Tree 0: twice the window while there is no
        // queue; what the machine adds to the round trip, above 0.4 ms of 20, is one, so no more
        // than twice is sure.
        assert_eq!(flow.set("tree", 1.0).unwrap(), 1.0);
        wait_for("the least window", || (window() <= 3).then_some(()));
        assert_eq!(flow.set("tree", 0.0).unwrap(), 0.0);
        wait_for("twice that window", || (window() >= 6).then_some(()));
    }
}

/// States that the model never learnt from, and a tree that leaves the link idle there: after a
/// second of both the fallback goes on with the connection, and fills it.
#[test]
fn the_guard_hands_over_to_what_is_safe() {
    need_kernel!();
    thread::scope(|scope| {
        for (suffix, safe) in
            [("_v", Algorithm::Copa), ("_w", Algorithm::Cubic), ("_x", Algorithm::Bbr)]
        {
            scope.spawn(move || hands_over_to(suffix, safe));
        }
    });
}

fn hands_over_to(suffix: &str, safe: Algorithm) {
    let loaded = Loaded::new(suffix, 8);
    model(&loaded, SMALL, Some(safe));
    learnt_from_nothing(&loaded);
    loaded.datapath().set_default_of(Algorithm::Copa, "delta", 0.04).unwrap();
    let mut topology = topology();
    start(&mut topology, link(12.0, 100));
    let name = loaded.datapath().name_of(Algorithm::Muses);
    let received = flows(&topology, &name, 1).remove(0);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    let id = flow.id();
    wait_for("the fallback", || (flow.algorithm() == safe).then_some(()));
    let sample = flow.sample().unwrap();
    assert_eq!(sample.alarm, Some(Alarm::Unknown), "{sample:?}");
    assert_eq!((sample.states, flow.id()), (None, id), "{sample:?}");
    assert_eq!(flow.switching().unwrap().switches, 1);
    if safe == Algorithm::Copa {
        assert!((flow.knob("delta").unwrap() - 0.04).abs() < 1e-4, "with its own knobs");
    }
    thread::sleep(StdDuration::from_millis(1500));
    let bytes = arrives(&received, StdDuration::from_secs(1));
    assert!(bytes > 500_000, "{safe:?}: {bytes} bytes in a second");
    assert!(flow.sample().unwrap().alarm.is_some(), "what was said stays");
}

/// Without a model nothing decides, so the fallback has the connection from its beginning; of one without a slot, too.
#[test]
fn without_a_model_what_is_safe_begins() {
    need_kernel!();
    let loaded = Loaded::new("_y", 1);
    let mut topology = topology();
    start(&mut topology, link(12.0, 100));
    let name = loaded.datapath().name_of(Algorithm::Muses);
    let received = flows(&topology, &name, 2);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    wait_for("the fallback", || (flow.algorithm() == Algorithm::Copa).then_some(()));
    assert_eq!(flow.sample().unwrap().alarm, Some(Alarm::NoModel));
    thread::sleep(StdDuration::from_secs(1));
    let bytes: Vec<u64> =
        received.iter().map(|received| arrives(received, StdDuration::from_millis(700))).collect();
    println!("{bytes:?} in 700 ms each");
    assert!(bytes.iter().all(|bytes| *bytes > 50_000), "{bytes:?}");
    // Muses found no slot, and then Copa none.
    assert_eq!(loaded.datapath().stats().slotless, 2);
}

/// Who may write the maps may make a connection slow, and nothing else.
#[test]
fn random_bytes_in_the_maps_harm_nobody() {
    need_kernel!();
    let loaded = Loaded::new("_z", 8);
    model(&loaded, MUSES, None);
    let open = |name: &str| MapHandle::from_pinned_path(loaded.options.folder.join(name)).unwrap();
    let (models, nodes) = (open("tt_models"), open("tt_nodes"));
    let mut topology = topology();
    start(&mut topology, link(12.0, 100));
    let received = flows(&topology, &loaded.datapath().name_of(Algorithm::Muses), 1).remove(0);
    let flow = wait_for("the slot", || loaded.flow(PORT));
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let before = (states(&flow), received.load(Relaxed));
    for _ in 0..40 {
        for _ in 0..500 {
            let at = rng.random_range(0..15_000_u32);
            let word = rng.random::<u64>().to_ne_bytes();
            nodes.update(&at.to_ne_bytes(), &word, MapFlags::ANY).unwrap();
        }
        let mut bytes: Vec<u8> = (0..models.value_size()).map(|_| rng.random()).collect();
        if rng.random_bool(0.5) {
            bytes[..4].copy_from_slice(&64_u32.to_ne_bytes()); // as many trees as can be
        }
        models.update(&1_u32.to_ne_bytes(), &bytes, MapFlags::ANY).unwrap();
        flow.set("tree", rng.random_range(0..64).into()).unwrap();
        thread::sleep(StdDuration::from_millis(25));
    }
    let (counted, got) = (states(&flow) - before.0, received.load(Relaxed) - before.1);
    println!("{counted} states and {got} bytes meanwhile");
    assert!(counted > 10 && got > 10_000, "{counted} {got}");
    assert_eq!(flow.algorithm(), Algorithm::Muses);
}

/// A model has its number once, and gives it up when no connection has it any more.
#[test]
fn models_have_a_place_while_they_are_used() {
    need_kernel!();
    let loaded = Loaded::new("_m", 8);
    let datapath = loaded.datapath();
    let trees = Trees::parse(MUSES).unwrap();
    let first = datapath.add_trees(&trees).unwrap();
    assert_eq!((first, datapath.add_trees(&trees).unwrap()), (1.0, 1.0));
    // Nothing uses it, so another takes its place.
    let small = Trees::parse(SMALL).unwrap();
    assert_eq!(datapath.add_trees(&small).unwrap(), 1.0);
    datapath.set_default_of(Algorithm::Muses, "model", 1.0).unwrap();
    assert_eq!(datapath.add_trees(&trees).unwrap(), 2.0);
    assert_eq!(datapath.add_trees(&small).unwrap(), 1.0);
    assert!(matches!(
        datapath.set_default_of(Algorithm::Muses, "forest", 1.0),
        Err(Error::Knob(_))
    ));
    let refused = TreesRefused::Models { models: 7 };
    assert!(refused.to_string().contains("7 models are in use"));
}
