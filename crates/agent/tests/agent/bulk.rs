//! Connections that send as much as their links take, by turns, as a server's are.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_emu::hurry;

use crate::access::Access;

/// How long a connection has its turn before another one has.
const TURN: Duration = Duration::from_secs(4);
/// Between two looks at the sockets. Their buffers hold more than a link carries in that time.
const LOOK: Duration = Duration::from_millis(40);

/// Of each network: so many connections, of which so many are busy at once, and the congestion
/// control of another one, to another port, that sends all the time.
pub(crate) struct Load {
    pub(crate) each: usize,
    pub(crate) busy: usize,
    /// At the end of each turn, when nothing more is sent and queues drain, as between chunks of a
    /// video.
    pub(crate) pause: Duration,
    pub(crate) rivals: Vec<Option<&'static str>>,
}

/// Connections that are busy by turns, the same number in each network.
pub(crate) struct Bulk {
    /// The server's ends.
    pub(crate) sockets: Vec<TcpStream>,
    /// Bytes that each client has read, in the order of the sockets; the rivals' are last.
    read: Arc<[AtomicU64]>,
    signs: Signs,
    threads: Vec<JoinHandle<()>>,
}

/// When the threads of traffic begin and end.
#[derive(Clone, Default)]
struct Signs {
    going: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

/// The connections of a network that are busy by turns, or a rival, at one end.
struct Group {
    sockets: Vec<TcpStream>,
    at_once: usize,
    pause: Duration,
}

impl Bulk {
    /// Connects to a port, and the rivals to the next one.
    pub(crate) fn open(access: &Access, port: u16, load: &Load) -> Self {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (server, client) in connect(access, port, |_| load.each) {
            ours.push(Group { sockets: server, at_once: load.busy, pause: load.pause });
            // What is on its way when a turn is over is read, too.
            theirs.push(Group { sockets: client, at_once: load.each, pause: Duration::ZERO });
        }
        let all = ours.iter().flat_map(|group| &group.sockets);
        let sockets = all.map(|socket| socket.try_clone().expect("a descriptor")).collect();
        let has_rival = |network: usize| usize::from(load.rivals[network].is_some());
        let rivals = connect(access, port + 1, has_rival).into_iter().zip(&load.rivals);
        for ((server, client), name) in rivals {
            for socket in &server {
                let name = name.expect("a network with a rival");
                set_tcp_congestion(socket, name).expect("an algorithm of the kernel");
            }
            for (side, sockets) in [(&mut ours, server), (&mut theirs, client)] {
                side.push(Group { sockets, at_once: 1, pause: Duration::ZERO });
            }
        }
        let signs = Signs::default();
        let zeros = vec![0; 1 << 14];
        let mut buffer = vec![0; 1 << 16];
        let count = theirs.iter().map(|group| group.sockets.len()).sum();
        let read: Arc<[AtomicU64]> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let counts = Arc::clone(&read);
        let threads = vec![
            in_turn(ours, signs.clone(), move |_, mut socket| socket.write(&zeros)),
            in_turn(theirs, signs.clone(), move |at, mut socket| {
                let length = socket.read(&mut buffer)?;
                counts[at].fetch_add(length as u64, Relaxed);
                Ok(length)
            }),
        ];
        Self { sockets, read, signs, threads }
    }

    /// Sends from now on.
    pub(crate) fn go(&self) {
        self.signs.going.store(true, Relaxed);
    }

    /// The bytes of each connection that its client has read so far.
    pub(crate) fn read(&self) -> Vec<u64> {
        self.read[..self.sockets.len()].iter().map(|bytes| bytes.load(Relaxed)).collect()
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.signs.over.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("a thread of traffic"));
    }
}

impl Group {
    /// The places of the sockets that are busy so long after the beginning.
    fn busy(&self, elapsed: Duration) -> std::ops::Range<usize> {
        let turn = (elapsed.as_secs_f64() / TURN.as_secs_f64()) as usize;
        if TURN * (turn as u32 + 1) - elapsed < self.pause {
            return 0..0;
        }
        let first = turn % (self.sockets.len() / self.at_once).max(1) * self.at_once;
        first..self.sockets.len().min(first + self.at_once)
    }
}

/// The server's and the clients' ends of so many connections of each network, in the same order.
fn connect(
    access: &Access,
    port: u16,
    count: impl Fn(usize) -> usize,
) -> Vec<(Vec<TcpStream>, Vec<TcpStream>)> {
    let listener = access.listen(port);
    let clients: Vec<JoinHandle<Vec<TcpStream>>> = access
        .networks()
        .enumerate()
        .map(|(network, (place, server))| {
            let count = count(network);
            let address = SocketAddr::from((server, port));
            let connect = move |_| TcpStream::connect(address).expect("connect");
            // All networks at once: each connection takes a round trip.
            place.thread(move || (0..count).map(connect).collect()).expect("a thread")
        })
        .collect();
    let total = (0..clients.len()).map(&count).sum();
    let mut accepted: Vec<(SocketAddr, TcpStream)> = (0..total)
        .map(|_| listener.accept().map(|(socket, peer)| (peer, socket)).expect("accept"))
        .collect();
    let ends = clients.into_iter().map(|client| {
        let theirs = client.join().expect("a client");
        let ours = theirs.iter().map(|client| {
            let peer = client.local_addr().expect("an address");
            let at = accepted.iter().position(|(of, _)| *of == peer).expect("it was accepted");
            accepted.swap_remove(at).1
        });
        (ours.collect(), theirs)
    });
    ends.collect()
}

/// Reads from or writes to the sockets of each group whose turn it is, as much as they take. `work`
/// gets a socket's place among all.
fn in_turn(
    groups: Vec<Group>,
    signs: Signs,
    mut work: impl FnMut(usize, &TcpStream) -> std::io::Result<usize> + Send + 'static,
) -> JoinHandle<()> {
    for socket in groups.iter().flat_map(|group| &group.sockets) {
        socket.set_nonblocking(true).expect("a flag");
    }
    std::thread::spawn(move || {
        hurry();
        let Signs { going, over } = signs;
        while !going.load(Relaxed) && !over.load(Relaxed) {
            std::thread::sleep(LOOK);
        }
        let begun = Instant::now();
        while !over.load(Relaxed) {
            let elapsed = begun.elapsed();
            let mut before = 0;
            for group in &groups {
                for place in group.busy(elapsed) {
                    loop {
                        match work(before + place, &group.sockets[place]) {
                            Ok(length) => assert!(length > 0, "the other end has closed"),
                            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                            // The other end's thread has ended before.
                            Err(_) if over.load(Relaxed) => return,
                            Err(error) => panic!("a connection broke: {error}"),
                        }
                    }
                }
                before += group.sockets.len();
            }
            std::thread::sleep(LOOK);
        }
    })
}
