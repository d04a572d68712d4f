//! Thousands of connections through an emulated link, some of which send all the time.
//!
//! The link is so narrow that two packets of every busy connection, the least that Copa sends, make
//! a queue: each is busy without pause, at a round-trip time of some 140 ms.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::epoll;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_net::{Capacity, LinkConfig, QueueConfig};
use trimtab_units::{Bytes, Duration as Span, Rate};

/// What the link forwards to the readers, and the delay of each direction.
const RATE_MBPS: f64 = 200.0;
const DELAY: Span = Span::from_millis(10);
/// Room in the queue per busy connection: more than the packets that each begins with.
const ROOM: u64 = 10 * 1500;
/// What a connection says before it falls silent.
const HELLO: usize = 3000;
/// Between rounds over all busy connections.
const ROUND: Duration = Duration::from_millis(50);
/// Connections are opened by so many threads, since each takes a round trip.
const OPENERS: usize = 64;

/// The connections; they end when it is dropped.
pub(crate) struct Crowd {
    stop: Arc<AtomicBool>,
    senders: Option<JoinHandle<()>>,
    /// The process of the other ends, so that neither needs more descriptors than a process may have.
    readers: Child,
    _idle: Vec<TcpStream>,
    _topology: Topology,
}

impl Crowd {
    /// Opens `open` connections with an algorithm, of which `active` send until the end. The senders' port is `port`.
    pub(crate) fn new(algorithm: &str, port: u16, open: usize, active: usize) -> io::Result<Self> {
        allow_files(open)?;
        let mut topology = Topology::new(ServerSide::Private).map_err(io::Error::other)?;
        let address = topology.server_address();
        let name = algorithm.to_owned();
        let listener = topology.server().run(move || {
            let listener = TcpListener::bind((address, port))?;
            set_tcp_congestion(&listener, name.as_str())?;
            io::Result::Ok(listener)
        })?;
        let room = Bytes::new(ROOM * active.max(100) as u64);
        let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(RATE_MBPS)))
            .queue(QueueConfig::drop_tail_bytes(room))
            .delay(DELAY);
        let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(DELAY);
        topology.start(&Config { down, up, seed: 1, log: None }).map_err(io::Error::other)?;
        let readers = topology.client().run(move || {
            let arguments = [address.to_string(), port.to_string(), open.to_string()];
            let me = std::env::current_exe()?;
            Command::new(me).arg("readers").args(arguments).stdin(Stdio::piped()).spawn()
        })?;
        let mut idle = Vec::with_capacity(open);
        for _ in 0..open {
            let (mut sender, _) = listener.accept()?;
            sender.write_all(&[0; HELLO])?;
            sender.set_nonblocking(true)?;
            idle.push(sender);
        }
        let mut busy = idle.split_off(open - active);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let senders = std::thread::Builder::new().name("senders".to_owned()).spawn(move || {
            let zeros = [0; 1 << 14];
            while !stopped.load(Ordering::Relaxed) {
                // One write each: a connection that always has room would keep the others waiting.
                for sender in &mut busy {
                    let _ = sender.write(&zeros);
                }
                std::thread::sleep(ROUND);
            }
        })?;
        Ok(Self { stop, senders: Some(senders), readers, _idle: idle, _topology: topology })
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.senders.take() {
            let _ = thread.join();
        }
        let _ = self.readers.kill();
        let _ = self.readers.wait();
    }
}

/// The other ends: opens all connections, and reads what comes until standard input ends.
pub(crate) fn readers(address: Ipv4Addr, port: u16, open: usize) -> io::Result<()> {
    allow_files(open)?;
    let openers: Vec<_> = (0..OPENERS)
        .map(|i| {
            let share = open / OPENERS + usize::from(i < open % OPENERS);
            std::thread::spawn(move || -> io::Result<Vec<TcpStream>> {
                (0..share).map(|_| TcpStream::connect((address, port))).collect()
            })
        })
        .collect();
    let mut all = Vec::with_capacity(open);
    for opener in openers {
        all.extend(opener.join().map_err(|_| io::Error::other("a thread ended early"))??);
    }
    let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (place, stream) in all.iter().enumerate() {
        stream.set_nonblocking(true)?;
        let place = epoll::EventData::new_u64(place as u64);
        epoll::add(&ready, stream, place, epoll::EventFlags::IN)?;
    }
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 14];
        let mut events = Vec::with_capacity(1024);
        while epoll::wait(&ready, rustix::buffer::spare_capacity(&mut events), None).is_ok() {
            for event in events.drain(..) {
                let place = event.data.u64() as usize;
                if all[place].read(&mut buffer).is_ok_and(|length| length == 0) {
                    return;
                }
            }
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

/// So many connections, and what else a process has open.
fn allow_files(connections: usize) -> io::Result<()> {
    let files = connections as u64 + 200;
    let now = getrlimit(Resource::Nofile);
    if now.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    let maximum = now.maximum.map(|most| most.max(files));
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })?)
}
