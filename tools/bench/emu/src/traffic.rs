//! Programs for the two ends of a link, as threads.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_emu::{EmuError, Namespace, Topology};

/// Where servers listen.
pub(crate) const PORT: u16 = 5201;

/// What a client read, and when: one entry per read.
pub(crate) struct Received {
    /// When the sender had its connection: the first packet comes to the queue right then.
    pub(crate) begin: Instant,
    reads: Vec<(Instant, usize)>,
}

impl Received {
    /// The bytes read in a span after the begin.
    pub(crate) fn bytes_between(&self, from: Duration, to: Duration) -> u64 {
        let (from, to) = (self.begin + from, self.begin + to);
        self.reads.iter().filter(|(at, _)| (from..to).contains(at)).map(|&(_, n)| n as u64).sum()
    }
}

/// What iperf3's client says first on a connection, in bytes. It matters: having sent something,
/// the client's TCP delays its first acknowledgements, which spreads slow start over the round
/// trip.
const COOKIE: usize = 37;

/// Sends as much as TCP with a congestion control can, from the server to the client, for a time, as iperf3 does in
/// reverse mode.
pub(crate) fn bulk(
    topology: &Topology,
    cca: &str,
    rtt: Duration,
    time: Duration,
) -> Result<Received, EmuError> {
    let agreement = 2 * rtt;
    let address = (topology.server_address(), PORT);
    let listener = listen(topology.server(), address)?;
    let cca = cca.to_owned();
    let (tell, told) = channel();
    let sender = topology.server().thread(move || -> io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        set_tcp_congestion(&socket, &cca)?;
        socket.read_exact(&mut [0; COOKIE])?;
        // iperf3 agrees on the start over another connection, which takes some round trips.
        thread::sleep(agreement);
        // The receiver waits for it.
        let _ = tell.send(Instant::now());
        // Until the receiver has had enough and resets the connection.
        while socket.write_all(&[0; 65536]).is_ok() {}
        Ok(())
    })?;
    let receiver = topology.client().thread(move || -> io::Result<Received> {
        let mut socket = TcpStream::connect(address)?;
        socket.write_all(&[0; COOKIE])?;
        let begin = told.recv().map_err(|_| io::ErrorKind::ConnectionAborted)?;
        let (mut reads, mut buffer) = (Vec::new(), vec![0; 1 << 17]);
        while begin.elapsed() < time {
            let length = socket.read(&mut buffer)?;
            reads.push((Instant::now(), length));
        }
        Ok(Received { begin, reads })
    })?;
    let received = join(receiver)?;
    join(sender)?;
    Ok(received)
}

/// A listening socket, whose connections begin with BBR, as where that is the system's default; the
/// congestion control is to be set on the connection. In Linux, a connection that began with BBR
/// paces for ever (`bbr_init` asks for it, and nothing takes it back), and the recordings of CUBIC
/// and Reno are of paced connections: in their series the packets in flight follow the window at
/// the pacing rate.
pub(crate) fn listen(
    namespace: &Namespace,
    address: (Ipv4Addr, u16),
) -> Result<TcpListener, EmuError> {
    namespace
        .run(move || {
            let listener = TcpListener::bind(address)?;
            set_tcp_congestion(&listener, "bbr")?;
            Ok(listener)
        })
        .map_err(|cause: io::Error| EmuError::System { what: "listen for TCP".into(), cause })
}

/// The result of a thread; a panic goes on here.
pub(crate) fn join<T>(thread: JoinHandle<io::Result<T>>) -> Result<T, EmuError> {
    let result = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    result.map_err(|cause| EmuError::System { what: "use a TCP connection".into(), cause })
}

/// TCP segments that a namespace has sent for the first time, and again (RFC 4022, `tcpOutSegs` and
/// `tcpRetransSegs`; Linux counts those sent again in the second alone).
pub(crate) fn segments(namespace: &Namespace) -> Result<(u64, u64), EmuError> {
    let text = namespace.proc_net("snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let of = |name: &str| {
        let mut pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        pairs.find(|(n, _)| *n == name).and_then(|(_, v)| v.parse().ok()).unwrap_or(0)
    };
    Ok((of("OutSegs"), of("RetransSegs")))
}
