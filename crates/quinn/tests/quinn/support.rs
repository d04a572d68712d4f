//! The world of the tests, on quinn.

/// What quinn names, and the calls that are quinn's own.
mod stack {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Instant;

    use bytes::BytesMut;
    use quinn_proto::Transmit;
    pub(super) use quinn_proto::{
        ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
        EndpointConfig, Incoming, ServerConfig, StreamId, TransportConfig,
    };
    pub(super) use trimtab_quinn::{Config, Handle, Memory, Metrics, units};

    /// What leaves at once, as with segmentation offload.
    const DATAGRAMS_MAX: usize = 10;

    pub(super) fn endpoint(config: EndpointConfig, server: Option<Arc<ServerConfig>>) -> Endpoint {
        Endpoint::new(Arc::new(config), server, true, None)
    }

    pub(super) fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        data: BytesMut,
    ) -> Option<DatagramEvent> {
        endpoint.handle(now, from, None, ecn, data, &mut Vec::new())
    }

    pub(super) fn transmit(
        connection: &mut Connection,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        connection.poll_transmit(now, DATAGRAMS_MAX, buffer)
    }
}

#[path = "../../../stack/tests/support/world.rs"]
#[allow(dead_code, reason = "tests of noq use other parts of it, too")]
mod world;

pub(crate) use world::{
    MODEL, MarkConfig, Setting, World, first_megabyte, goodput, over_marks, simulated, trace,
};
