//! Which connections have a slot, and what user space gets to know. On a real kernel; skipped, with
//! the reason, where it or the rights are missing.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_kernel::{Algorithm, Event, EventKind, FlowId};
use trimtab_units::Bytes;

use common::{Loaded, Wire, need_kernel, wait_for};

/// A connection within a host, on which a server says something when the test wants it to.
struct Talk {
    say: Option<Sender<usize>>,
    said: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Talk {
    fn new(wire: &Wire, algorithm: &str, port: u16) -> Self {
        let (say, wanted) = channel::<usize>();
        let (tell, said) = channel();
        let algorithm = algorithm.to_owned();
        let thread = wire.spawn("a", move || {
            let listener = TcpListener::bind(("::1", port)).unwrap();
            set_tcp_congestion(&listener, &algorithm).unwrap();
            let mut client = TcpStream::connect(("::1", port)).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            tell.send(()).unwrap();
            for length in wanted {
                server.write_all(&vec![7; length]).unwrap();
                client.read_exact(&mut vec![0; length]).unwrap();
                tell.send(()).unwrap();
            }
        });
        let talk = Self { say: Some(say), said, thread: Some(thread) };
        talk.said.recv_timeout(Duration::from_secs(5)).unwrap();
        talk
    }

    fn say(&self, length: usize) {
        self.say.as_ref().unwrap().send(length).unwrap();
        self.said.recv_timeout(Duration::from_secs(5)).unwrap();
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        drop(self.say.take());
        if let Some(thread) = self.thread.take() {
            // It has told of what went wrong by itself.
            let _ = thread.join();
        }
    }
}

/// Without a model, Muses is Copa with the first acknowledgement.
const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Copa, Algorithm::Cubic, Algorithm::Bbr, Algorithm::Vivace, Algorithm::Bbr3];

fn kinds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind).collect()
}

#[test]
fn a_watched_connection_tells_once_that_something_happens() {
    need_kernel!();
    let loaded = Loaded::new("_1", 4);
    let wire = Wire::new("watch");
    let events = loaded.datapath().events().unwrap();
    let talk = Talk::new(&wire, loaded.datapath().name(), 7301);
    talk.say(1000);
    let flow = loaded.flow(7301).expect("a slot");
    assert_eq!(kinds(&events.take().unwrap()), [EventKind::Open]);
    // Who is not watched tells nothing.
    talk.say(1000);
    assert_eq!(kinds(&events.take().unwrap()), []);
    assert!(flow.watch());
    assert_eq!(kinds(&events.take().unwrap()), []);
    let before = flow.acks();
    talk.say(1000);
    talk.say(1000);
    let told = wait_for("an event", || {
        let events = events.take().unwrap();
        (!events.is_empty()).then_some(events)
    });
    assert_eq!(kinds(&told), [EventKind::Active], "once, whatever else happens");
    assert_eq!((told[0].id, told[0].slot), (flow.id(), flow.slot_number()));
    assert!(flow.acks() > before);
    drop(talk);
    assert!(!flow.watch() || wait_for("its end", || (!flow.is_open()).then_some(true)));
    // The next connection in the slot was not asked about.
    let next = Talk::new(&wire, loaded.datapath().name(), 7302);
    next.say(1000);
    let told = kinds(&events.take().unwrap());
    assert!(matches!(told[..], [EventKind::Close(_), EventKind::Open]), "{told:?}");
}

/// Of how many bytes it has sent, and its other sums since it began.
#[test]
fn a_connection_has_a_slot_when_it_has_sent_enough() {
    need_kernel!();
    let loaded = Loaded::new("_2", 4);
    let wire = Wire::new("after");
    let events = loaded.datapath().events().unwrap();
    for algorithm in Algorithm::ALL {
        loaded.datapath().set_slot_after(algorithm, Bytes::new(20_000));
    }
    for (port, algorithm) in (7310..).zip(ALGORITHMS) {
        let brief = loaded.datapath().stats().brief;
        let name = loaded.datapath().name_of(algorithm);
        let talk = Talk::new(&wire, &name, port);
        for _ in 0..9 {
            talk.say(2000);
        }
        assert!(loaded.flow(port).is_none(), "{name}: it has sent 18 kB");
        assert_eq!(kinds(&events.take().unwrap()), []);
        talk.say(5000);
        let flow = wait_for("a slot", || loaded.flow(port));
        let sample = flow.sample().unwrap();
        assert!(sample.totals.acked.get() >= 20_000, "{name}: {sample:?}");
        assert!(sample.acks >= 10 && sample.totals.rtt_count >= 10, "{name}: {sample:?}");
        assert!(!flow.identity().adopted && flow.algorithm() == algorithm);
        assert_eq!(kinds(&events.take().unwrap()), [EventKind::Open], "{name}");
        drop(talk);
        wait_for("its end", || (!flow.is_open()).then_some(()));
        assert!(matches!(kinds(&events.take().unwrap())[..], [EventKind::Close(_)]), "{name}");
        assert_eq!(loaded.datapath().stats().brief, brief, "{name}: it had sent enough");

        let talk = Talk::new(&wire, &name, port + 100);
        talk.say(1000);
        drop(talk);
        wait_for("its end", || (loaded.datapath().stats().brief > brief).then_some(()));
        assert_eq!(kinds(&events.take().unwrap()), [], "{name}: nobody is to get an event of it");
    }
    let stats = loaded.datapath().stats();
    assert_eq!((stats.live, stats.slotless), (0, 0), "{stats:?}");
}

#[test]
fn an_idle_connection_gives_its_slot_to_another_and_has_one_again_when_it_is_active() {
    need_kernel!();
    let loaded = Loaded::new("_3", 1);
    let wire = Wire::new("evict");
    for (port, algorithm) in (7330..).zip(ALGORITHMS) {
        let events = loaded.datapath().events().unwrap();
        let slotless = loaded.datapath().stats().slotless;
        let name = loaded.datapath().name_of(algorithm);
        let talk = Talk::new(&wire, &name, port);
        talk.say(50_000);
        let flow = loaded.flow(port).expect("a slot");
        let knob = algorithm.knobs()[0];
        let value = flow.set(knob.name, knob.default * 0.9).unwrap();
        talk.say(1000);
        let before = flow.sample().unwrap();
        let another = FlowId(u64::MAX);
        assert_eq!(loaded.datapath().evict(&[another].into()), [], "{name}");
        assert!(flow.is_open());
        assert_eq!(loaded.datapath().evict(&[flow.id()].into()), [flow.id()], "{name}");
        assert!(!flow.is_open());
        assert_eq!(loaded.datapath().stats().live, 0);

        let other = Talk::new(&wire, &name, port + 100);
        other.say(1000);
        assert!(loaded.flow(port + 100).is_some(), "{name}: it has the one slot");
        talk.say(10_000);
        assert!(loaded.flow(port).is_none(), "{name}");
        assert_eq!(loaded.datapath().stats().slotless, slotless + 1, "{name}");
        drop(other);
        wait_for("its end", || (loaded.datapath().stats().live == 0).then_some(()));
        events.take().unwrap();
        let again = wait_for("a slot again", || {
            talk.say(1000);
            loaded.flow(port)
        });
        let after = again.sample().unwrap();
        assert_eq!((again.id(), again.algorithm()), (flow.id(), algorithm));
        assert!(again.identity().adopted, "{name}: it is not new to who steers it");
        assert_eq!(again.knob(knob.name).unwrap(), value, "{name}: {}", knob.name);
        assert!(after.totals.acked.get() >= before.totals.acked.get() + 11_000, "{name}");
        assert!(after.totals.rtt_count > before.totals.rtt_count, "{name}: {after:?}");
        assert!(after.totals.rtt_sum > before.totals.rtt_sum && after.acks > before.acks);
        assert_eq!(kinds(&events.take().unwrap()), [EventKind::Open], "{name}");
        drop(talk);
        wait_for("its end", || (loaded.datapath().stats().live == 0).then_some(()));
    }
}

/// Slots are counted by words of 64.
#[test]
fn every_slot_is_used_and_none_beyond() {
    need_kernel!();
    const SLOTS: u32 = 70;
    let loaded = Loaded::new("_4", SLOTS);
    let wire = Wire::new("words");
    let name = loaded.datapath().name().to_owned();
    for round in 1..=2 {
        let (tell, all_open) = channel();
        let (end, wait) = channel::<()>();
        let name = name.clone();
        let thread = wire.spawn("a", move || {
            let listener = TcpListener::bind("[::1]:7350").unwrap();
            set_tcp_congestion(&listener, &name).unwrap();
            let pair = |_| (TcpStream::connect("[::1]:7350").unwrap(), listener.accept().unwrap());
            let pairs: Vec<_> = (0..SLOTS + 10).map(pair).collect();
            tell.send(()).unwrap();
            // An error is the end of who waits for it.
            let _ = wait.recv();
            drop(pairs);
        });
        all_open.recv_timeout(Duration::from_secs(10)).unwrap();
        let stats = loaded.datapath().stats();
        assert_eq!((stats.live, stats.slotless), (SLOTS.into(), round * 10), "{stats:?}");
        assert_eq!(loaded.datapath().flows().count(), SLOTS as usize);
        drop(end);
        thread.join().unwrap();
        wait_for("their end", || (loaded.datapath().stats().live == 0).then_some(()));
        assert_eq!(loaded.datapath().flows().count(), 0);
    }
}
