//! Connections: taken in, up to a limit, with TLS where the configuration has a certificate, and served until they end.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::clock::now_ms;
use crate::config::{Limits, Tls};
use crate::engine::{Engine, log};
use crate::error::Error;
use crate::places::Places;

/// The longest wait for a handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a request comes from; an extension of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The certificate, which may be replaced while the engine runs.
#[derive(Clone, Default)]
pub(crate) struct Certificate(Arc<RwLock<Option<Arc<ServerConfig>>>>);

impl Certificate {
    /// Reads the files; without, connections are plain.
    pub(crate) fn load(&self, tls: Option<&Tls>) -> Result<(), Error> {
        let config = tls.map(server_config).transpose()?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config.map(Arc::new);
        Ok(())
    }

    fn acceptor(&self) -> Option<TlsAcceptor> {
        let config = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        config.map(TlsAcceptor::from)
    }
}

fn server_config(tls: &Tls) -> Result<ServerConfig, Error> {
    let fail = |path: &Path, e: &dyn std::fmt::Display| {
        Error::system(format!("read {} as PEM", path.display()), e)
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect)
        .map_err(|e| fail(&tls.certificate, &e))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|e| fail(&tls.key, &e))?;
    ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).map_err(|e| {
        Error::system(format!("use the certificate in {}", tls.certificate.display()), e)
    })
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
                    log(&format!("cannot take a connection: {e}"));
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
        let acceptor = certificate.acceptor();
        let ending = ending.clone();
        tokio::spawn(async move {
            converse(stream, acceptor, router, ending).await;
            drop((place, own));
        });
    }
    // Those that are open have the places that are missing.
    let _ = tokio::time::timeout(PATIENCE, room.acquire_many(connections)).await;
}

async fn converse(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    ending: watch::Receiver<bool>,
) {
    // A small answer should not wait for more to send with it.
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => answer(stream, router, ending).await,
        Some(acceptor) => {
            // Who speaks no TLS, or not ours, gets no answer that it would understand.
            if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                answer(stream, router, ending).await;
            }
        }
    }
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
