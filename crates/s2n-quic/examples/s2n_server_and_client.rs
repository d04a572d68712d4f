//! A QUIC server whose connections are steered by Mortise, and a client, over loopback.
//!
//! ```sh
//! cargo run -p trimtab-s2n-quic --features sockets --example s2n_server_and_client
//! ```
//!
//! With `QLOGDIR=FOLDER` it logs there what the congestion control does, in the format qlog.
//!
//! The client asks for responses of several sizes. The server states the size of each,
//! changes the algorithm in the middle, and prints reports. It ends after some seconds.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes as Piece;
use s2n_quic::client::{Client, Connect};
use s2n_quic::provider::tls::default as tls;
use s2n_quic::{Connection, Server};
use trimtab_s2n_quic::units::Bytes;
use trimtab_s2n_quic::{Config, Connected, Handle, Metrics, Qlog};

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

/// Text as TLS libraries read it (RFC 7468).
pub fn pem(label: &str, der: &[u8]) -> String {
    let body = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

/// Serves one client; the bytes that it received, and its connection at the end.
pub async fn run() -> Result<(usize, Metrics), Failure> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = pem("CERTIFICATE", signed.cert.der());
    let key = pem("PRIVATE KEY", &signed.signing_key.serialize_der());
    let qlog = Qlog::from_env()?.map(Qlog::at_server);

    // These lines put an endpoint under Trimtab.
    let config = Config::new("mortise")?.with_model("download")?.with_qlog(qlog.clone());
    let (controllers, events) = trimtab_s2n_quic::endpoint(config);
    let mut server = Server::builder()
        .with_tls((&*certificate, &*key))?
        .with_io((Ipv4Addr::LOCALHOST, 0))?
        .with_congestion_controller(controllers)?
        .with_event(events)?
        .start()?;

    let client = tokio::spawn(request(certificate, server.local_addr()?));
    let connection = server.accept().await.ok_or("the endpoint was closed")?;
    let metrics = serve(connection).await?;
    let received = client.await??;
    if let Some(qlog) = qlog {
        qlog.flush();
    }
    Ok((received, metrics))
}

/// Answers the requests of a connection: each is a stream with the size of the response.
async fn serve(mut connection: Connection) -> Result<Metrics, Failure> {
    let handle = connection.query_event_context(Connected::handle)?.ok_or("nothing steers it")?;
    // All reports are kept from now on.
    handle.take_reports();
    let mut answered = 0;
    let mut metrics = None;
    while answered < RESPONSES.len() {
        let accepted = connection.accept_bidirectional_stream().await?;
        let mut stream = accepted.ok_or("the client left early")?;
        let mut size = Vec::new();
        while let Some(piece) = stream.receive().await? {
            size.extend_from_slice(&piece);
        }
        let size = u64::from_be_bytes(size.as_slice().try_into()?);
        // The network cannot see how much is to come.
        let response = handle.begin_response(Bytes::new(size));
        stream.send(Piece::from(vec![0; usize::try_from(size)?])).await?;
        stream.finish()?;
        // Until all is acknowledged.
        stream.close().await?;
        response.end();
        print_reports(size, &handle);
        answered += 1;
        if answered == RESPONSES.len() / 2 {
            handle.set_scheme("bbr3")?;
        }
        metrics = handle.metrics();
    }
    connection.close(0_u32.into());
    metrics.ok_or_else(|| "the path is gone".into())
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
async fn request(certificate: String, address: SocketAddr) -> Result<usize, Failure> {
    let tls = tls::Client::builder().with_certificate(certificate)?.build()?;
    let client = Client::builder().with_tls(tls)?.with_io((Ipv4Addr::LOCALHOST, 0))?.start()?;
    let mut connection =
        client.connect(Connect::new(address).with_server_name("localhost")).await?;
    let mut received = 0;
    for size in RESPONSES {
        let mut stream = connection.open_bidirectional_stream().await?;
        stream.send(Piece::copy_from_slice(&size.to_be_bytes())).await?;
        stream.finish()?;
        while let Some(piece) = stream.receive().await? {
            received += piece.len();
        }
    }
    // The server closes: a close from here may overtake what the server still waits for,
    // the last acknowledgement.
    while let Ok(Some(_)) = connection.accept().await {}
    Ok(received)
}
