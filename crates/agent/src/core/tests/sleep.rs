//! Idle connections: nobody looks at them, and they take little memory.

use super::*;

/// Nothing happens.
fn rest(core: &mut Core<Fake>, from: Time, seconds: u64) -> Time {
    let end = from + Duration::from_secs(seconds);
    let mut now = from;
    while now < end {
        core.run(now);
        now += Duration::from_millis(10);
    }
    now
}

#[test]
fn an_idle_connection_is_not_looked_at_until_something_happens() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 5.0);
    let (delta, decided) = (web.borrow().knobs["delta"], decisions(&core));
    let now = rest(&mut core, now, 20);
    let looks = web.borrow().looks;
    let now = rest(&mut core, now, 3600);
    assert_eq!(web.borrow().looks, looks, "no look in an hour");
    assert_eq!((standing(&core, 1), core.run(now)), (Standing::Steered, None));
    assert_eq!((web.borrow().knobs["delta"], decisions(&core)), (delta, decided));

    // It goes on from where it was, within a report.
    let now = pass(&mut core, &fake, now, 0.5);
    let after = web.borrow().knobs["delta"];
    assert!((after / delta).ln().abs() < 1.0, "{delta} before and {after} after");
    let reports = core.reports();
    pass(&mut core, &fake, now, 5.0);
    assert!(core.reports() > reports + 50, "it is steered as before");
    assert!(decisions(&core) > decided);
}

fn decisions(core: &Core<Fake>) -> u64 {
    core.connections().get(&FlowId(1)).unwrap().decisions.count
}

#[test]
fn an_end_that_no_event_tells_of_is_found_while_a_connection_sleeps() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    let (missed, _) = fake.open("10.0.0.1:443", "192.0.2.1:5001");
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 1.0);
    let now = rest(&mut core, now, 20);
    web.borrow_mut().open = false;
    missed.borrow_mut().acks += 1;
    let now = rest(&mut core, now, 20);
    assert_eq!((core.len(), core.run(now)), (2, None), "the events were lost");
    core.sweep(now);
    core.run(now);
    assert_eq!(core.len(), 1);
    assert!(!core.connections().get(&FlowId(2)).unwrap().is_asleep());
    let local = missed.borrow().identity;
    let found = core.by_addresses(local.local, local.remote, local.netns_cookie);
    assert_eq!(found, Some(FlowId(2)));
}

#[test]
fn a_guard_and_what_was_turned_outlast_sleep() {
    let fake = Fake::default();
    let (web, _) = fake.open("10.0.0.1:443", "192.0.2.1:5000");
    web.borrow_mut().shallow = true;
    let mut core = Core::new(fake.clone(), config(RULES), Time::ZERO);
    let now = pass(&mut core, &fake, Time::ZERO, 6.0);
    assert_eq!(standing(&core, 1), Standing::Resting);
    let now = rest(&mut core, now, 3600);
    assert_eq!(standing(&core, 1), Standing::Resting);
    // Somebody turns a knob that was given back: seen when it is steered again.
    let now = pass(&mut core, &fake, now, 2.0);
    assert_eq!(standing(&core, 1), Standing::Steered, "the rest is over");
    web.borrow_mut().shallow = false;
    let now = rest(&mut core, now, 60);
    web.borrow_mut().knobs.insert("delta".to_owned(), 0.9);
    pass(&mut core, &fake, now, 3.0);
    assert_eq!(standing(&core, 1), Standing::Yielded, "a foreign hand is seen after sleep, too");
}

/// The bar is half a kilobyte of memory each; the indexes take some 20 bytes of it.
#[test]
fn an_idle_connection_is_small() {
    let size = size_of::<Connection<trimtab_kernel::KernelLink>>();
    assert!(size <= 416, "{size} bytes");
}
