//! What the tests share.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant};

use trimtab_emu::{EmuError, Namespace, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, QueueConfig, Trace};
use trimtab_units::{Duration, Rate};

/// A topology, or the reason why this machine makes none, printed. In CI that is a failure.
pub(crate) fn topology() -> Option<Topology> {
    match Topology::new(ServerSide::Private) {
        Ok(topology) => Some(topology),
        Err(e @ (EmuError::NotPermitted(_) | EmuError::NoTun(_))) => {
            assert!(
                std::env::var_os("CI").is_none_or(|ci| ci.is_empty()),
                "CI must run this test as root: {e}"
            );
            println!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// A trace of a constant number of opportunities per millisecond: so many times 12 Mbit/s.
pub(crate) fn constant_trace(opportunities: u32) -> Trace {
    let times = (0..1000 * opportunities).map(|k| k / opportunities + 1).collect();
    Trace::from_opportunities(times).unwrap()
}

pub(crate) fn trace(trace: Trace) -> Capacity {
    Capacity::trace(Arc::new(trace))
}

/// A link with a drop-tail queue of `packets` and a delay.
pub(crate) fn link(capacity: Capacity, packets: u32, delay: Duration) -> LinkConfig {
    LinkConfig::new(capacity).queue(QueueConfig::drop_tail_packets(packets)).delay(delay)
}

/// A link that only delays.
pub(crate) fn delay_only(delay: Duration) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(delay)
}

/// Sends as much as TCP can from the server to the client for a time. Returns the bytes that the client received.
pub(crate) fn bulk(topology: &Topology, time: StdDuration) -> u64 {
    let address = (topology.server_address(), 5001);
    let listener = topology.server().run(move || TcpListener::bind(address)).unwrap();
    let server = topology.server().thread(move || pour(&listener)).unwrap();
    let received = drink(topology.client(), address, time);
    server.join().unwrap();
    received
}

fn pour(listener: &TcpListener) {
    let (mut socket, _) = listener.accept().unwrap();
    // Until the client has had enough and resets the connection.
    while socket.write_all(&[0; 65536]).is_ok() {}
}

fn drink(client: &Namespace, address: (std::net::Ipv4Addr, u16), time: StdDuration) -> u64 {
    client.run(move || {
        let mut socket = TcpStream::connect(address).unwrap();
        let end = Instant::now() + time;
        let mut buffer = vec![0; 1 << 16];
        let mut received = 0;
        while Instant::now() < end {
            received += socket.read(&mut buffer).unwrap() as u64;
        }
        received
    })
}
