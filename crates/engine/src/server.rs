//! Connections: taken in, up to a limit, with TLS where the configuration has a certificate, and served until they end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{Error as TlsError, RootCertStore, ServerConfig};

use crate::certified::{Presented, Verifier};
use crate::clock::now_ms;
use crate::config::{Limits, Tls};
use crate::engine::Engine;
use crate::error::Error;
use crate::logging::warn;
use crate::places::Places;

/// The longest wait for a handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest wait for a client whose handshake failed to hang up.
const LINGER: Duration = Duration::from_secs(1);

/// Where a request comes from; an extension of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The engine's side of TLS, and what checks certificates of clients where they are taken.
#[derive(Clone)]
struct Ours {
    config: Arc<ServerConfig>,
    verifier: Option<Verifier>,
}

/// The certificate, which may be replaced while the engine runs.
#[derive(Clone, Default)]
pub(crate) struct Certificate(Arc<RwLock<Option<Ours>>>);

impl Certificate {
    /// Reads the files; without, connections are plain.
    pub(crate) fn load(&self, tls: Option<&Tls>) -> Result<(), Error> {
        let new = tls.map(ours).transpose()?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    fn ours(&self) -> Option<Ours> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What checks certificates of clients now; none: they are not taken.
    pub(crate) fn verifier(&self) -> Option<Verifier> {
        self.ours()?.verifier
    }
}

fn ours(tls: &Tls) -> Result<Ours, Error> {
    let fail = |path: &Path, e: &dyn std::fmt::Display| {
        Error::system(format!("read {} as PEM", path.display()), e)
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect)
        .map_err(|e| fail(&tls.certificate, &e))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|e| fail(&tls.key, &e))?;
    let verifier = tls.clients.as_deref().map(verifier).transpose()?;
    let builder = ServerConfig::builder();
    let builder = match &verifier {
        Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(chain, key).map_err(|e| {
        Error::system(format!("use the certificate in {}", tls.certificate.display()), e)
    })?;
    Ok(Ours { config: Arc::new(config), verifier })
}

/// Checks certificates of clients by the authorities in a file; a client may have none.
fn verifier(authority: &Path) -> Result<Verifier, Error> {
    let fail = |e: &dyn std::fmt::Display| {
        let what = format!("use {} as authorities of clients ([tls] clients)", authority.display());
        Error::system(what, e)
    };
    let mut trusted = RootCertStore::empty();
    for one in CertificateDer::pem_file_iter(authority).map_err(|e| fail(&e))? {
        trusted.add(one.map_err(|e| fail(&e))?).map_err(|e| fail(&e))?;
    }
    let builder = WebPkiClientVerifier::builder(Arc::new(trusted)).allow_unauthenticated();
    builder.build().map_err(|e| fail(&e))
}

/// Serves connections until told to end, and then those that are open until their requests are answered.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    certificate: Certificate,
    engine: Arc<Engine>,
    mut ending: watch::Receiver<bool>,
) {
    let Limits { connections, connections_per_address, .. } = engine.limits;
    let room = Arc::new(Semaphore::new(connections as usize));
    let places = Places::new(connections_per_address);
    loop {
        // At the limit, who comes waits in the kernel's queue.
        let place = tokio::select! {
            _ = ending.changed() => break,
            place = Arc::clone(&room).acquire_owned() => place.expect("nobody closes it"),
        };
        let (stream, peer) = tokio::select! {
            _ = ending.changed() => break,
            taken = listener.accept() => match taken {
                Ok(taken) => taken,
                Err(e) => {
                    // Out of files, mostly: others may end meanwhile.
                    warn(&format!("cannot take a connection: {e}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let Some(own) = places.take(peer.ip()) else {
            engine.metrics.connection_refused();
            let line = format!(
                "a connection from {} is closed: it has {connections_per_address} already \
                 (connections_per_address)",
                peer.ip()
            );
            engine.refusals.log(now_ms(), &line);
            continue;
        };
        let router = router.clone().layer(axum::Extension(Peer(peer)));
        let (ours, engine) = (certificate.ours(), Arc::clone(&engine));
        let ending = ending.clone();
        tokio::spawn(async move {
            converse(stream, ours, router, &engine, ending).await;
            drop((place, own));
        });
    }
    // Those that are open have the places that are missing.
    let _ = tokio::time::timeout(PATIENCE, room.acquire_many(connections)).await;
}

async fn converse(
    stream: TcpStream,
    ours: Option<Ours>,
    router: Router,
    engine: &Engine,
    ending: watch::Receiver<bool>,
) {
    // A small answer should not wait for more to send with it.
    let _ = stream.set_nodelay(true);
    let Some(Ours { config, verifier }) = ours else {
        return answer(stream, router, ending).await;
    };
    let from = stream.peer_addr();
    let hands = TlsAcceptor::from(config).accept(stream).into_fallible();
    match tokio::time::timeout(PATIENCE, hands).await {
        Ok(Ok(stream)) => {
            let chain = stream.get_ref().1.peer_certificates();
            let router = match chain.zip(verifier) {
                Some((chain, by)) => {
                    router.layer(axum::Extension(Presented::new(chain, by, now_ms())))
                }
                None => router,
            };
            answer(stream, router, ending).await;
        }
        Ok(Err((error, stream))) => {
            if let (Some(why), Ok(from)) = (refused_certificate(&error), from) {
                engine.refuse_certificate(from, &why, now_ms());
            }
            let _ = tokio::time::timeout(LINGER, linger(stream)).await;
        }
        // Some clients begin and do not go on.
        Err(_) => {}
    }
}

/// Why a certificate of a client is refused, where a handshake failed for that.
fn refused_certificate(error: &std::io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref::<TlsError>()? {
        TlsError::InvalidCertificate(why) => Some(why.to_string()),
        _ => None,
    }
}

/// Takes what a client still sends: closing earlier could lose the alert that says why.
async fn linger(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    mut ending: watch::Receiver<bool>,
) {
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    tokio::pin!(connection);
    tokio::select! {
        // A client that hangs up early gets no answer.
        _ = connection.as_mut() => {}
        _ = ending.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
