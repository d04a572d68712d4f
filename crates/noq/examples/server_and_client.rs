//! A QUIC server whose connections are steered by Mortise, and a client, over loopback.
//!
//! ```sh
//! cargo run -p trimtab-noq --example server_and_client
//! ```
//!
//! With `QLOGDIR=FOLDER` it logs there what the congestion control does, in the format qlog.
//!
//! The client asks for responses of several sizes. The server states the size of each,
//! changes the algorithm in the middle, and prints reports. It ends after some seconds.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noq::rustls::RootCertStore;
use noq::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq::{ClientConfig, Endpoint, Incoming, ServerConfig, TransportConfig};
use trimtab_noq::units::Bytes;
use trimtab_noq::{Config, Handle, Metrics, Qlog};

/// What the client asks for, in bytes.
const RESPONSES: [u64; 4] = [100_000, 8_000_000, 100_000, 8_000_000];
/// No run takes longer.
const LIMIT: Duration = Duration::from_secs(20);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (received, metrics) = tokio::time::timeout(LIMIT, run()).await??;
    println!("{received} bytes arrived");
    println!("{metrics:#?}");
    Ok(())
}

/// Serves one client; the bytes that it received, and its connection at the end.
pub async fn run() -> Result<(usize, Metrics), Failure> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = CertificateDer::from(signed.cert);
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let tls = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Endpoint::server(tls.clone(), any_port)?;
    let address = server.local_addr()?;

    let qlog = Qlog::from_env()?.map(Qlog::at_server);
    let client = tokio::spawn(request(certificate, address));
    let incoming = server.accept().await.ok_or("the endpoint was closed")?;
    let metrics = serve(incoming, tls, qlog.clone()).await?;
    let received = client.await??;
    server.wait_idle().await;
    if let Some(qlog) = qlog {
        qlog.flush();
    }
    Ok((received, metrics))
}

/// Answers the requests of a connection: each is a stream with the size of the response.
async fn serve(
    incoming: Incoming,
    tls: ServerConfig,
    qlog: Option<Qlog>,
) -> Result<Metrics, Failure> {
    // These lines put a connection under Trimtab.
    let steering = Config::new("mortise")?.with_model("download")?.with_qlog(qlog);
    let (factory, handle) = steering.connection();
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(factory);
    let mut config = tls;
    config.transport_config(Arc::new(transport));
    let connection = incoming.accept_with(Arc::new(config))?.await?;

    let mut answered = 0;
    while answered < RESPONSES.len() {
        let (mut send, mut receive) = connection.accept_bi().await?;
        let mut size = [0; 8];
        receive.read_exact(&mut size).await?;
        let size = u64::from_be_bytes(size);
        // The network cannot see how much is to come.
        let response = handle.begin_response(Bytes::new(size));
        send.write_all(&vec![0; usize::try_from(size)?]).await?;
        send.finish()?;
        send.stopped().await?;
        response.end();
        print_reports(size, &handle);
        answered += 1;
        if answered == RESPONSES.len() / 2 {
            handle.set_scheme("bbr3")?;
        }
    }
    // As long as the connection is there.
    let metrics = handle.metrics().ok_or("the path is gone")?;
    connection.close(0_u32.into(), b"done");
    Ok(metrics)
}

/// The last report of a response, of the many that there are at round trips of microseconds.
fn print_reports(size: u64, handle: &Handle) {
    let reports = handle.take_reports();
    let Some(last) = reports.last() else { return };
    println!(
        "{size} bytes: {} reports; {} window {} B, srtt {:.3} ms, delivery {:.0} Mbit/s, {:?}",
        reports.len(),
        last.algorithm,
        last.window.get(),
        last.srtt.as_millis_f64(),
        last.delivery_rate_any.unwrap_or_default().mbps(),
        handle.metrics().and_then(|metrics| metrics.reason),
    );
}

/// Asks for all responses, one after the other; the bytes of them all.
async fn request(
    certificate: CertificateDer<'static>,
    address: SocketAddr,
) -> Result<usize, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = client.connect(address, "localhost")?.await?;
    let mut received = 0;
    for size in RESPONSES {
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(&size.to_be_bytes()).await?;
        send.finish()?;
        received += receive.read_to_end(usize::try_from(size)?).await?.len();
    }
    // The server closes: a close from here may overtake what the server still waits for,
    // the last acknowledgement.
    connection.closed().await;
    client.wait_idle().await;
    Ok(received)
}
