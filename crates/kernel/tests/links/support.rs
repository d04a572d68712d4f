//! Links, and flows over them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration as StdDuration;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_units::{Duration, Rate};

pub(crate) const PORT: u16 = 5003;

/// A link with a drop-tail queue; 20 ms there and back.
pub(crate) fn link(mbps: f64, packets: u32) -> LinkConfig {
    LinkConfig::new(Capacity::Constant(Rate::from_mbps(mbps)))
        .queue(QueueConfig::drop_tail_packets(packets))
        .delay(Duration::from_millis(10))
}

pub(crate) fn topology() -> Topology {
    Topology::new(ServerSide::Private).expect("root may")
}

pub(crate) fn start(topology: &mut Topology, down: LinkConfig) {
    let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(Duration::from_millis(10));
    topology.start(&Config { down, up, seed: 3, log: None }).expect("a link");
}

/// At the server, on [`PORT`], with this algorithm.
pub(crate) fn listen(topology: &Topology, algorithm: &str) -> TcpListener {
    let address = (topology.server_address(), PORT);
    let name = algorithm.to_owned();
    topology.server().run(move || {
        let listener = TcpListener::bind(address).expect("listen");
        set_tcp_congestion(&listener, &name).expect("TCP_CONGESTION");
        listener
    })
}

/// Flows that go on until the topology is dropped; the bytes of each that have arrived. They begin
/// when all are connected.
pub(crate) fn flows(topology: &Topology, algorithm: &str, count: usize) -> Vec<Arc<AtomicU64>> {
    let address = (topology.server_address(), PORT);
    let listener = listen(topology, algorithm);
    let accepted = thread::spawn(move || {
        let sockets = listener.incoming().take(count);
        sockets.map(|socket| socket.expect("accept")).collect::<Vec<_>>()
    });
    let connect = |_| topology.client().thread(move || TcpStream::connect(address));
    let connecting: Vec<_> = (0..count).map(connect).collect();
    let read = |mut socket: TcpStream| {
        let received = Arc::new(AtomicU64::new(0));
        let counter = received.clone();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = socket.read(&mut buffer) {
                counter.fetch_add(length as u64, Relaxed);
            }
        });
        received
    };
    let sockets =
        connecting.into_iter().map(|c| c.expect("a thread").join().unwrap().expect("connect"));
    let received = sockets.map(read).collect();
    for mut socket in accepted.join().unwrap() {
        thread::spawn(move || while socket.write_all(&[0; 65536]).is_ok() {});
    }
    received
}

/// What flows did on a link.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// What all together got, in Mbit/s.
    pub(crate) goodput_mbps: f64,
    /// Bytes of each.
    pub(crate) bytes: Vec<u64>,
    /// Share of the packets that were sent again.
    pub(crate) again: f64,
    /// The same after the first second, in which slow start is.
    pub(crate) again_later: f64,
    /// How much too late the worst packet left the link, in milliseconds: what the machine added to
    /// the link that was asked for.
    pub(crate) late_ms: f64,
}

/// Runs flows over a link for a time.
pub(crate) fn bulk(down: LinkConfig, algorithm: &str, count: usize, time: StdDuration) -> Bulk {
    let mut topology = topology();
    start(&mut topology, down);
    let received = flows(&topology, algorithm, count);
    const START: StdDuration = StdDuration::from_secs(1);
    thread::sleep(START);
    let (sent_first, again_first) = segments(&topology);
    thread::sleep(time.saturating_sub(START));
    let bytes: Vec<u64> = received.iter().map(|counter| counter.load(Relaxed)).collect();
    let (sent, again) = segments(&topology);
    let sum: u64 = bytes.iter().sum();
    let link = topology.stop().expect("the link stops").down;
    Bulk {
        goodput_mbps: sum as f64 * 8e-6 / time.as_secs_f64(),
        bytes,
        again: again as f64 / sent as f64,
        again_later: (again - again_first) as f64 / (sent - sent_first) as f64,
        late_ms: link.late.expect("packets passed").max_ms,
    }
}

/// Segments that the server sent in all, and those among them that it sent again.
fn segments(topology: &Topology) -> (u64, u64) {
    let text = topology.server().proc_net("snmp").expect("it is there");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let names = lines.next().expect("a line of names").split(' ');
    let values = lines.next().expect("a line of values").split(' ');
    let of = |name: &str| {
        let mut both = names.clone().zip(values.clone());
        both.find(|(n, _)| *n == name).and_then(|(_, v)| v.parse().ok()).expect("a number")
    };
    // OutSegs does not count those.
    let again: u64 = of("RetransSegs");
    (of("OutSegs") + again, again)
}

/// How long it takes until a quarter of a second carries 80% of 12 Mbit/s.
pub(crate) fn until_full(received: &AtomicU64, at_most: StdDuration) -> StdDuration {
    const QUARTER: StdDuration = StdDuration::from_millis(250);
    let begin = std::time::Instant::now();
    loop {
        let before = received.load(Relaxed);
        thread::sleep(QUARTER);
        let bytes = received.load(Relaxed) - before;
        if bytes > 300_000 {
            return begin.elapsed();
        }
        assert!(begin.elapsed() < at_most, "stalled: {bytes} bytes in a quarter of a second");
    }
}
