//! What is known of a destination acts in the first round trip.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration as StdDuration, Instant};

use trimtab_emu::Topology;
use trimtab_kernel::{Algorithm, Towards};
use trimtab_units::Duration;

use crate::common::{self, Loaded, need_kernel};
use crate::support::{PORT, link, listen, start, topology};

/// A receiver of Linux has room for 64 kB at first, whatever the sender would send.
const BYTES: usize = 60_000;

/// How long a download takes, from the moment that the client connects.
fn download(topology: &Topology, algorithm: &str) -> StdDuration {
    let address = (topology.server_address(), PORT);
    let listener = listen(topology, algorithm);
    let client = topology.client().thread(move || {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(address).expect("connect");
        stream.read_exact(&mut vec![0; BYTES]).expect("all of it");
        begun.elapsed()
    });
    let client = client.expect("a thread");
    let (mut stream, _) = listener.accept().expect("accept");
    stream.write_all(&[0; BYTES]).expect("it is sent");
    client.join().expect("no panic")
}

/// 60 kB over 40 Mbit/s and 200 ms: at a first rate of 20 Mbit/s they are there after the
/// handshake, 24 ms of sending and the way to the client: 0.42 s. An initial window of 10 packets
/// that doubles takes two round trips more.
#[test]
fn a_first_rate_that_is_known_of_a_destination_paces_the_first_round_trip() {
    need_kernel!();
    let loaded = Loaded::new("_w", 16);
    let datapath = loaded.datapath();
    let name = datapath.name_of(Algorithm::Vivace);
    let mut topology = topology();
    let down = link(40.0, 2000).delay(Duration::from_millis(190));
    start(&mut topology, down);
    let to = Towards::new(Algorithm::Vivace, topology.client_address().into(), 24);
    let unknown = download(&topology, &name);
    datapath.set_towards(&to, [("initial_rate", 20.0)]).expect("there is room");
    let known = download(&topology, &name);
    datapath.remove_towards(&to).expect("it is there");
    let forgotten = download(&topology, &name);
    println!("{unknown:?}; {known:?} at a first rate; {forgotten:?} when it is forgotten");
    assert!(known < StdDuration::from_millis(600), "{known:?}");
    assert!(unknown.min(forgotten) > StdDuration::from_millis(700), "{unknown:?} {forgotten:?}");
}
