//! A flow over the emulated link of 48 Mbit/s and 20 ms, the same for every algorithm.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_units::{Bytes, Rate};

use crate::flow::Flow;
use crate::hosts::{Host, Hosts};
use crate::{BenchError, system};

const RATE_MBPS: f64 = 48.0;
const DELAY: trimtab_units::Duration = trimtab_units::Duration::from_millis(10);
/// Two bandwidth-delay products.
const BUFFER: Bytes = Bytes::new(240_000);
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

/// Runs a flow and looks at something before and after the time that counts.
pub(crate) fn run<T>(
    hosts: &Hosts,
    algorithm: &str,
    port: u16,
    time: Duration,
    mut look: impl FnMut(&Flow) -> Result<T, BenchError>,
) -> Result<Over<T>, BenchError> {
    // The link begins in the router, behind the sender.
    let made = hosts.thread(Host::Router, || Ok(Topology::new(ServerSide::Here)))?;
    let made = made.join().map_err(|_| system("make the link")("its thread panicked"))?;
    let mut topology = made.map_err(system("enter the router"))??;
    let link = |capacity| LinkConfig::new(capacity).delay(DELAY);
    let down = link(Capacity::Constant(Rate::from_mbps(RATE_MBPS)))
        .queue(QueueConfig::drop_tail_bytes(BUFFER));
    let up = link(Capacity::Constant(Rate::MAX));
    topology.start(&Config { down, up, seed: 1, log: None })?;
    let client = |address: SocketAddr| {
        let socket = topology.client().run(move || TcpStream::connect(address));
        socket.map_err(system("connect over the link"))
    };
    let flow = Flow::start(hosts, algorithm, port, client)?;
    thread::sleep(WARM_UP);
    let (begin, bytes, before) = (Instant::now(), flow.received(), look(&flow)?);
    thread::sleep(time.saturating_sub(WARM_UP));
    let (received, after) = (flow.received() - bytes, look(&flow)?);
    let seconds = begin.elapsed().as_secs_f64();
    drop(flow);
    Ok(Over { goodput_mbps: received as f64 * 8e-6 / seconds, seconds, before, after })
}
