//! A connection over the link: its two sockets, and its slot where eBPF governs it.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use trimtab_cc::Spec;
use trimtab_emu::Topology;
use trimtab_kernel::{Algorithm, Datapath, Flow};
use trimtab_steer::distill::TREE;

use crate::admission::Governor;
use crate::error::RealError;
use crate::rig::Rig;
use crate::sys;

const LISTEN: &str = "listen for a connection in the namespace of the servers";

/// An established connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: TcpStream,
    pub(crate) server: TcpStream,
    /// The client's port; names the connection on the link.
    pub(crate) port: u16,
    /// Its slot.
    pub(crate) flow: Option<Flow>,
}

/// Connects a client to a server of its own, whose side `governor` governs from the first packet on.
pub(crate) fn connect(
    rig: &Rig,
    topology: &Topology,
    governor: &Governor,
) -> Result<Connection, RealError> {
    match governor {
        Governor::Kernel(name) => {
            let listener = listen_with(topology, rig.next_port(), (*name).to_owned())
                .map_err(RealError::system(LISTEN))?;
            establish(topology, &listener)
        }
        Governor::Ebpf { algorithm, spec, .. } => {
            let (datapath, _alone) = rig.datapath();
            // A connection takes the defaults of when it is established: nobody else may connect meanwhile.
            datapath.reset_defaults();
            set_defaults(datapath, *algorithm, spec)?;
            connect_ebpf(rig, topology, datapath, *algorithm)
        }
        Governor::Trees { trees, safe } => {
            let (datapath, _alone) = rig.datapath();
            datapath.reset_defaults();
            let of_safe =
                safe.and_then(|(algorithm, _)| algorithm.neutral().as_fallback()).unwrap_or(0.0);
            let (number, first) = (datapath.add_trees(trees)?, trees.first() as f64);
            for (knob, value) in [("model", number), (TREE, first), ("safe", of_safe)] {
                datapath.set_default_of(Algorithm::Muses, knob, value)?;
            }
            if let Some((algorithm, spec)) = safe {
                set_defaults(datapath, *algorithm, spec)?;
            }
            connect_ebpf(rig, topology, datapath, Algorithm::Muses)
        }
    }
}

/// The knobs of a spec, as far as the algorithm has them in the kernel: there CUBIC is Linux's, and needs not be told.
fn set_defaults(datapath: &Datapath, algorithm: Algorithm, spec: &Spec) -> Result<(), RealError> {
    for &(knob, value) in spec.settings().iter().filter(|(knob, _)| *knob != "linux") {
        datapath.set_default_of(algorithm, knob, value)?;
    }
    Ok(())
}

/// Connects with the defaults that are set.
fn connect_ebpf(
    rig: &Rig,
    topology: &Topology,
    datapath: &Datapath,
    algorithm: Algorithm,
) -> Result<Connection, RealError> {
    let port = rig.next_port();
    let listener = listen_with(topology, port, datapath.name_of(algorithm))
        .map_err(RealError::system(LISTEN))?;
    let mut connection = establish(topology, &listener)?;
    connection.flow = Some(slot(datapath, port)?);
    Ok(connection)
}

fn listen_with(topology: &Topology, port: u16, algorithm: String) -> io::Result<TcpListener> {
    let address = (topology.server_address(), port);
    topology.server().run(move || {
        let listener = TcpListener::bind(address)?;
        // The connections of a listener begin with its algorithm.
        set_tcp_congestion(&listener, &algorithm)?;
        Ok(listener)
    })
}

fn establish(topology: &Topology, listener: &TcpListener) -> Result<Connection, RealError> {
    let make = || -> io::Result<Connection> {
        let address = listener.local_addr()?;
        let client = topology.client().run(move || TcpStream::connect(address))?;
        let (server, _) = listener.accept()?;
        sys::pace(&server)?;
        for socket in [&client, &server] {
            // The end of a response does not wait for an acknowledgement.
            socket.set_nodelay(true)?;
            // When the run is over, so is the connection: nothing of it lingers in the namespaces.
            set_socket_linger(socket, Some(Duration::ZERO))?;
        }
        let port = client.local_addr()?.port();
        Ok(Connection { client, server, port, flow: None })
    };
    make().map_err(RealError::system("connect over the link"))
}

/// The slot of the connection of this server's port, which no other connection of this process has.
fn slot(datapath: &Datapath, port: u16) -> Result<Flow, RealError> {
    let found = datapath.flows().find(|flow| flow.identity().local.port() == port);
    found.ok_or_else(|| RealError::NoSlot { slots: datapath.stats().slots })
}
