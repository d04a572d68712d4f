//! Thousands of connections within a network namespace, some of which send all the time.
//!
//! The loopback device forwards a fixed rate behind a buffer that holds two packets of every busy connection, the least
//! that Copa sends: so each is busy without pause, at a round-trip time that the queue makes.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trimtab_emu::Namespace;

/// What the loopback device forwards.
const RATE: &str = "400mbit";
/// Bytes of a packet in the queue.
const PACKET: usize = 1600;
/// What a connection says before it falls silent.
const HELLO: usize = 3000;
/// Between rounds over all busy connections.
const ROUND: Duration = Duration::from_millis(50);

/// The connections; they end when it is dropped.
pub(crate) struct Crowd {
    stop: Arc<AtomicBool>,
    busy: Vec<JoinHandle<()>>,
    _idle: Vec<(TcpStream, TcpStream)>,
    _namespace: Namespace,
}

impl Crowd {
    /// Opens `open` connections with an algorithm, of which `active` send until the end. The senders' port is `port`.
    pub(crate) fn new(algorithm: &str, port: u16, open: usize, active: usize) -> io::Result<Self> {
        allow_files(2 * open as u64 + 200)?;
        let namespace = Namespace::new().map_err(io::Error::other)?;
        let buffer = 3 * PACKET * active.max(100);
        namespace.run(move || shape(buffer))?;
        let name = algorithm.to_owned();
        let pairs = namespace.run(move || connect(&name, port, open))?;
        let mut pairs = pairs;
        let busy = pairs.split_off(open - active);
        let stop = Arc::new(AtomicBool::new(false));
        let (mut senders, mut readers): (Vec<_>, Vec<_>) = busy.into_iter().unzip();
        let threads = [
            rounds("senders", &stop, move || {
                let zeros = [0; 1 << 14];
                senders.iter_mut().for_each(|s| while s.write(&zeros).is_ok_and(|n| n > 0) {});
            })?,
            rounds("readers", &stop, move || {
                let mut buffer = [0; 1 << 14];
                readers.iter_mut().for_each(|r| while r.read(&mut buffer).is_ok_and(|n| n > 0) {});
            })?,
        ];
        Ok(Self { stop, busy: threads.into(), _idle: pairs, _namespace: namespace })
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.busy.drain(..) {
            let _ = thread.join();
        }
    }
}

fn rounds(
    name: &str,
    stop: &Arc<AtomicBool>,
    mut round: impl FnMut() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let stop = Arc::clone(stop);
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            round();
            std::thread::sleep(ROUND);
        }
    })
}

fn allow_files(files: u64) -> io::Result<()> {
    let now = getrlimit(Resource::Nofile);
    let most = now.maximum.map_or(files, |most| most.max(files));
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: Some(most) })?;
    Ok(())
}

fn shape(buffer: usize) -> io::Result<()> {
    for command in [
        format!("tc qdisc replace dev lo root tbf rate {RATE} burst 30000 limit {buffer}"),
        // Packets and not segments of 64 kB.
        "ip link set dev lo mtu 1500 gso_max_segs 1".to_owned(),
    ] {
        let mut words = command.split(' ');
        let program = words.next().unwrap_or_default();
        let output = Command::new(program).args(words).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{command}: {said}")));
        }
    }
    Ok(())
}

/// Connections within this namespace: the sender's end first.
fn connect(algorithm: &str, port: u16, open: usize) -> io::Result<Vec<(TcpStream, TcpStream)>> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let listener = TcpListener::bind(address)?;
    set_tcp_congestion(&listener, algorithm)?;
    let mut pairs = Vec::with_capacity(open);
    for _ in 0..open {
        let mut reader = TcpStream::connect(address)?;
        let (mut sender, _) = listener.accept()?;
        sender.write_all(&[0; HELLO])?;
        reader.read_exact(&mut [0; HELLO])?;
        sender.set_nonblocking(true)?;
        reader.set_nonblocking(true)?;
        pairs.push((sender, reader));
    }
    Ok(pairs)
}
