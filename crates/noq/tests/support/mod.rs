//! The world of the tests, on noq.
#![allow(dead_code, unused_imports, reason = "each test uses a part")]

/// What noq names, and the calls that are noq's own.
mod stack {
    use std::net::SocketAddr;
    use std::num::NonZeroUsize;
    use std::sync::Arc;
    use std::time::Instant;

    use bytes::BytesMut;
    pub(super) use noq_proto::{
        ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
        EndpointConfig, Incoming, ServerConfig, StreamId, TransportConfig,
    };
    use noq_proto::{FourTuple, Transmit};
    pub(super) use trimtab_noq::{Config, Handle, Memory, Metrics, units};

    /// What leaves at once, as with segmentation offload.
    const DATAGRAMS_MAX: NonZeroUsize = NonZeroUsize::new(10).unwrap();

    pub(super) fn endpoint(config: EndpointConfig, server: Option<Arc<ServerConfig>>) -> Endpoint {
        Endpoint::new(Arc::new(config), server, true)
    }

    pub(super) fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        data: BytesMut,
    ) -> Option<DatagramEvent> {
        endpoint.handle(now, FourTuple::new(from, None), ecn, data, &mut Vec::new())
    }

    pub(super) fn transmit(
        connection: &mut Connection,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        connection.poll_transmit(now, DATAGRAMS_MAX, buffer)
    }
}

#[path = "../../../stack/tests/support/switches.rs"]
pub(crate) mod switches;
#[path = "../../../stack/tests/support/world.rs"]
mod world;

pub(crate) use world::{
    MarkConfig, Setting, World, first_megabyte, goodput, over_marks, simulated, trace,
};
