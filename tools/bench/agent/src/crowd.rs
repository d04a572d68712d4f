//! Thousands of connections through an emulated link, some of which send all the time.
//!
//! The link is so narrow that two packets of every busy connection, the least that Copa sends, make
//! a queue: each is busy without pause, at a round-trip time of some 140 ms.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
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
/// Connections of one port: fewer than the descriptors of a process, and than a client's ports.
const OF_PORT: usize = 15_000;

/// The connections; they end when it is dropped.
pub(crate) struct Crowd {
    /// The processes of both ends: for each port of the senders two, since a process may have some
    /// thousands of descriptors only.
    ends: Vec<Child>,
    topology: Topology,
}

impl Crowd {
    /// The place for connections of which so many send.
    pub(crate) fn new(active: usize) -> io::Result<Self> {
        let mut topology = Topology::new(ServerSide::Private).map_err(io::Error::other)?;
        let room = Bytes::new(ROOM * active.max(100) as u64);
        let down = LinkConfig::new(Capacity::Constant(Rate::from_mbps(RATE_MBPS)))
            .queue(QueueConfig::drop_tail_bytes(room))
            .delay(DELAY);
        let up = LinkConfig::new(Capacity::Constant(Rate::MAX)).delay(DELAY);
        topology.start(&Config { down, up, seed: 1, log: None }).map_err(io::Error::other)?;
        Ok(Self { ends: Vec::new(), topology })
    }

    /// Starts a process where the senders are.
    pub(crate) fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.topology.server().run(move || command.spawn())
    }

    /// Opens `open` connections with an algorithm, of which `active` send until the end. The senders'
    /// ports are `port` and those that follow it, see [`ports`].
    pub(crate) fn come(
        &mut self,
        algorithm: &str,
        port: u16,
        open: usize,
        active: usize,
    ) -> io::Result<()> {
        let address = self.topology.server_address().to_string();
        let ports = ports(port, open);
        let count = ports.len();
        let mut said = Vec::new();
        for (nth, port) in ports.enumerate() {
            let (open, active) = (share(open, count, nth), share(active, count, nth));
            let [port, open, active] = [port.to_string(), open.to_string(), active.to_string()];
            let senders =
                ["senders", &address, &port, &open, &active, algorithm].map(str::to_owned);
            let readers = ["readers", &address, &port, &open].map(str::to_owned);
            let mut senders = self.topology.server().run(move || start(&senders))?;
            let output = senders.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
            self.ends.push(senders);
            let mut output = BufReader::new(output);
            expect(&mut output, LISTENS)?;
            said.push(output);
            self.ends.push(self.topology.client().run(move || start(&readers))?);
        }
        for output in &mut said {
            expect(output, OPEN)?;
        }
        Ok(())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for end in &mut self.ends {
            let _ = end.kill();
            let _ = end.wait();
        }
    }
}

/// What a process of senders says when clients may connect, and when all have.
const LISTENS: &str = "listens";
const OPEN: &str = "open";

fn expect(output: &mut impl BufRead, what: &str) -> io::Result<()> {
    let mut line = String::new();
    output.read_line(&mut line)?;
    if line.trim() == what { Ok(()) } else { Err(io::Error::other("a process ended early")) }
}

/// This program in another role; it ends with its standard input.
fn start(arguments: &[String]) -> io::Result<Child> {
    let me = std::env::current_exe()?;
    Command::new(me).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

/// The ports of the senders of so many connections.
pub(crate) fn ports(first: u16, open: usize) -> std::ops::Range<u16> {
    first..first + open.div_ceil(OF_PORT).max(1) as u16
}

/// The nth of so many parts.
fn share(all: usize, parts: usize, nth: usize) -> usize {
    all / parts + usize::from(nth < all % parts)
}

/// One end: takes in so many connections, says something on each, and on some goes on.
pub(crate) fn senders(
    address: Ipv4Addr,
    port: u16,
    open: usize,
    active: usize,
    algorithm: &str,
) -> io::Result<()> {
    allow_files(open)?;
    let listener = TcpListener::bind((address, port))?;
    set_tcp_congestion(&listener, algorithm)?;
    println!("{LISTENS}");
    let take_in = |_| {
        let (mut sender, _) = listener.accept()?;
        sender.write_all(&[0; HELLO])?;
        sender.set_nonblocking(true)?;
        Ok(sender)
    };
    let mut idle = (0..open).map(take_in).collect::<io::Result<Vec<_>>>()?;
    println!("{OPEN}");
    let mut busy = idle.split_off(open - active);
    std::thread::spawn(move || {
        let zeros = [0; 1 << 14];
        loop {
            // One write each: a connection that always has room would keep the others waiting.
            for sender in &mut busy {
                let _ = sender.write(&zeros);
            }
            std::thread::sleep(ROUND);
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

/// The other ends: opens all connections, and reads what comes until standard input ends.
pub(crate) fn readers(address: Ipv4Addr, port: u16, open: usize) -> io::Result<()> {
    allow_files(open)?;
    let openers: Vec<_> = (0..OPENERS)
        .map(|nth| {
            let share = share(open, OPENERS, nth);
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
