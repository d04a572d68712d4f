//! One end of a connection: an endpoint of quinn without a socket.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamEvent,
};
use trimtab_units::Time;

use crate::clock::Clock;
use crate::identity::NAME;
use crate::side::address;

/// What leaves at once, as with segmentation offload.
const DATAGRAMS_MAX: NonZeroUsize = NonZeroUsize::new(10).unwrap();

/// An end of a connection.
pub(super) struct QuinnEnd {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Port of the other end.
    peer: u16,
    /// What leaves; kept to save allocations.
    buffer: Vec<u8>,
}

impl QuinnEnd {
    fn new(seed: u64, port: u16, server: Option<Arc<ServerConfig>>) -> Self {
        let mut bytes = [port as u8; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let config = Arc::new(EndpointConfig::default());
        let endpoint = Endpoint::new(config, server, false, Some(bytes));
        Self { endpoint, connection: None, peer: 3 - port, buffer: Vec::new() }
    }

    /// An end that accepts one connection.
    pub(super) fn server(seed: u64, config: ServerConfig) -> Self {
        Self::new(seed, 1, Some(Arc::new(config)))
    }

    /// An end that begins a handshake.
    pub(super) fn client(seed: u64, now: Instant, config: ClientConfig) -> Self {
        let mut end = Self::new(seed, 2, None);
        // The arguments are always good: an address and a name, and the first connection.
        end.connection = end.endpoint.connect(now, config, address(end.peer), NAME).ok();
        end
    }

    /// The connection, once there is one.
    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// Whether the handshake is over.
    pub(super) fn is_established(&self) -> bool {
        self.connection.as_ref().is_some_and(|(_, connection)| !connection.is_handshaking())
    }

    /// A datagram arrived.
    pub(super) fn receive(&mut self, now: Instant, data: BytesMut) {
        let peer = address(self.peer);
        match self.endpoint.handle(now, peer, None, None, data, &mut self.buffer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
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
    pub(super) fn work(
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
    pub(super) fn transmit(&mut self, now: Instant, mut out: impl FnMut(BytesMut)) {
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(batch) = connection.poll_transmit(now, DATAGRAMS_MAX.get(), &mut self.buffer)
        {
            let each = batch.segment_size.unwrap_or(batch.size);
            self.buffer[..batch.size].chunks(each).for_each(|data| out(BytesMut::from(data)));
            self.buffer.clear();
        }
    }

    /// When something is due, if nothing arrives, by the clock of connections.
    pub(super) fn timer(&mut self, clock: &Clock) -> Time {
        let timeout = self.connection().and_then(Connection::poll_timeout);
        timeout.map_or(Time::MAX, |at| clock.time(at))
    }
}
