//! A QUIC server whose connections run what the engine of a fleet has learnt for their destinations,
//! and report to it (paper 002 §2, §3).
//!
//! ```sh
//! cargo run -p trimtab-noq --example fleet -- http://127.0.0.1:7480 edge.token tv [::]:4433
//! ```
//!
//! The arguments are the engine, a file with the token of an edge, the service, and where to listen.
//! A request is a stream with the size of its response, eight bytes.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq::{Connection, Endpoint, Incoming, RecvStream, SendStream, ServerConfig, TransportConfig};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use trimtab_fleet_client::edge::{Edge, Key, Measured, Options, Part, Prefix, ServiceName};
use trimtab_noq::{Arm, Config, ConfigError, Handle, TrimtabFactory, units};

/// Between looks at a connection: several an interval, and before 64 reports wait.
const LOOK: Duration = Duration::from_millis(200);
/// What runs until the engine has answered the first time.
const FIRST: &str = "vivace";

type Failure = Box<dyn Error + Send + Sync>;

/// A connection that runs what the engine chose.
pub struct Follower {
    part: Part,
    /// Of the connection.
    pub handle: Handle,
}

// These lines put the connections of a server under an engine.
impl Follower {
    /// A connection to this peer begins with what is in force there.
    pub fn new(
        edge: &Edge,
        service: &ServiceName,
        peer: IpAddr,
    ) -> Result<(Arc<TrimtabFactory>, Self), ConfigError> {
        let key = Key { service: service.clone(), prefix: Prefix::of(peer, Prefix::BITS) };
        let mut part = Part::new(key);
        let scheme =
            part.follow(edge).map_or_else(|| FIRST.to_owned(), |chosen| chosen.to_string());
        let (factory, handle) = Config::new(&scheme)?.connection_to(peer);
        // Reports are kept from the first call on.
        handle.take_reports();
        Ok((factory, Self { part, handle }))
    }

    /// Takes in what it measured, and follows what the engine has changed. Call it each `LOOK`.
    pub fn look(&mut self, edge: &Edge) -> Result<(), ConfigError> {
        for report in self.handle.take_reports() {
            self.part.on_measured(&Measured {
                acked: report.acked,
                lost: report.lost,
                busy: report.busy,
                rtt_sum: report.rtt_mean.unwrap_or_default() * report.rtt_samples,
                rtt_count: report.rtt_samples,
            });
        }
        // With a holdback or a guard: what runs the baseline says nothing of the engine's choice.
        let rests = self.handle.metrics().is_some_and(|metrics| metrics.resting.is_some());
        if rests || self.handle.arm() == Arm::Holdback {
            self.part.pause(edge);
            return Ok(());
        }
        self.part.follow(edge).map_or(Ok(()), |to| self.handle.set_scheme(&to.to_string()))
    }

    /// A response took so long, for services whose reward reads `request_time`.
    pub fn on_response(&mut self, took: Duration) {
        self.part.on_responses([units::Duration::from_nanos(took.as_nanos() as u64)]);
    }

    /// The connection ends.
    pub fn end(mut self, edge: &Edge) -> Result<(), ConfigError> {
        self.look(edge)?;
        self.part.hand_in(edge);
        Ok(())
    }
}

/// Accepts a connection, under the engine from its first packet on.
pub async fn accept(
    incoming: Incoming,
    mut config: ServerConfig,
    edge: &Edge,
    service: &ServiceName,
) -> Result<(Connection, Follower), Failure> {
    let (factory, follower) = Follower::new(edge, service, incoming.remote_address().ip())?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(factory);
    config.transport_config(Arc::new(transport));
    Ok((incoming.accept_with(Arc::new(config))?.await?, follower))
}

/// Serves a connection to its end.
pub async fn serve(
    connection: Connection,
    mut follower: Follower,
    edge: Arc<Edge>,
) -> Result<(), Failure> {
    let (took, mut times) = unbounded_channel();
    let answering = tokio::spawn(answer_all(connection.clone(), took));
    let mut looks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = looks.tick() => follower.look(&edge)?,
            Some(time) = times.recv() => follower.on_response(time),
            _ = connection.closed() => break,
        }
    }
    answering.abort();
    follower.end(&edge)?;
    Ok(())
}

/// Answers each request of a connection, and tells how long it took.
async fn answer_all(connection: Connection, took: UnboundedSender<Duration>) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        let took = took.clone();
        tokio::spawn(async move {
            let begin = Instant::now();
            // A request that its client gave up, or that names no size, counts for nothing.
            if answer(send, receive).await.is_ok() {
                let _ = took.send(begin.elapsed());
            }
        });
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<(), Failure> {
    let mut size = [0; 8];
    receive.read_exact(&mut size).await?;
    let (mut left, piece) = (u64::from_be_bytes(size), [0; 1 << 16]);
    while left > 0 {
        let some = left.min(piece.len() as u64);
        send.write_all(&piece[..some as usize]).await?;
        left -= some;
    }
    send.finish()?;
    send.stopped().await?;
    Ok(())
}

/// A certificate for tests, and a server's configuration with it.
pub fn certified() -> Result<(CertificateDer<'static>, ServerConfig), Failure> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = CertificateDer::from(signed.cert);
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    Ok((certificate, config))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [engine, token, service, listen] = &arguments[..] else {
        return Err("give the engine's URL, a file with a token, a service, and an address".into());
    };
    let edge = Arc::new(Edge::start(&Options {
        engine: engine.clone(),
        token: trimtab_fleet_client::Secret::File(token.into()),
        authority: None,
        folder: "edge".into(),
    })?);
    let service: ServiceName = service.parse()?;
    let (_, config) = certified()?;
    let endpoint = Endpoint::server(config.clone(), listen.parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        let (config, edge, service) = (config.clone(), Arc::clone(&edge), service.clone());
        tokio::spawn(async move {
            let served = match accept(incoming, config, &edge, &service).await {
                Ok((connection, follower)) => serve(connection, follower, edge).await,
                Err(problem) => Err(problem),
            };
            if let Err(problem) = served {
                eprintln!("a connection ends: {problem}");
            }
        });
    }
    Ok(())
}
