//! What operators order, on connections that are open.

use super::*;
use crate::core::Before;
use crate::operate::{Order, Verb};

const ORDERED: &str = r#"
    [[rule]]
    name = "web"
    port = 443
    knobs = { delta = 0.2 }
    [[rule]]
    name = "turns"
    port = 444
    turns = ["copa", "cubic"]
    every = "2s"
"#;

fn order(verb: Verb, target: &str) -> Order {
    Order { verb, target: target.parse().unwrap(), lasts: None }
}

/// An agent on a host whose own algorithm is BBR.
fn begin(fake: &Fake) -> Core<Fake> {
    let before = Before { system: Some(named("bbr")), ..Before::default() };
    Core::begin(fake.clone(), config(ORDERED), None, before, Time::ZERO)
}

/// What runs, and its δ.
fn runs(pipe: &Rc<RefCell<Pipe>>) -> (&'static str, f64) {
    let pipe = pipe.borrow();
    (pipe.identity.algorithm, pipe.knobs["delta"])
}

#[test]
fn a_pause_puts_back_what_was_turned_and_a_resume_turns_it_again() {
    let fake = Fake::default();
    let [web, other, turns] = [443, 443, 444].map(|port| {
        let remote = format!("192.0.2.{}:5000", fake.pipes.borrow().len() + 1);
        fake.open(&format!("10.0.0.1:{port}"), &remote).0
    });
    let mut core = begin(&fake);
    let now = pass(&mut core, &fake, Time::ZERO, 3.0);
    assert_eq!((runs(&web), runs(&turns).0), (("copa", 0.2), "cubic"));
    let done = core.operate(&order(Verb::Pause, "rule:web"), "root", now).unwrap();
    assert_eq!(done.connections, 2);
    assert!(done.text.contains("2 open connections got back what they had before"), "{done}");
    assert_eq!((runs(&web), runs(&other)), (("copa", 0.5), ("copa", 0.5)));
    assert_eq!([1, 3].map(|id| standing(&core, id)), [Standing::Paused, Standing::Turning]);
    // One that opens meanwhile is left alone from its beginning.
    let (new, event) = fake.open("10.0.0.1:443", "192.0.2.9:5000");
    core.on_event(&event, now);
    let windows = core.tallies()[&("web".to_owned(), Arm::Treated)].windows;
    let now = pass(&mut core, &fake, now, 3.0);
    assert_eq!((runs(&new), standing(&core, 4)), (("copa", 0.5), Standing::Paused));
    let paused = core.tallies()[&("web".to_owned(), Arm::Treated)].windows;
    assert_eq!(paused, windows, "what is held is of no arm");
    core.operate(&order(Verb::Pause, "all"), "root", now).unwrap();
    assert_eq!((standing(&core, 3), runs(&turns).0), (Standing::Paused, "copa"));
    // Both orders hold the rule; each is ended by its name, or all by one word.
    let done = core.operate(&order(Verb::Resume, "all"), "root", now).unwrap();
    assert_eq!((done.ended, done.connections), (2, 4));
    pass(&mut core, &fake, now, 1.0);
    assert_eq!([runs(&web), runs(&new)], [("copa", 0.2), ("copa", 0.2)]);
}

#[test]
fn an_exclusion_leaves_a_destination_to_its_former_algorithm_for_a_time() {
    let fake = Fake::default();
    let (near, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let (far, _) = fake.open("10.0.0.1:443", "198.51.100.1:5000");
    let mut core = begin(&fake);
    let now = pass(&mut core, &fake, Time::ZERO, 1.0);
    let order = Order { lasts: Some(5.0), ..order(Verb::Exclude, "192.0.2.0/24") };
    core.operate(&order, "root", now).unwrap();
    assert_eq!((runs(&near).0, runs(&far)), ("bbr", ("copa", 0.2)));
    assert_eq!(standing(&core, 1), Standing::Excluded);
    let now = pass(&mut core, &fake, now, 4.0);
    assert_eq!(core.expire_orders(now), Vec::<String>::new());
    let now = pass(&mut core, &fake, now, 1.5);
    assert_eq!(core.expire_orders(now), ["192.0.2.0/24 is no longer excluded"]);
    pass(&mut core, &fake, now, 1.0);
    assert_eq!((runs(&near), standing(&core, 1)), (("copa", 0.2), Standing::Set));
}

/// What a rule gave a connection goes back to what it ran before, others to the system's.
#[test]
fn a_restore_gives_each_connection_its_own_former_algorithm() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let (turns, _) = fake.open("10.0.0.1:444", "192.0.2.2:5000");
    let mut core = begin(&fake);
    let now = pass(&mut core, &fake, Time::ZERO, 1.0);
    core.former.insert(addresses(&web.borrow().identity), "cubic".to_owned());
    core.operate(&order(Verb::Restore, "all"), "root", now).unwrap();
    assert_eq!([runs(&web).0, runs(&turns).0], ["cubic", "bbr"]);
    // A new configuration does not end an order.
    core.reload(config(&ORDERED.replace("0.2", "0.3")), now);
    let now = pass(&mut core, &fake, now, 2.0);
    assert_eq!([1, 2].map(|id| standing(&core, id)), [Standing::Restored; 2]);
    assert_eq!([runs(&web).0, runs(&turns).0], ["cubic", "bbr"]);
    core.operate(&order(Verb::Resume, "all"), "root", now).unwrap();
    pass(&mut core, &fake, now, 1.0);
    assert_eq!(runs(&web), ("copa", 0.3));
}

#[test]
fn a_reset_takes_back_what_others_turned_and_forgets_what_was_learnt() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = begin(&fake);
    let now = pass(&mut core, &fake, Time::ZERO, 1.0);
    web.borrow_mut().knobs.insert("delta".to_owned(), 0.31);
    web.borrow_mut().knobs.insert("loss_beta".to_owned(), 0.9);
    core.operate(&order(Verb::Pause, "flow:1"), "root", now).unwrap();
    core.operate(&order(Verb::Resume, "flow:1"), "root", now).unwrap();
    assert_eq!((standing(&core, 1), runs(&web).1), (Standing::Yielded, 0.31));
    let done = core.operate(&order(Verb::Reset, "192.0.2.1"), "root", now).unwrap();
    assert_eq!((done.connections, standing(&core, 1)), (1, Standing::Set));
    assert_eq!((runs(&web).1, web.borrow().knobs["loss_beta"]), (0.2, 1.0));
}

#[test]
fn an_order_about_what_is_not_there_is_refused() {
    let fake = Fake::default();
    let mut core = begin(&fake);
    for (verb, target, says) in [
        (Verb::Pause, "rule:video", "web, turns"),
        (Verb::Restore, "flow:9", "`trimtab agent flows`"),
        (Verb::Resume, "all", "`trimtab agent status`"),
        (Verb::Exclude, "all", "`restore`"),
    ] {
        let refused = core.operate(&order(verb, target), "root", Time::ZERO).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
}
