//! Which connections have a slot, and what user space gets to know. On a real kernel; skipped, with
//! the reason, where it or the rights are missing.

mod common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_kernel::{Event, EventKind};

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
