//! A link without nginx, and a download over it.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_units::{Duration, Rate};

/// 12 Mbit/s and 40 ms there and back.
pub(crate) fn link(queue_packets: u32, loss: LossConfig) -> Topology {
    let mut topology = Topology::new(ServerSide::Private).expect("root may");
    let ms = Duration::from_millis(20);
    let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
        .queue(QueueConfig::drop_tail_packets(queue_packets))
        .loss(loss)
        .delay(ms);
    let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(ms);
    topology.start(&Config { down, up, seed: 3, log: None }).expect("a link");
    topology
}

/// A download from this port by this algorithm, until the topology is gone.
pub(crate) fn download(topology: &Topology, algorithm: &str, port: u16) {
    let (address, name) = ((topology.server_address(), port), algorithm.to_owned());
    let listener = topology.server().run(move || {
        let listener = TcpListener::bind(address).expect("listen");
        set_tcp_congestion(&listener, &name).expect("TCP_CONGESTION");
        listener
    });
    let client = topology.client().run(move || TcpStream::connect(address)).expect("connect");
    let (mut server, _) = listener.accept().expect("accept");
    thread::spawn(move || while server.write_all(&[0; 65536]).is_ok() {});
    thread::spawn(move || std::io::copy(&mut &client, &mut std::io::sink()));
}
