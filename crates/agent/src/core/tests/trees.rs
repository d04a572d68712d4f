//! Rules whose connections ask the trees of Muses.

use super::*;

/// `small` has two trees and chooses every four states: tree 0 where the states lie low, tree 1
/// where they lie high, and first.
fn of_trees(more: &str) -> Config {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/trees/small");
    config(&format!(
        "[[rule]]\nname = \"phones\"\nport = 443\nsteer = \"muses\"\nmodel = {model:?}\n{more}"
    ))
}

#[test]
fn the_tree_follows_the_states_and_the_next_connection_begins_with_it() {
    let fake = Fake::default();
    let mut core = Core::new(fake.clone(), of_trees(""), Time::ZERO);
    assert!(core.config().troubles().is_empty(), "{:?}", core.config().troubles());
    let defaults = fake.defaults.borrow().clone();
    assert_eq!((defaults["model"], defaults["tree"], defaults["safe"]), (1.0, 1.0, 1.0));
    let (phone, event) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    phone.borrow_mut().identity.algorithm = "muses";
    core.on_event(&event, Time::ZERO);
    assert_eq!(standing(&core, 1), Standing::Selecting);
    let knobs = phone.borrow().knobs.clone();
    assert_eq!((knobs["copa.delta"], knobs["copa.competitive"]), (0.04, 0.0), "copa:mvfst");
    let now = pass(&mut core, &fake, Time::ZERO, 3.0);
    assert_eq!(phone.borrow().knobs["tree"], 0.0, "the states lie low");
    phone.borrow_mut().segment = BINS - 1;
    let now = pass(&mut core, &fake, now, 3.0);
    assert_eq!(phone.borrow().knobs["tree"], 1.0);
    let why = core.why("5000", now).unwrap().to_string();
    assert!(
        why.contains("tree 1.0000 -> 0.0000: its latest states") || why.contains("tree = 0"),
        "{why}"
    );
    phone.borrow_mut().segment = 0;
    let now = pass(&mut core, &fake, now, 3.0);

    // To the same place, and to another.
    for (remote, tree) in [("192.0.2.1:5001", 0.0), ("192.0.2.2:5001", 1.0)] {
        let (next, event) = fake.open("10.0.0.1:443", remote);
        next.borrow_mut().identity.algorithm = "muses";
        core.on_event(&event, now);
        assert_eq!(next.borrow().knobs["tree"], tree, "{remote}");
    }
    // The next agent finds the tree as it was left.
    let again = Core::new(fake.clone(), of_trees(""), now);
    assert_eq!(again.adopted(), 3);
    assert_eq!(phone.borrow().knobs["tree"], 0.0);
}

#[test]
fn what_the_guard_did_is_told_once() {
    let fake = Fake::default();
    let mut core = Core::new(fake.clone(), of_trees("safe = \"cubic\""), Time::ZERO);
    assert_eq!(fake.defaults.borrow()["safe"], 2.0);
    let (phone, event) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    phone.borrow_mut().identity.algorithm = "muses";
    core.on_event(&event, Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 2.0);
    core.take_notes();
    phone.borrow_mut().identity.algorithm = "cubic";
    phone.borrow_mut().alarm = Some(Alarm::RunAway);
    let now = pass(&mut core, &fake, now, 3.0);
    let notes = told(core.take_notes());
    assert_eq!(notes, ["connection 1 to 192.0.2.0/24: the window ran away; cubic goes on with it"]);
    let why = core.why("5000", now).unwrap().to_string();
    assert!(why.contains("muses -> cubic: the policy's guard"), "{why}");
    assert_eq!(core.tallies()[&("phones".to_owned(), Arm::Treated)].alarms, 1);
    assert_eq!(standing(&core, 1), Standing::Measured);
}

#[test]
fn a_model_that_cannot_be_used_leaves_what_is_safe_and_is_told() {
    let fake = Fake::default();
    let text = "[[rule]]\nname = \"phones\"\nsteer = \"muses\"\nmodel = \"nowhere.trees\"\n";
    let core = Core::new(fake.clone(), config(text), Time::ZERO);
    let troubles = core.config().troubles();
    assert!(troubles[0].starts_with("rule phones: the model nowhere.trees: "), "{troubles:?}");
    assert!(troubles[0].ends_with("; copa runs in its place"), "{troubles:?}");
    assert!(fake.defaults.borrow().is_empty() && fake.planted.borrow().is_empty());
    // The one that ships is one that can be.
    let shipped = "[[rule]]\nname = \"phones\"\nsteer = \"muses\"\nsafe = \"none\"\n";
    let core = Core::new(fake.clone(), config(shipped), Time::ZERO);
    assert!(core.config().troubles().is_empty());
    assert_eq!((fake.planted.borrow().len(), fake.defaults.borrow()["safe"]), (1, 0.0));
}
