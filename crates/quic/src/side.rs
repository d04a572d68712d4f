//! One end of a connection: an endpoint of noq without a socket.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use noq_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint,
    Endpoint, EndpointConfig, Event, FourTuple, ServerConfig, StreamEvent, TransportConfig, VarInt,
};
use trimtab_units::{Bytes, Time};

use crate::clock::Clock;
use crate::identity::NAME;

/// Headers of IPv4 and UDP.
pub(crate) const HEADERS: Bytes = Bytes::new(28);
/// The payload of a UDP datagram in a packet of 1500 bytes, the simulator's.
pub(crate) const PAYLOAD: u16 = 1472;
/// What leaves at once, as with segmentation offload.
const DATAGRAMS_MAX: NonZeroUsize = NonZeroUsize::new(10).unwrap();
/// A terabyte, as a window of flow control: only the congestion window limits a sender.
pub(crate) const UNLIMITED: Bytes = Bytes::new(1 << 40);
/// Requests that may be open at once; the client holds back what comes above.
const STREAMS: u32 = 1000;

/// A UDP datagram.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) data: BytesMut,
    pub(crate) ecn: Option<EcnCodepoint>,
}

impl Datagram {
    /// What it takes on a link.
    pub(crate) fn size(&self) -> Bytes {
        Bytes::new(self.data.len() as u64) + HEADERS
    }

    /// Whether a link may mark it in place of dropping it (RFC 3168).
    pub(crate) fn is_capable(&self) -> bool {
        self.ecn.is_some()
    }

    /// The same with a congestion mark.
    pub(crate) fn marked(self) -> Self {
        Self { ecn: Some(EcnCodepoint::Ce), ..self }
    }
}

/// How both ends speak: packets of one size, and no limit but the congestion window and that of a
/// stream that the end receives.
pub(crate) fn transport(stream_window: Bytes) -> TransportConfig {
    let window = |bytes: Bytes| VarInt::from_u64(bytes.get()).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(PAYLOAD)
        .min_mtu(PAYLOAD)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .stream_receive_window(window(stream_window))
        .receive_window(window(UNLIMITED))
        .send_window(UNLIMITED.get())
        .max_concurrent_bidi_streams(STREAMS.into());
    transport
}

/// An end of a connection.
#[derive(Debug)]
pub(crate) struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
    /// What leaves; kept to save allocations.
    buffer: Vec<u8>,
}

impl Side {
    fn new(seed: u64, port: u16, server: Option<Arc<ServerConfig>>) -> Self {
        let mut config = EndpointConfig::default();
        let mut bytes = [port as u8; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        config.rng_seed(Some(bytes));
        Self {
            endpoint: Endpoint::new(Arc::new(config), server, false),
            connection: None,
            peer: address(3 - port),
            buffer: Vec::new(),
        }
    }

    /// An end that accepts one connection.
    pub(crate) fn server(seed: u64, config: ServerConfig) -> Self {
        Self::new(seed, 1, Some(Arc::new(config)))
    }

    /// An end that connects.
    pub(crate) fn client(seed: u64) -> Self {
        Self::new(seed, 2, None)
    }

    /// Begins a handshake.
    pub(crate) fn connect(&mut self, now: Instant, config: ClientConfig) {
        // The arguments are always good: an address and a name, and the first connection.
        self.connection = self.endpoint.connect(now, config, self.peer, NAME).ok();
    }

    /// The connection, once there is one.
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// Whether the handshake is over.
    pub(crate) fn is_established(&self) -> bool {
        self.connection.as_ref().is_some_and(|(_, connection)| !connection.is_handshaking())
    }

    /// A datagram arrived.
    pub(crate) fn receive(&mut self, now: Instant, datagram: Datagram) {
        let Datagram { data, ecn } = datagram;
        let path = FourTuple::new(self.peer, None);
        match self.endpoint.handle(now, path, ecn, data, &mut self.buffer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                // One that is refused has no end of its handshake, which its owner notices.
                self.connection = self.endpoint.accept(incoming, now, &mut self.buffer, None).ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.buffer.clear();
    }

    /// Does what is due, and gives what happened to streams.
    ///
    /// # Errors
    /// The connection ended.
    pub(crate) fn work(
        &mut self,
        now: Instant,
        mut on: impl FnMut(StreamEvent),
    ) -> Result<(), ConnectionError> {
        let Some((handle, connection)) = &mut self.connection else { return Ok(()) };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(event) => on(event),
                Event::ConnectionLost { reason } => return Err(reason),
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends all that may leave now.
    pub(crate) fn transmit(&mut self, now: Instant, mut out: impl FnMut(Datagram)) {
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(batch) = connection.poll_transmit(now, DATAGRAMS_MAX, &mut self.buffer) {
            let each = batch.segment_size.unwrap_or(batch.size);
            for data in self.buffer[..batch.size].chunks(each) {
                out(Datagram { data: BytesMut::from(data), ecn: batch.ecn });
            }
            self.buffer.clear();
        }
    }

    /// When something is due, if nothing arrives, by the clock of connections.
    pub(crate) fn timer(&self, clock: &Clock) -> Time {
        let timeout =
            self.connection.as_ref().and_then(|(_, connection)| connection.poll_timeout());
        timeout.map_or(Time::MAX, |at| clock.time(at))
    }
}

/// An address of an end.
pub(crate) fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}
