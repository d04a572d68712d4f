//! A connection to a server.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use h3::client::{RequestStream, SendRequest};
use http::Request;
use noq::{ClientConfig, Endpoint, TransportConfig};
use tokio::task::JoinHandle;
use trimtab_h3_noq::{BidiStream, Connection, OpenStreams, h3, noq};
use trimtab_noq::Config;

use super::Failure;

/// A connection that requests can be sent on. Close it by [`end`](Self::end).
pub(crate) struct Session {
    endpoint: Endpoint,
    requests: SendRequest<OpenStreams, Bytes>,
    driver: JoinHandle<()>,
}

/// A request's stream.
pub(crate) type Stream = RequestStream<BidiStream<Bytes>, Bytes>;

impl Session {
    /// Connects to a host, whose name its certificate has to have.
    pub(crate) async fn connect(
        host: &str,
        port: u16,
        scheme: &str,
        mut config: ClientConfig,
    ) -> Result<Self, Failure> {
        // An IPv6 address in a URL has brackets.
        let host = host.trim_matches(['[', ']']);
        let unreached = |e: &dyn std::fmt::Display| format!("cannot reach {host}:{port}: {e}");
        let mut addresses =
            tokio::net::lookup_host((host, port)).await.map_err(|e| unreached(&e))?;
        let address = addresses.next().ok_or_else(|| unreached(&"it has no address"))?;

        // What the client sends is under Trimtab, too.
        let (factory, _handle) = Config::new(scheme)?.connection();
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(factory);
        config.transport_config(Arc::new(transport));
        let any = match address.is_ipv4() {
            true => (Ipv4Addr::UNSPECIFIED, 0).into(),
            false => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let endpoint = Endpoint::client(any)?;
        let connection =
            endpoint.connect_with(config, address, host)?.await.map_err(|e| unreached(&e))?;
        let (mut driver, requests) = h3::client::new(Connection::new(connection)).await?;
        let driver = tokio::spawn(async move {
            driver.wait_idle().await;
        });
        Ok(Self { endpoint, requests, driver })
    }

    /// Sends a request whose body is to follow.
    pub(crate) async fn open(&self, request: Request<()>) -> Result<Stream, Failure> {
        Ok(self.requests.clone().send_request(request).await?)
    }

    /// Sends a request without a body.
    pub(crate) async fn send(&self, request: Request<()>) -> Result<Stream, Failure> {
        let mut stream = self.open(request).await?;
        stream.finish().await?;
        Ok(stream)
    }

    /// Closes the connection, and waits until that has been sent.
    pub(crate) async fn end(self) {
        drop(self.requests);
        // It ends when nobody can send requests any more.
        let _ = self.driver.await;
        self.endpoint.wait_idle().await;
    }
}

/// The next piece of a response's body; `None` at its end.
pub(crate) async fn piece(stream: &mut Stream) -> Result<Option<Bytes>, Failure> {
    Ok(stream.recv_data().await?.map(|mut data| data.copy_to_bytes(data.remaining())))
}
