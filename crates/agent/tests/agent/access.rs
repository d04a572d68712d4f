//! An access network over the link emulator: one server, and networks of clients (a /24 each) that
//! reach it over a link of their own, which their connections share.

use std::net::{Ipv4Addr, TcpListener};

use trimtab_emu::{Bundle, Config, Fidelity, Namespace, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_units::{Bytes, Duration, Rate};

/// How late a packet may be seen, and may leave. A link wakes its thread for each packet otherwise,
/// which costs more than the packet.
const GRAIN: Duration = Duration::from_micros(500);

/// The link of a network of clients. Up it only delays.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) rate: Rate,
    /// There and back.
    pub(crate) rtt: Duration,
    pub(crate) queue: Bytes,
    /// Share of packets that it loses at random.
    pub(crate) loss: f64,
}

/// The server's namespace, and one for each network of clients. Gone when dropped.
pub(crate) struct Access {
    links: Bundle,
    server: Namespace,
}

impl Access {
    /// With a network of clients for each line.
    pub(crate) fn new(lines: &[Line]) -> Self {
        let server = Namespace::new().expect("root may");
        // As servers of downloads are set: what is not sent yet waits in the program, and a connection
        // that was idle goes on with its window.
        for (name, value) in [("tcp_notsent_lowat", "16384"), ("tcp_slow_start_after_idle", "0")] {
            server.set_sysctl(&format!("net.ipv4.{name}"), value).expect("a setting of the kernel");
        }
        let links = lines.iter().zip(0..).map(|(line, seed)| {
            let here = || Topology::new(ServerSide::Here);
            let network = server.run(here).expect("a link");
            let delay = line.rtt / 2;
            let down = LinkConfig::new(Capacity::Constant(line.rate))
                .queue(QueueConfig::drop_tail_bytes(line.queue))
                .loss(LossConfig::Independent(line.loss))
                .delay(delay);
            let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(delay);
            (network, Config { down, up, seed, log: None })
        });
        let links = Bundle::start(links.collect(), GRAIN).expect("links that run");
        Self { links, server }
    }

    pub(crate) fn server(&self) -> &Namespace {
        &self.server
    }

    /// The client's namespace and the server's address of each network.
    pub(crate) fn networks(&self) -> impl Iterator<Item = (&Namespace, Ipv4Addr)> {
        let networks = self.links.topologies().iter();
        networks.map(|network| (network.client(), network.server_address()))
    }

    /// What new connections of the server run without Trimtab. The host's own setting stays.
    pub(crate) fn set_default(&self, algorithm: &str) {
        let name = "net.ipv4.tcp_congestion_control";
        self.server.set_sysctl(name, algorithm).expect("an algorithm of the kernel");
    }

    /// Listens on this port at all of the server's addresses.
    pub(crate) fn listen(&self, port: u16) -> TcpListener {
        let listen = move || TcpListener::bind((Ipv4Addr::UNSPECIFIED, port));
        self.server.run(listen).expect("a port")
    }

    /// Stops all links; how true they were.
    pub(crate) fn stop(&mut self) -> Fidelity {
        let mut all = Fidelity::default();
        self.links.stop().expect("they run").iter().for_each(|report| all.add(report));
        all
    }
}

/// How true the links were; on a busy machine they are late.
pub(crate) fn told(links: Fidelity) {
    let Fidelity { late_p99_ms, lost_elsewhere, .. } = links;
    println!(
        "links: {late_p99_ms:.2} ms late at the 99th percentile, {lost_elsewhere} lost elsewhere"
    );
}
