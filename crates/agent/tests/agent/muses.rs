//! The agent chooses the tree of Muses' connections, over an emulated link.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_agent::{Standing, ask_why};
use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_kernel::Algorithm;
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_units::{Duration, Rate};

use crate::common::{self, need_kernel, wait_for};
use crate::setup::Setup;

const PORT: u16 = 7171;

/// A link of 12 Mbit/s and 40 ms there and back.
fn link() -> Topology {
    let mut topology = Topology::new(ServerSide::Private).expect("root may");
    let ms = Duration::from_millis(20);
    let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(12.0)))
        .queue(QueueConfig::drop_tail_packets(100))
        .delay(ms);
    let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(ms);
    topology.start(&Config { down, up, seed: 3, log: None }).expect("a link");
    topology
}

/// A download from this port by this algorithm, until the topology is gone.
fn download(topology: &Topology, algorithm: &str, port: u16) {
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

/// The model's first tree makes the window smaller, so there is no queue, and the states lie with the other tree, which is chosen after
/// the first report. The next connection to the same host begins with that.
#[test]
fn the_tree_is_chosen_by_the_states_and_kept_for_the_next_connection() {
    need_kernel!();
    let setup = Setup::new("_y");
    std::fs::copy(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/trees/small"),
        setup.folder().join("small.trees"),
    )
    .expect("a copy");
    let rule = "[[rule]]\nname = \"phones\"\nport = \"7171-7172\"\nsteer = \"muses\"\nmodel = \"small.trees\"\nsafe = \"none\"\n";
    setup.configure("", rule);
    let topology = link();
    let agent = setup.start_at(&topology);
    assert_eq!(agent.status().expect("it answers").troubles, Vec::<String>::new());
    let name = setup.options().name_of(Algorithm::Muses);
    download(&topology, &name, PORT);
    let flow = wait_for("the connection", || agent.flow(PORT));
    assert_eq!((flow.rule.as_str(), flow.standing), ("phones", Standing::Selecting), "{flow:?}");
    let why = |port: u16| ask_why(&setup.socket(), &port.to_string()).expect("why").to_string();
    let chosen = |port| Some(why(port)).filter(|why| why.contains("nearest to those of this tree"));
    let told = wait_for("the choice", || chosen(PORT));
    assert!(told.contains("tree"), "{told}");

    download(&topology, &name, PORT + 1);
    wait_for("the next", || agent.flow(PORT + 1));
    let told = wait_for("its beginning", || {
        Some(why(PORT + 1))
            .filter(|why| why.contains("an earlier connection to the same destination"))
    });
    println!("{told}");
}
