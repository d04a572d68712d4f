//! Algorithms in turn on a real kernel, by an agent that is killed meanwhile.

use std::time::Duration;

use rustix::process::Signal;
use trimtab_agent::{Standing, ask_why};
use trimtab_kernel::{Algorithm, Options};

use crate::assign::{assigned, read, rule_here, runs, send, server, start_in};
use crate::common::{self, Wire, need_kernel, wait_for};
use crate::setup::Setup;

const PORT: u16 = 7141;

#[test]
fn algorithms_take_turns_on_a_connection_that_knows_nothing_of_it() {
    need_kernel!();
    let setup = Setup::new("_x");
    let names = Algorithm::ALL.map(|algorithm| setup.options().name_of(algorithm));
    let wire = Wire::new("turns");
    wire.set_default("a", "reno");
    wire.limit("20mbit", 100_000);
    let (_listener, accepted, client) = server(&wire, PORT);
    let turns = "assign = true\nturns = [\"bbr\", \"copa\", \"cubic\"]\nevery = \"300ms\"";
    setup.configure("", &rule_here(PORT, turns));
    let mut agent = start_in("turns", &setup);
    assert_eq!(runs(&accepted), setup.options().name_of(Algorithm::Bbr));
    let (sender, reader) = (send(accepted.try_clone().unwrap()), read(client.try_clone().unwrap()));

    let flow = wait_for("switches", || agent.flow(PORT).filter(|flow| flow.switches >= 4));
    assert_eq!(flow.standing, Standing::Turning, "{flow:?}");
    assert!(names.contains(&runs(&accepted)));
    let why = ask_why(&setup.socket(), &PORT.to_string()).unwrap().to_string();
    for turn in ["bbr -> copa", "copa -> cubic", "cubic -> bbr"] {
        assert!(why.contains(&format!("{turn}: the algorithms of the rule take turns")), "{why}");
    }
    assert!(why.contains("another one took over"), "{why}");

    // Killed, and back: it is the same connection, and goes on from what runs.
    agent.signal(Signal::KILL);
    agent.wait();
    let agent = start_in("turns", &setup);
    let again = wait_for("more", || agent.flow(PORT).filter(|f| f.switches >= flow.switches + 3));
    assert_eq!((again.id, again.standing), (flow.id, Standing::Turning));

    // What we let take over counts as nobody else's choice, also for the next walk over the sockets.
    let cubic = Options::name_of(&setup.options(), Algorithm::Cubic);
    std::thread::sleep(Duration::from_millis(2200));
    let counted = assigned(&agent).unwrap();
    assert_eq!((counted.connections, counted.by_hand), (1, 0), "{counted:?}");
    wait_for("the other algorithm", || (runs(&accepted) == cubic).then_some(()));
    setup.configure("", "");
    agent.signal(Signal::HUP);
    wait_for("its own algorithm", || (runs(&accepted) == "reno").then_some(()));
    client.shutdown(std::net::Shutdown::Both).unwrap();
    reader.join().unwrap();
    sender.join().unwrap();
}

/// CUBIC keeps a buffer of 40 ms full and the others do not, so by power the connection is to end
/// up with what is not CUBIC, whichever it begins with.
fn stays_with(best: Algorithm, suffix: &str, place: &str, port: u16) {
    let (setup, wire, best_name) = (Setup::new(suffix), Wire::new(place), best.name());
    wire.limit("20mbit", 100_000);
    let more =
        format!("turns = [\"{best_name}\", \"cubic\"]\nevery = \"600ms\"\nselect = \"power\"");
    setup.configure("", &format!("[[rule]]\nname = \"web\"\nport = {port}\n{more}\n"));
    let agent = start_in(place, &setup);
    let _server = wire.serve(&setup.options().name_of(best), port, u64::MAX, 1);
    let client = wire.fetch(port, Duration::from_secs(9));
    let tried = || {
        wait_for("both were tried", || {
            agent.flow(port).filter(|flow| flow.switches >= 2 && flow.algorithm == best_name)
        })
    };
    assert_eq!(tried().standing, Standing::Selecting);
    let why = ask_why(&setup.socket(), &port.to_string()).unwrap().to_string();
    for turn in [format!("{best_name} -> cubic"), format!("cubic -> {best_name}")] {
        assert!(why.contains(&format!("{turn}: chosen or tried again by power")), "{why}");
    }
    // It stays for six periods, and three of them are looked at. A period in which the machine
    // withholds its processors may speak for the other one, which is mended by the next try.
    let stays = |_| {
        let before = tried();
        std::thread::sleep(Duration::from_millis(1800));
        let after = agent.flow(port).expect("it goes on");
        println!("{before:?}\n{after:?}");
        after.switches == before.switches
    };
    assert!((0..3).any(stays), "{best_name} is left again and again");
    assert!(client.join().unwrap() > 5_000_000, "{why}");
}

#[test]
fn a_rule_tries_the_algorithms_of_a_running_connection_and_stays_with_copa() {
    need_kernel!();
    stays_with(Algorithm::Copa, "_q", "select", 7142);
}

#[test]
fn a_rule_tries_the_algorithms_of_a_running_connection_and_stays_with_bbr() {
    need_kernel!();
    stays_with(Algorithm::Bbr, "_b", "selbbr", 7143);
}
