//! What an acknowledgement costs where tens of thousands of connections are active, vs. the kernel's
//! own CUBIC and BBR.
//!
//! All connections stay open; in each turn every one of them sends a few packets, which arrive
//! before the next ones send. So the state of each has left the processor's caches by the time that
//! it is used again. The same sockets run one algorithm after the other (`TCP_CONGESTION`), those
//! that pace last, since a socket that was paced stays so. The sender cuts segments into packets
//! (GSO), the receiver merges them (GRO). Its acknowledgements are handled in the thread of the sender's device, whose time is counted. In another turn connections
//! send one by one, and the kernel's statistics tell what each response cost the programs. They say
//! nothing of the kernel's own algorithms, which are no programs.
//!
//! A process may have fewer files than there are sockets, so worker processes hold them, and take
//! their turns one after the other.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::net::sockopt::set_tcp_congestion;
use serde::{Deserialize, Serialize};
use trimtab_kernel::Algorithm;

use crate::hosts::{Host, Hosts, SENDER};
use crate::processor::thread_ns;
use crate::programs::Statistics;
use crate::table::{Figure, median};
use crate::timing::{Programs, numbers};
use crate::{BenchError, Loaded, system};

/// Connections of each part.
const COUNTS: [usize; 2] = [10_000, 50_000];
/// Slots for the larger.
pub(crate) const SLOTS: u32 = 65_536;
/// Three packets; so many connections send at once that the ring of a veth device (256) holds them.
const PIECE: usize = 4000;
const AT_ONCE: usize = 64;
/// No response takes longer, whatever the machine does meanwhile.
const PATIENCE: Duration = Duration::from_secs(20);
/// Connections are opened by so many at once, which a listening socket's queue holds.
const BATCH: usize = 100;
/// Connections of a worker, and a port of the sender for each worker from here on.
const OF_WORKER: usize = 7500;
const FIRST_PORT: u16 = 7300;
/// What a worker answers.
const DONE: &str = "done";

/// An algorithm, the one of the kernel's own that it is compared with, and its programs that run
/// with an acknowledgement: the first with every one.
struct Kind {
    name: String,
    peer: &'static str,
    programs: &'static [&'static str],
}

/// Both ends of every connection of a worker, in the same order.
struct Connections {
    senders: Vec<TcpStream>,
    receivers: Vec<TcpStream>,
}

impl Connections {
    fn open(hosts: &Hosts, count: usize, port: u16) -> Result<Self, BenchError> {
        let address = SocketAddr::from((SENDER, port));
        let listener = hosts.within(Host::Sender, move || TcpListener::bind(address))?;
        let mut all = Self { senders: Vec::new(), receivers: Vec::new() };
        while all.senders.len() < count {
            let more = BATCH.min(count - all.senders.len());
            let connect = move || (0..more).map(|_| TcpStream::connect(address)).collect();
            let receivers: Vec<TcpStream> = hosts.within(Host::Router, connect)?;
            all.receivers.extend(receivers);
            for _ in 0..more {
                all.senders.push(listener.accept().map_err(system("accept"))?.0);
            }
        }
        for socket in &all.receivers {
            socket.set_read_timeout(Some(PATIENCE)).map_err(system("set a timeout"))?;
        }
        Ok(all)
    }

    /// Gives all senders another algorithm.
    fn run_with(&self, name: &str) -> Result<(), BenchError> {
        self.senders.iter().try_for_each(|socket| {
            set_tcp_congestion(socket, name).map_err(system("change the algorithm"))
        })
    }

    /// Every connection sends a piece, one after the other: nanoseconds for each acknowledgement,
    /// response by response.
    fn timed_turn(&mut self, programs: &Programs) -> Result<Vec<f64>, BenchError> {
        let mut piece = [0; PIECE];
        let mut took = Vec::new();
        let mut before = programs.ran()?;
        for (sender, receiver) in self.senders.iter_mut().zip(&mut self.receivers) {
            sender.write_all(&piece).map_err(system("send"))?;
            receiver.read_exact(&mut piece).map_err(system("receive"))?;
            let after = programs.ran()?;
            // An acknowledgement that comes later is of the next one's.
            if after.0 > before.0 {
                took.push((after.1 - before.1) as f64 / (after.0 - before.0) as f64);
                before = after;
            }
        }
        Ok(took)
    }

    /// Every connection sends a piece.
    fn turn(&mut self) -> Result<(), BenchError> {
        let mut piece = [0; PIECE];
        let both = self.senders.chunks_mut(AT_ONCE).zip(self.receivers.chunks_mut(AT_ONCE));
        for (senders, receivers) in both {
            for socket in senders {
                socket.write_all(&piece).map_err(system("send"))?;
            }
            for socket in receivers {
                socket.read_exact(&mut piece).map_err(system("receive"))?;
            }
        }
        Ok(())
    }
}

/// What a worker is to do.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    /// Every connection sends a piece.
    Turn,
    /// They do so one by one, and these programs are looked at after each.
    Time(Vec<u32>),
    /// All run with this algorithm from here on.
    RunWith(String),
}

/// A worker: holds so many connections from this port, and does what its input says.
pub(crate) fn work(count: u16, port: u16) -> Result<(), BenchError> {
    let hosts = Hosts::of_others();
    let mut all = Connections::open(&hosts, count.into(), port)?;
    println!("{DONE}");
    for line in std::io::stdin().lines() {
        let line = line.map_err(system("read what to do"))?;
        match serde_json::from_str(&line).map_err(system("read what to do"))? {
            Order::Turn => all.turn()?,
            Order::RunWith(name) => all.run_with(&name)?,
            Order::Time(numbers) => {
                for took in all.timed_turn(&Programs::open(&numbers)?)? {
                    println!("{took}");
                }
            }
        }
        println!("{DONE}");
    }
    Ok(())
}

/// The workers, which end with it.
struct Workers(Vec<(Child, ChildStdin, Lines<BufReader<ChildStdout>>)>);

impl Workers {
    fn start(count: usize) -> Result<Self, BenchError> {
        let program = std::env::current_exe().map_err(system("find this program"))?;
        let mut all = Self(Vec::new());
        for (port, first) in (FIRST_PORT..).zip((0..count).step_by(OF_WORKER)) {
            let share = OF_WORKER.min(count - first);
            let mut child = Command::new(&program)
                .args(["--worker", &share.to_string(), &port.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(system("start a worker"))?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(system("start a worker")("it has no pipes"));
            };
            all.0.push((child, input, BufReader::new(output).lines()));
            all.answer(all.0.len() - 1)?;
        }
        Ok(all)
    }

    /// What a worker answers before it is done.
    fn answer(&mut self, worker: usize) -> Result<Vec<f64>, BenchError> {
        let mut values = Vec::new();
        for line in &mut self.0[worker].2 {
            let line = line.map_err(system("read a worker's answer"))?;
            if line == DONE {
                return Ok(values);
            }
            values.push(line.parse().map_err(system("read a worker's answer"))?);
        }
        Err(system("wait for a worker")("it ended; its own message is above"))
    }

    /// One after the other; what they answer.
    fn tell(&mut self, order: &Order) -> Result<Vec<f64>, BenchError> {
        let line = serde_json::to_string(order).map_err(system("tell a worker"))?;
        let mut values = Vec::new();
        for worker in 0..self.0.len() {
            writeln!(self.0[worker].1, "{line}").map_err(system("tell a worker"))?;
            values.extend(self.answer(worker)?);
        }
        Ok(values)
    }

    fn turns(&mut self, count: usize) -> Result<(), BenchError> {
        (0..count).try_for_each(|_| self.tell(&Order::Turn).map(|_| ()))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for (child, ..) in &mut self.0 {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Segments that the sender's namespace received, which are acknowledgements.
fn acks(hosts: &Hosts) -> Result<u64, BenchError> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/snmp");
    let text = hosts.within(Host::Sender, read)?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let names = lines.next().unwrap_or_default().split(' ');
    let mut both = names.zip(lines.next().unwrap_or_default().split(' '));
    let value = both.find(|(name, _)| *name == "InSegs").and_then(|(_, value)| value.parse().ok());
    value.ok_or_else(|| system("read the counters of TCP")("there is no InSegs"))
}

/// What one kind took in each round: the device's thread for each acknowledgement, that vs. its
/// peer's, the programs, and so long, or less, in 99 of 100 responses.
#[derive(Default)]
struct Seen {
    thread_ns: Vec<f64>,
    ratio: Vec<f64>,
    programs_ns: Vec<f64>,
    p99_ns: Vec<f64>,
}

/// The time of the device's thread for each acknowledgement of so many turns.
fn thread_per_ack(hosts: &Hosts, all: &mut Workers, turns: usize) -> Result<f64, BenchError> {
    let thread = hosts.receiving_thread()?;
    let (acks_before, before) = (acks(hosts)?, thread_ns(thread)?);
    all.turns(turns)?;
    let (acks_after, after) = (acks(hosts)?, thread_ns(thread)?);
    Ok((after - before) as f64 / (acks_after - acks_before).max(1) as f64)
}

/// Times the programs.
fn time(all: &mut Workers, kind: &Kind, seen: &mut Seen) -> Result<(), BenchError> {
    if kind.programs.is_empty() {
        return Ok(());
    }
    let _statistics = Statistics::on()?;
    let mut took = all.tell(&Order::Time(numbers(kind.programs)?))?;
    if took.is_empty() {
        return Err(system("time an algorithm")(format!("no program of {} ran", kind.name)));
    }
    took.sort_by(f64::total_cmp);
    seen.p99_ns.push(took[(took.len() * 99).div_ceil(100) - 1]);
    seen.programs_ns.push(took.iter().sum::<f64>() / took.len() as f64);
    Ok(())
}

pub(crate) fn measure(
    hosts: &Hosts,
    loaded: &Loaded,
    rounds: usize,
) -> Result<Vec<Figure>, BenchError> {
    let own = |peer: &'static str| Kind { name: peer.to_owned(), peer, programs: &[] };
    let ours = |algorithm, peer, programs| Kind { name: loaded.name_of(algorithm), peer, programs };
    let kinds = [
        own("cubic"),
        ours(Algorithm::Cubic, "cubic", &["tt_cubic_acked", "tt_cubic_avoid"]),
        own("bbr"),
        ours(Algorithm::Bbr, "bbr", &["tt_bbr_ack"]),
        ours(Algorithm::Bbr3, "bbr", &["tt_bbr3_ack"]),
        ours(Algorithm::Copa, "bbr", &["tt_copa_ack"]),
    ];
    let mut figures = Vec::new();
    for count in COUNTS {
        let turns = (COUNTS[1] / count).min(3);
        let mut seen: Vec<Seen> = kinds.iter().map(|_| Seen::default()).collect();
        for round in 0..rounds.max(1) {
            eprintln!("round {} of {rounds} with {count} active connections", round + 1);
            let mut all = Workers::start(count)?;
            let mut peer = 1.0;
            for (i, kind) in kinds.iter().enumerate() {
                all.tell(&Order::RunWith(kind.name.clone()))?;
                all.turns(1)?; // in which it begins
                let took = thread_per_ack(hosts, &mut all, turns)?;
                if kind.name == kind.peer {
                    peer = took;
                }
                seen[i].thread_ns.push(took);
                seen[i].ratio.push(took / peer);
                time(&mut all, kind, &mut seen[i])?;
            }
        }
        for (kind, seen) in kinds.iter().zip(seen) {
            figures.extend(described(count, kind, seen));
        }
    }
    Ok(figures)
}

fn described(count: usize, kind: &Kind, seen: Seen) -> Vec<Figure> {
    let name = format!("{count}, {}", kind.name.trim_end_matches("_z"));
    let thread = format!("{name}: the device's thread");
    let mut figures = vec![Figure::new(thread, median(seen.thread_ns), "ns/ACK")];
    if kind.name != kind.peer {
        let what = format!("{name}: … vs. the kernel's {}", kind.peer);
        figures.push(Figure::new(what, median(seen.ratio), "x"));
    }
    if !seen.p99_ns.is_empty() {
        let what = format!("{name}: its programs");
        figures.push(Figure::new(&what, median(seen.programs_ns), "ns/ACK"));
        figures.push(Figure::new(
            format!("{what}, 99th percentile"),
            median(seen.p99_ns),
            "ns/ACK",
        ));
    }
    figures
}
