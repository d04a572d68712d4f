//! A server of HTTP/3 whose connections are steered, each by itself.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h3::error::StreamError;
use h3::server::{RequestResolver, RequestStream};
use http::Request;
use noq::{Endpoint, Incoming, ServerConfig, TransportConfig};
use tokio::task::JoinSet;
use trimtab_h3_noq::{BidiStream, Connection, h3, noq};
use trimtab_noq::{Config, Qlog};

use super::Failure;
use super::identity::Identity;
use super::report::Report;
use super::responses::Responses;

/// Where a server listens, who it is, and how it is steered.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Address and UDP port to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:4433")]
    pub(crate) listen: SocketAddr,
    /// Certificates in PEM, the server's own first; default: self-signed
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Name or address in the self-signed certificate; may be repeated
    #[arg(long, value_name = "NAME", default_values = ["localhost", "127.0.0.1"])]
    pub(crate) name: Vec<String>,
    /// Scheme of each connection, e.g. mortise, bbr3, copa:delta=0.1
    #[arg(long, value_name = "SCHEME", default_value = "mortise")]
    pub(crate) cc: String,
    /// QoE model that the scheme follows: download, web, vod, conference or a formula
    #[arg(long, value_name = "MODEL", default_value = "download")]
    pub(crate) model: String,
    /// Seconds after which a silent connection is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) idle: u32,
    /// Folder for a log of each connection in the format qlog
    #[arg(long, value_name = "FOLDER", env = "QLOGDIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Print a line of metrics when a connection ends
    #[arg(long)]
    pub(crate) report: bool,
}

/// A request's stream.
pub(crate) type Stream = RequestStream<BidiStream<Bytes>, Bytes>;

/// What answers requests.
pub(crate) trait Answer: Send + Sync + 'static {
    /// Answers a request. `responses` gets the response's size before it is sent.
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<()>,
        stream: Stream,
        responses: &Responses,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A server that listens.
pub(crate) struct Server {
    endpoint: Endpoint,
    config: ServerConfig,
    steering: Config,
    qlog: Option<Qlog>,
    idle: Duration,
    identity: Identity,
}

impl Server {
    /// Opens the socket; within a runtime of tokio.
    pub(crate) fn new(options: &Options) -> Result<Self, Failure> {
        let identity = match (&options.cert, &options.key) {
            (Some(certificate), Some(key)) => Identity::read(certificate, key)?,
            _ => Identity::self_signed(options.name.clone())?,
        };
        let config = identity.server_config()?;
        let qlog = options.qlog.as_ref().map(Qlog::in_folder).transpose()?.map(Qlog::at_server);
        let steering = Config::new(&options.cc)?.with_model(&options.model)?;
        let steering = steering.with_qlog(qlog.clone());
        let endpoint = Endpoint::server(config.clone(), options.listen)
            .map_err(|e| format!("cannot listen on {}: {e}; choose --listen", options.listen))?;
        let idle = Duration::from_secs(options.idle.into());
        Ok(Self { endpoint, config, steering, qlog, idle, identity })
    }

    /// The hash of the server's key, for a browser that is to trust it.
    pub(crate) fn key_hash(&self) -> Result<String, Failure> {
        self.identity.key_hash()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> Result<SocketAddr, Failure> {
        Ok(self.endpoint.local_addr()?)
    }

    /// Prints the address, and the hash of the server's key.
    pub(crate) fn print_address(&self) -> Result<(), Failure> {
        println!("listening on {}", self.address()?);
        println!("SHA-256 of the public key: {}", self.key_hash()?);
        Ok(())
    }

    /// Serves until Ctrl-C. `report` gets each connection that ends; failed requests are printed.
    pub(crate) async fn run(
        self,
        answer: impl Answer,
        report: impl Fn(Report) + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let (answer, report) = (Arc::new(answer), Arc::new(report));
        loop {
            let incoming = tokio::select! {
                incoming = self.endpoint.accept() => incoming,
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    self.endpoint.close(h3_no_error(), b"the server ends");
                    self.endpoint.wait_idle().await;
                    if let Some(qlog) = self.qlog {
                        qlog.flush();
                    }
                    return Ok(());
                }
            };
            let Some(incoming) = incoming else { return Ok(()) };
            let (config, responses) = self.steer()?;
            let (answer, report) = (answer.clone(), report.clone());
            tokio::spawn(async move {
                let peer = incoming.remote_address();
                match serve(incoming, config, responses, answer).await {
                    Ok(ended) => report(ended),
                    Err(problem) => eprintln!("{peer}: {problem}"),
                }
            });
        }
    }

    /// These lines put a connection under Trimtab.
    fn steer(&self) -> Result<(ServerConfig, Responses), Failure> {
        let (factory, handle) = self.steering.connection();
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(factory);
        transport.max_idle_timeout(Some(self.idle.try_into()?));
        let mut config = self.config.clone();
        config.transport_config(Arc::new(transport));
        Ok((config, Responses::new(handle)))
    }
}

/// The code of a close without an error (RFC 9114 §8.1).
fn h3_no_error() -> noq::VarInt {
    noq::VarInt::from_u32(0x100)
}

/// Serves a connection until it ends, however it does.
async fn serve(
    incoming: Incoming,
    config: ServerConfig,
    responses: Responses,
    answer: Arc<impl Answer>,
) -> Result<Report, Failure> {
    let (peer, begun) = (incoming.remote_address(), Instant::now());
    let connection = incoming.accept_with(Arc::new(config))?.await?;
    let transport = Connection::new(connection).finish_when_delivered();
    let mut requests = h3::server::Connection::<_, Bytes>::new(transport).await?;
    let mut tasks = JoinSet::new();
    // Until the client closes the connection, or has been silent for too long.
    while let Ok(Some(request)) = requests.accept().await {
        while tasks.try_join_next().is_some() {}
        let (answer, responses) = (answer.clone(), responses.clone());
        tasks.spawn(async move {
            // What the client has caused is not worth a line.
            if let Err(problem) = respond(peer, request, &responses, &*answer).await
                && problem.downcast_ref::<StreamError>().is_none()
            {
                eprintln!("{peer}: {problem}");
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    let metrics = responses.metrics().ok_or("the connection ended before it had a path")?;
    Ok(Report { peer, lasted: begun.elapsed(), responses: responses.delivered(), metrics })
}

async fn respond(
    peer: SocketAddr,
    request: RequestResolver<Connection, Bytes>,
    responses: &Responses,
    answer: &impl Answer,
) -> Result<(), Failure> {
    let (request, stream) = request.resolve_request().await?;
    let asked = format!("{} {}", request.method(), request.uri());
    answer.answer(peer, request, stream, responses).await.map_err(|problem| {
        // Kept as it is, so that one can tell where it comes from.
        match problem.downcast::<StreamError>() {
            Ok(of_client) => of_client as Failure,
            Err(ours) => format!("{asked}: {ours}").into(),
        }
    })
}
