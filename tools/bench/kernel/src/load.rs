//! A flow over an emulated link of 20 ms, the same for every algorithm.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_units::{Bytes, Rate};

use crate::flow::Flow;
use crate::hosts::{Host, Hosts};
use crate::{BenchError, system};

/// What the link carries, in Mbit/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed(pub(crate) u32);

/// Some 2,000 acknowledgements a second.
pub(crate) const SLOW: Speed = Speed(48);

const DELAY: trimtab_units::Duration = trimtab_units::Duration::from_millis(10);
/// The start is another matter.
const WARM_UP: Duration = Duration::from_secs(2);

/// What a flow was, over the time that counts.
pub(crate) struct Over<T> {
    pub(crate) goodput_mbps: f64,
    pub(crate) seconds: f64,
    /// What was looked at before and after it.
    pub(crate) before: T,
    pub(crate) after: T,
}

/// Runs a flow and looks at something before the time that counts, each time that `every` has passed, and
/// after it.
pub(crate) fn run<T>(
    hosts: &Hosts,
    speed: Speed,
    algorithm: &str,
    port: u16,
    time: Duration,
    every: Duration,
    mut look: impl FnMut(&Flow) -> Result<T, BenchError>,
) -> Result<Over<T>, BenchError> {
    // The link begins in the router, behind the sender.
    let made = hosts.thread(Host::Router, || Ok(Topology::new(ServerSide::Here)))?;
    let made = made.join().map_err(|_| system("make the link")("its thread panicked"))?;
    let mut topology = made.map_err(system("enter the router"))??;
    let link = |capacity| LinkConfig::new(capacity).delay(DELAY);
    // Two bandwidth-delay products, of 20 ms: 5,000 bytes for each Mbit/s.
    let buffer = Bytes::new(5_000 * u64::from(speed.0));
    let down = link(Capacity::Constant(Rate::from_mbps(speed.0.into())))
        .queue(QueueConfig::drop_tail_bytes(buffer));
    let up = link(Capacity::Constant(Rate::MAX));
    topology.start(&Config { down, up, seed: 1, log: None })?;
    let client = |address: SocketAddr| {
        let socket = topology.client().run(move || TcpStream::connect(address));
        socket.map_err(system("connect over the link"))
    };
    let flow = Flow::start(hosts, algorithm, port, client)?;
    thread::sleep(WARM_UP);
    let (begin, bytes, before) = (Instant::now(), flow.received(), look(&flow)?);
    let after = loop {
        let left = time.saturating_sub(WARM_UP + begin.elapsed());
        thread::sleep(left.min(every));
        let now = look(&flow)?;
        if left <= every {
            break now;
        }
    };
    let received = flow.received() - bytes;
    let seconds = begin.elapsed().as_secs_f64();
    drop(flow);
    Ok(Over { goodput_mbps: received as f64 * 8e-6 / seconds, seconds, before, after })
}
