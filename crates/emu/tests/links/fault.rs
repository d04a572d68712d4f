//! Links that fail, and transfers that go on after it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use trimtab_emu::{Config, Topology};
use trimtab_net::{LinkConfig, LossConfig};
use trimtab_units::Duration;

use crate::support::{constant_trace, delay_only, link, topology, trace};

const DELAY: Duration = Duration::from_millis(10);

/// A link of 12 Mbit/s with a buffer of some packets.
fn twelve_mbps(packets: u32) -> LinkConfig {
    link(trace(constant_trace(1)), packets, DELAY)
}

fn start(topology: &mut Topology, down: LinkConfig) {
    topology.start(&Config { down, up: delay_only(DELAY), seed: 3, log: None }).unwrap();
}

/// A transfer that goes on for ever; the bytes that have arrived.
fn transfer(topology: &Topology) -> Arc<AtomicU64> {
    let address = (topology.server_address(), 5002);
    let listener = topology.server().run(move || TcpListener::bind(address)).unwrap();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        while socket.write_all(&[0; 65536]).is_ok() {}
    });
    let received = Arc::new(AtomicU64::new(0));
    let counter = received.clone();
    let mut socket = topology.client().run(move || TcpStream::connect(address)).unwrap();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = socket.read(&mut buffer) {
            counter.fetch_add(length as u64, Ordering::Relaxed);
        }
    });
    received
}

/// How long it takes until a quarter of a second is filled to 80%.
fn until_full(received: &AtomicU64) -> StdDuration {
    const QUARTER: StdDuration = StdDuration::from_millis(250);
    let begin = Instant::now();
    loop {
        let before = received.load(Ordering::Relaxed);
        thread::sleep(QUARTER);
        let bytes = received.load(Ordering::Relaxed) - before;
        // 12 Mbit/s are 375 KB in that time.
        if bytes > 300_000 {
            return begin.elapsed();
        }
        assert!(begin.elapsed() < StdDuration::from_secs(12), "stalled: {bytes} bytes");
    }
}

/// One connection over three links, one after the other: a good one, one that is hardly one, and a good one again.
fn survives(bad: LinkConfig, time: StdDuration) {
    let Some(mut topology) = topology() else { return };
    start(&mut topology, twelve_mbps(50));
    let received = transfer(&topology);
    until_full(&received);
    topology.stop().unwrap();
    start(&mut topology, bad);
    thread::sleep(time);
    topology.stop().unwrap();
    start(&mut topology, twelve_mbps(50));
    until_full(&received);
}

#[test]
fn a_transfer_survives_30_percent_of_loss() {
    let mut lossy = twelve_mbps(50);
    lossy.loss = LossConfig::Independent(0.3);
    survives(lossy, StdDuration::from_secs(1));
}

#[test]
fn a_transfer_survives_a_buffer_of_one_packet() {
    survives(twelve_mbps(1), StdDuration::from_secs(1));
}

#[test]
fn a_transfer_survives_a_link_that_loses_everything() {
    let mut dead = twelve_mbps(50);
    dead.loss = LossConfig::Independent(1.0);
    // The sender's timer doubles from 0.2 s: it tries again at most as long after the end as the outage was.
    survives(dead, StdDuration::from_secs(2));
}
