//! One transfer over loopback, both ends on one thread.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::rustls::RootCertStore;
use noq::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use noq_proto::congestion::ControllerFactory;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;

/// What decides how the server sends.
pub(crate) type Controllers = Arc<dyn ControllerFactory + Send + Sync>;
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// No transfer takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// Flow control stays out of the way.
const CREDIT: u32 = 64 << 20;
/// What the server's application writes at once.
const PIECE: usize = 1 << 20;

/// Makes transfers.
#[derive(Debug)]
pub(crate) struct Bench {
    runtime: Runtime,
    tls: ServerConfig,
    certificate: CertificateDer<'static>,
    bytes: u64,
}

/// What a transfer took, in seconds: of the clock, and of the processors by this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    pub(crate) processor: f64,
}

impl Bench {
    /// Transfers of so many bytes.
    pub(crate) fn new(bytes: u64) -> Result<Self, Failure> {
        let (tls, certificate) = identity()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, tls, certificate, bytes })
    }

    /// A server sends all bytes to a client on a connection of their own.
    pub(crate) fn transfer(&self, controllers: Controllers) -> Result<Cost, Failure> {
        self.runtime.block_on(async {
            tokio::time::timeout(LIMIT, self.run(controllers))
                .await
                .map_err(|_| format!("it takes longer than {} s", LIMIT.as_secs()))?
        })
    }

    async fn run(&self, controllers: Controllers) -> Result<Cost, Failure> {
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(controllers);
        transport.send_window(CREDIT.into());
        let mut server = self.tls.clone();
        server.transport_config(Arc::new(transport));
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Endpoint::server(server, any_port)?;
        let address = server.local_addr()?;
        let sender = tokio::spawn(send(server, self.bytes));

        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let mut transport = TransportConfig::default();
        transport.receive_window(VarInt::from_u32(CREDIT));
        transport.stream_receive_window(VarInt::from_u32(CREDIT));
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        config.transport_config(Arc::new(transport));
        let client = Endpoint::client(any_port)?;
        client.set_default_client_config(config);
        let connection = client.connect(address, "localhost")?.await?;
        let mut stream = connection.accept_uni().await?;
        let (begun, used) = (Instant::now(), processor());
        let mut received = 0;
        while let Some(chunk) = stream.read_chunk(usize::MAX).await? {
            received += chunk.len() as u64;
        }
        let cost = Cost { seconds: begun.elapsed().as_secs_f64(), processor: processor() - used };
        connection.close(0_u32.into(), b"done");
        sender.await??;
        client.wait_idle().await;
        if received < self.bytes {
            return Err(format!("{received} of {} bytes arrived", self.bytes).into());
        }
        Ok(cost)
    }
}

/// A server's configuration, and the certificate that its clients trust.
pub(crate) fn identity() -> Result<(ServerConfig, CertificateDer<'static>), Failure> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = CertificateDer::from(signed.cert);
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let tls = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    Ok((tls, certificate))
}

async fn send(server: Endpoint, bytes: u64) -> Result<(), Failure> {
    let incoming = server.accept().await.ok_or("the endpoint was closed")?;
    let connection = incoming.await?;
    let mut stream = connection.open_uni().await?;
    let piece = vec![0; PIECE];
    let mut left = bytes;
    while left > 0 {
        let now = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        stream.write_all(&piece[..now]).await?;
        left -= now as u64;
    }
    stream.finish()?;
    connection.closed().await;
    Ok(())
}

/// Seconds of the processors that this process has used.
fn processor() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
