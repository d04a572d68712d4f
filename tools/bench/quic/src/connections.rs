//! A server with a thousand connections over loopback, each with a little to send: what steering
//! them takes above running the same algorithm.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noq::rustls::RootCertStore;
use noq::rustls::pki_types::CertificateDer;
use noq::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tokio::task::JoinSet;
use trimtab_noq::units::Bytes;
use trimtab_noq::{Config, Handle};
use trimtab_steer::Mortise;

use crate::memory::live;
use crate::transfer::{Failure, identity};
use crate::{BenchError, median};

const CONNECTIONS: usize = 1000;
/// Handshakes that take place at once: more would overflow the sockets.
const DIALLING: usize = 20;
/// Responses on each connection, this far apart.
const RESPONSES: u32 = 48;
const INTERVAL: Duration = Duration::from_millis(250);
const RESPONSE: usize = 6_000;
/// No round takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// What steering takes.
#[derive(Debug, Serialize)]
pub(crate) struct Steering {
    connections: usize,
    /// What runs without it.
    unsteered: String,
    /// Milliseconds of a processor that the server's thread takes without it, median.
    unsteered_ms: f64,
    /// With it over without it, in the same round.
    processor: Spread,
    /// Bytes that a connection has allocated without it, median; both ends.
    unsteered_bytes: f64,
    /// More with it, in the same round.
    bytes: Spread,
}

/// The median of rounds, and the ends.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl Spread {
    fn of(values: Vec<f64>) -> Self {
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { median: median(values), lowest, highest }
    }
}

/// What a round took.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Seconds of a processor, of the server's thread alone.
    processor: f64,
    /// Bytes per connection.
    bytes: f64,
}

/// Rounds with steering and without it, in turn; the first of each warms up.
pub(crate) fn measure(rounds: u64) -> Result<Steering, BenchError> {
    let spec = Mortise::algorithm();
    let knobs: Vec<String> =
        spec.settings().iter().map(|(knob, value)| format!("{knob}={value}")).collect();
    let unsteered = format!("{}:{}", spec.algorithm().name, knobs.join(","));
    let plain = Config::new(&unsteered)?;
    let steered = Config::new("mortise")?.with_model("download")?;
    let mut pairs = Vec::new();
    for number in 0..=rounds {
        let mut pair = [None; 2];
        // Each is first in every other round.
        for which in if number % 2 == 0 { [0, 1] } else { [1, 0] } {
            let config = if which == 0 { &plain } else { &steered };
            let config = config.clone().with_seed(number);
            pair[which] = Some(round(&config, which == 1).map_err(BenchError::Connections)?);
        }
        if let ([Some(plain), Some(steered)], 1..) = (pair, number) {
            pairs.push((plain, steered));
        }
    }
    let all = |of: &dyn Fn(&Sample, &Sample) -> f64| -> Vec<f64> {
        pairs.iter().map(|(plain, steered)| of(plain, steered)).collect()
    };
    Ok(Steering {
        connections: CONNECTIONS,
        unsteered,
        unsteered_ms: median(all(&|plain, _| plain.processor * 1e3)),
        processor: Spread::of(all(&|plain, steered| steered.processor / plain.processor)),
        unsteered_bytes: median(all(&|plain, _| plain.bytes)),
        bytes: Spread::of(all(&|plain, steered| steered.bytes - plain.bytes)),
    })
}

pub(crate) fn print(it: &Steering) {
    let Spread { median, lowest, highest } = it.processor;
    println!("| {} connections | unsteered | `mortise` |", it.connections);
    println!("|---|---|---|");
    println!(
        "| processor time of the server | {:.0} ms | {:.3} ({:.3} to {:.3}) |",
        it.unsteered_ms, median, lowest, highest
    );
    let Spread { median, lowest, highest } = it.bytes;
    println!(
        "| allocated per connection | {:.0} B | {median:+.0} B ({lowest:+.0} to {highest:+.0}) |",
        it.unsteered_bytes
    );
    println!("\nUnsteered: `{}`.", it.unsteered);
    println!("Processor time: user and system, medians of rounds in turn. Allocated: both ends.");
    println!("Targets: 1.1 and 2000 B.");
}

/// One server and one client; the client has a thread of its own.
fn round(config: &Config, steered: bool) -> Result<Sample, Failure> {
    let before = live();
    let (tls, certificate) = identity()?;
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let server_runtime = runtime()?;
    let _inside = server_runtime.enter();
    let server = Endpoint::server(tls.clone(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = server.local_addr()?;
    let client_runtime = runtime()?;
    let client =
        std::thread::spawn(move || client_runtime.block_on(within(client(certificate, address))));
    let sample = server_runtime.block_on(within(serve(server, tls, config, steered, before)))?;
    client.join().map_err(|_| "the client panicked")??;
    Ok(sample)
}

async fn within<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let limit = tokio::time::timeout(LIMIT, work).await;
    limit.map_err(|_| format!("a round takes longer than {} s", LIMIT.as_secs()))?
}

async fn serve(
    server: Endpoint,
    tls: ServerConfig,
    config: &Config,
    steered: bool,
    before: f64,
) -> Result<Sample, Failure> {
    let mut connections = Vec::with_capacity(CONNECTIONS);
    let mut dialling = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let incoming = server.accept().await.ok_or("the endpoint was closed")?;
        let (factory, handle) = config.connection();
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(factory);
        let mut own = tls.clone();
        own.transport_config(Arc::new(transport));
        let connecting = incoming.accept_with(Arc::new(own))?;
        dialling.spawn(async move { connecting.await.map(|connection| (connection, handle)) });
    }
    while let Some(connected) = dialling.join_next().await {
        connections.push(connected??);
    }
    drop(dialling);
    let begun = processor();
    let mut senders = JoinSet::new();
    for (number, (connection, handle)) in connections.iter().enumerate() {
        let handle = steered.then(|| handle.clone());
        let begins = INTERVAL.mul_f64(number as f64 / CONNECTIONS as f64);
        senders.spawn(respond(connection.clone(), handle, begins));
    }
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    drop(senders);
    let processor = processor() - begun;
    let bytes = (live() - before) / CONNECTIONS as f64;
    for (connection, _) in &connections {
        connection.close(0_u32.into(), b"done");
    }
    server.wait_idle().await;
    Ok(Sample { processor, bytes })
}

/// All responses of a connection; a steered one states their sizes.
async fn respond(
    connection: Connection,
    handle: Option<Handle>,
    begins: Duration,
) -> Result<(), Failure> {
    let data = [7; RESPONSE];
    let mut stream = connection.open_uni().await?;
    tokio::time::sleep(begins).await;
    let mut ticks = tokio::time::interval(INTERVAL);
    for _ in 0..RESPONSES {
        ticks.tick().await;
        let size = Bytes::new(RESPONSE as u64);
        let response = handle.as_ref().map(|handle| handle.begin_response(size));
        stream.write_all(&data).await?;
        drop(response);
    }
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}

async fn client(certificate: CertificateDer<'static>, server: SocketAddr) -> Result<(), Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let client = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let mut dialling = JoinSet::new();
    let mut readers = JoinSet::new();
    for number in 0..CONNECTIONS {
        if number >= DIALLING
            && let Some(connected) = dialling.join_next().await
        {
            readers.spawn(read(connected??));
        }
        dialling.spawn(client.connect(server, "localhost")?.into_future());
    }
    while let Some(connected) = dialling.join_next().await {
        readers.spawn(read(connected??));
    }
    while let Some(read) = readers.join_next().await {
        read??;
    }
    client.wait_idle().await;
    Ok(())
}

/// Reads all responses, and keeps the connection until the server closes it.
async fn read(connection: Connection) -> Result<(), Failure> {
    let mut stream = connection.accept_uni().await?;
    let mut received = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await? {
        received += chunk.len();
    }
    let expected = RESPONSE * RESPONSES as usize;
    if received != expected {
        return Err(format!("{received} of {expected} bytes arrived").into());
    }
    connection.closed().await;
    Ok(())
}

/// Seconds of the processors that this thread has used.
fn processor() -> f64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
