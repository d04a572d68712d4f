//! An access network over the link emulator: one server, and networks of clients (a /24 each) that
//! reach it over a link of their own, which their connections share.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use trimtab_emu::{Config, Fidelity, Namespace, ServerSide, Topology, hurry};
use trimtab_net::{Capacity, LinkConfig, LossConfig, QueueConfig};
use trimtab_units::{Bytes, Rate};

/// Seconds that a connection is busy before another one is.
const TURN_S: u64 = 6;

/// The link of a network of clients. Up it only delays.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) rate: Rate,
    /// There and back.
    pub(crate) rtt: trimtab_units::Duration,
    pub(crate) queue: Bytes,
    /// Share of packets that it loses at random.
    pub(crate) loss: f64,
}

/// The server's namespace, and one for each network of clients. Gone when dropped.
pub(crate) struct Access {
    networks: Vec<Topology>,
    server: Namespace,
}

impl Access {
    /// With a network of clients for each line.
    pub(crate) fn new(lines: &[Line]) -> Self {
        let server = Namespace::new().expect("root may");
        let networks = lines.iter().zip(0..).map(|(line, seed)| {
            let here = || Topology::new(ServerSide::Here);
            let mut network = server.run(here).expect("a link");
            let delay = line.rtt / 2;
            let down = LinkConfig::new(Capacity::Constant(line.rate))
                .queue(QueueConfig::drop_tail_bytes(line.queue))
                .loss(LossConfig::Independent(line.loss))
                .delay(delay);
            let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(delay);
            network.start(&Config { down, up, seed, log: None }).expect("a link that runs");
            network
        });
        Self { networks: networks.collect(), server }
    }

    pub(crate) fn server(&self) -> &Namespace {
        &self.server
    }

    /// The client's namespace and the server's address of each network.
    pub(crate) fn networks(&self) -> impl Iterator<Item = (&Namespace, Ipv4Addr)> {
        self.networks.iter().map(|network| (network.client(), network.server_address()))
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
        for network in &mut self.networks {
            all.add(&network.stop().expect("it runs"));
        }
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

/// Connections that are busy by turns, the same number in each network.
pub(crate) struct Bulk {
    /// The server's ends.
    pub(crate) sockets: Vec<TcpStream>,
    going: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Bulk {
    /// Connects so many of each network to a port, of which so many will be busy at once.
    pub(crate) fn open(access: &Access, port: u16, (each, busy): (usize, usize)) -> Self {
        let listener = access.listen(port);
        let (going, over) = (Arc::default(), Arc::default());
        let (mut sockets, mut threads) = (Vec::new(), Vec::new());
        for (place, server) in access.networks() {
            let connect = move || TcpStream::connect(SocketAddr::from((server, port)));
            let pairs = (0..each).map(|_| {
                let client = place.run(connect).expect("connect");
                (listener.accept().expect("accept").0, client)
            });
            let (ours, theirs): (Vec<TcpStream>, Vec<TcpStream>) = pairs.unzip();
            sockets.extend(ours.iter().map(|socket| socket.try_clone().expect("a descriptor")));
            let zeros = vec![0; 1 << 14];
            threads.push(in_turn(ours, busy, (&going, &over), move |socket| socket.write(&zeros)));
            let mut buffer = vec![0; 1 << 16];
            threads.push(in_turn(theirs, each, (&going, &over), move |socket| {
                socket.read(&mut buffer)
            }));
        }
        Self { sockets, going, over, threads }
    }

    /// Sends from now on.
    pub(crate) fn go(&self) {
        self.going.store(true, Relaxed);
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a thread of traffic"));
    }
}

/// Reads from or writes to so many sockets at once, as much as they take, fifty times a second; to
/// the next ones every few seconds.
fn in_turn(
    sockets: Vec<TcpStream>,
    at_once: usize,
    (going, over): (&Arc<AtomicBool>, &Arc<AtomicBool>),
    mut work: impl FnMut(&mut &TcpStream) -> std::io::Result<usize> + Send + 'static,
) -> JoinHandle<()> {
    let (going, over) = (Arc::clone(going), Arc::clone(over));
    for socket in &sockets {
        socket.set_nonblocking(true).expect("a flag");
    }
    std::thread::spawn(move || {
        hurry();
        while !going.load(Relaxed) && !over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let begun = Instant::now();
        while !over.load(Relaxed) {
            let turn = (begun.elapsed().as_secs() / TURN_S) as usize;
            let groups = sockets.len() / at_once;
            for mut socket in sockets.iter().skip(turn % groups * at_once).take(at_once) {
                loop {
                    match work(&mut socket) {
                        Ok(length) => assert!(length > 0, "the other end has closed"),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        // The other end's thread has ended before.
                        Err(_) if over.load(Relaxed) => return,
                        Err(error) => panic!("a connection broke: {error}"),
                    }
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    })
}
