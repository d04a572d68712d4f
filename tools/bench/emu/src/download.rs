//! The download workload: requests on one TCP connection over a recorded link.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration as StdDuration, Instant};

use rustix::net::sockopt::set_tcp_congestion;
use trimtab_emu::{Config, ServerSide, Topology};
use trimtab_net::mahimahi_log::{OPPORTUNITY, OVERHEAD};
use trimtab_net::{Capacity, JitterConfig, LinkConfig, QueueConfig, Trace};
use trimtab_units::{Bytes, Duration};

use crate::cells::{self, Row, mean, median};
use crate::queue::queueing;
use crate::table::{Column, Measured};
use crate::{BenchError, traffic};

pub(crate) const COLUMNS: [Column; 5] = [
    Column { name: "median RCT, ms", is_relative: true },
    Column { name: "mean RCT, ms", is_relative: true },
    Column { name: "session, s", is_relative: true },
    Column { name: "mean queue, ms", is_relative: true },
    Column { name: "retransmitted, %", is_relative: false },
];

/// The bytes that frame a response.
const FRAMING: usize = 28;
/// How long before their first request the recordings connected.
const CONNECTED_FOR: StdDuration = StdDuration::from_millis(45);

/// A cell: its sessions, and the rows of their requests.
pub(crate) struct Cell {
    sessions: Vec<Row>,
    requests: Vec<Row>,
}

pub(crate) fn cells(ground_truth: &Path) -> Result<BTreeMap<String, Cell>, BenchError> {
    let name = |row: &Row| {
        let [trace, cca, buffer] = ["trace", "cca", "buffer_packets"].map(|c| row.text(c));
        format!("download-{cca}-{trace}-b{buffer}")
    };
    let sessions = cells::groups(cells::rows(&ground_truth.join("download-sessions.csv"))?, name);
    let mut requests = cells::groups(cells::rows(&ground_truth.join("download.csv"))?, name);
    let mut cell = |name: String, sessions| {
        let requests = requests.remove(&name).unwrap_or_default();
        (name, Cell { sessions, requests })
    };
    Ok(sessions.into_iter().map(|(name, sessions)| cell(name, sessions)).collect())
}

/// Runs a cell over our link.
pub(crate) fn measure(
    traces: &Path,
    cell: &Cell,
    jitter: JitterConfig,
) -> Result<Measured, BenchError> {
    let session = &cell.sessions[0];
    let trace = Trace::load(&cells::find_trace(traces, session.text("trace"))?)?;
    let capacity = Capacity::Trace {
        trace: Arc::new(trace),
        offset: Duration::ZERO,
        opportunity: OPPORTUNITY,
    };
    let packets = session.number("buffer_packets") as u32;
    let link = LinkConfig::new(capacity)
        .queue(QueueConfig::drop_tail_packets(packets))
        .overhead(OVERHEAD)
        .delay(Duration::from_millis(10))
        .jitter(jitter);
    let folder = tempfile::tempdir()?;
    let mut topology = Topology::new(ServerSide::Private)?;
    for side in [topology.server(), topology.client()] {
        side.set_sysctl("net.ipv4.tcp_no_metrics_save", "1")?;
    }
    let log = Some(folder.path().to_owned());
    let schedule = schedule(&cell.requests);
    topology.start(&Config { down: link.clone(), up: link, seed: 1, log })?;
    // Where in the trace a session began.
    let begin_ms = mean(&cell.sessions, "trace_ms_at_first_request");
    let begin = StdDuration::from_secs_f64(begin_ms / 1e3);
    let times = replay(&topology, session.text("cca"), begin, schedule)?;
    let (sent, again) = traffic::segments(topology.server())?;
    let report = topology.stop()?;
    let all = (Duration::ZERO, Duration::from_secs(3600));
    let queue = queueing(&folder.path().join("down.log"), Bytes::new(1400), all)?;
    let rct = |t: &Times| t.rct.as_secs_f64() * 1e3;
    let duration = times.iter().map(|t| t.sent + t.rct).max().unwrap_or_default();
    let mean_rct = times.iter().map(rct).sum::<f64>() / times.len() as f64;
    let retransmitted = again as f64 / (sent + again) as f64 * 100.0;
    let (sessions, requests) = (&cell.sessions, &cell.requests);
    Ok(Measured {
        ours: vec![
            median(times.iter().map(rct)),
            mean_rct,
            duration.as_secs_f64(),
            queue.mean_ms,
            retransmitted,
        ],
        theirs: vec![
            median(requests.iter().map(|row| row.number("rct_ms"))),
            mean(requests, "rct_ms"),
            mean(sessions, "duration_s"),
            mean(sessions, "queue_mean_ms"),
            mean(sessions, "retransmit_pct"),
        ],
        late_p99_ms: report.down.late.map_or(f64::NAN, |late| late.p99_ms),
    })
}

/// When requests are sent, after the first, and how large their responses are.
fn schedule(requests: &[Row]) -> Vec<(StdDuration, usize)> {
    let first = requests.iter().filter(|row| row.text("repeat") == "1");
    first
        .map(|row| {
            let at = StdDuration::from_secs_f64(row.number("t_send_ms").max(0.0) / 1e3);
            (at, row.number("size_bytes") as usize)
        })
        .collect()
}

/// What became of a request.
struct Times {
    /// When it was sent, after the first.
    sent: StdDuration,
    /// From sending to having received the whole response.
    rct: StdDuration,
}

/// The client sends each request at its time, the first at `begin` after the link's; the server answers one after the
/// other.
fn replay(
    topology: &Topology,
    cca: &str,
    begin: StdDuration,
    schedule: Vec<(StdDuration, usize)>,
) -> Result<Vec<Times>, BenchError> {
    let link_began = Instant::now();
    let address = (topology.server_address(), traffic::PORT);
    let cca = cca.to_owned();
    let listener = traffic::listen(topology.server(), address)?;
    let server = topology.server().thread(move || serve(&listener, &cca))?;
    let client = topology.client().thread(move || -> io::Result<Vec<Times>> {
        let begin = link_began + begin;
        sleep_until(begin - CONNECTED_FOR);
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let mut requests = socket.try_clone()?;
        let to_send = schedule.clone();
        let sender = thread::spawn(move || -> io::Result<Vec<Instant>> {
            let send = |(at, size): (StdDuration, usize)| {
                sleep_until(begin + at);
                let now = Instant::now();
                requests.write_all(&(size as u64).to_be_bytes())?;
                Ok(now)
            };
            to_send.into_iter().map(send).collect()
        });
        let mut buffer = vec![0; 1 << 17];
        let mut received = Vec::new();
        for (_, size) in &schedule {
            let mut left = size + FRAMING;
            while left > 0 {
                let length = left.min(buffer.len());
                match socket.read(&mut buffer[..length])? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    n => left -= n,
                }
            }
            received.push(Instant::now());
        }
        let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let first = sent.first().copied().unwrap_or(begin);
        let times = |(sent, received): (Instant, Instant)| Times {
            sent: sent - first,
            rct: received - sent,
        };
        Ok(sent.into_iter().zip(received).map(times).collect())
    })?;
    let times = traffic::join(client)?;
    traffic::join(server)?;
    Ok(times)
}

fn serve(listener: &TcpListener, cca: &str) -> io::Result<()> {
    let (mut socket, _) = listener.accept()?;
    set_tcp_congestion(&socket, cca)?;
    socket.set_nodelay(true)?;
    let zeros = vec![0; 1 << 17];
    let mut size = [0; 8];
    // Until the client closes the connection.
    while socket.read_exact(&mut size).is_ok() {
        let mut left = u64::from_be_bytes(size) as usize + FRAMING;
        while left > 0 {
            let length = left.min(zeros.len());
            socket.write_all(&zeros[..length])?;
            left -= length;
        }
    }
    Ok(())
}

fn sleep_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()));
}
