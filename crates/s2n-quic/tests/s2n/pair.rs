//! A server and a client of s2n-quic on loopback.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::provider::tls::default as tls;
use s2n_quic::{Client, Connection, Server};
use trimtab_s2n_quic::{Config, Connected, Handle};

use crate::example::pem;

pub(crate) struct Pair {
    server: Server,
    client: Client,
    address: SocketAddr,
}

/// A connection, and what steers its server.
pub(crate) struct Link {
    server: Connection,
    client: Connection,
    pub(crate) handle: Handle,
}

impl Pair {
    pub(crate) fn new(config: Config) -> Self {
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = pem("CERTIFICATE", signed.cert.der());
        let key = pem("PRIVATE KEY", &signed.signing_key.serialize_der());
        let (controllers, events) = trimtab_s2n_quic::endpoint(config);
        let server = Server::builder().with_tls((&*certificate, &*key)).unwrap();
        let server = server.with_io((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = server.with_congestion_controller(controllers).unwrap();
        let server = server.with_event(events).unwrap().start().unwrap();
        let tls = tls::Client::builder().with_certificate(certificate).unwrap().build().unwrap();
        let client = Client::builder().with_tls(tls).unwrap();
        let client = client.with_io((Ipv4Addr::LOCALHOST, 0)).unwrap().start().unwrap();
        let address = server.local_addr().unwrap();
        Self { server, client, address }
    }

    pub(crate) async fn connect(&mut self) -> Link {
        let connect = Connect::new(self.address).with_server_name("localhost");
        let (client, server) = tokio::join!(self.client.connect(connect), self.server.accept());
        let (client, server) = (client.unwrap(), server.unwrap());
        let handle = server.query_event_context(Connected::handle).unwrap().unwrap();
        Link { server, client, handle }
    }
}

impl Link {
    /// The server sends so many bytes; those that arrive.
    pub(crate) async fn carry(&mut self, size: usize) -> usize {
        let mut send = self.server.open_send_stream().await.unwrap();
        let sending = async move {
            send.send(Bytes::from(vec![0; size])).await.unwrap();
            send.close().await.unwrap();
        };
        let receiving = async {
            let mut receive = self.client.accept_receive_stream().await.unwrap().unwrap();
            let mut received = 0;
            while let Some(piece) = receive.receive().await.unwrap() {
                received += piece.len();
            }
            received
        };
        tokio::join!(sending, receiving).1
    }
}
