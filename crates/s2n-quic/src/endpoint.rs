//! What an endpoint of s2n-quic is given: a provider of congestion controllers, and a subscriber to
//! events that tells which connection a controller is of.
//!
//! s2n-quic names the peer's address to the provider, and not the connection. Several connections
//! may have one address, and a connection may move. So the two work together. The endpoint creates
//! the context of a connection, and asks for a controller at once. When it asks without a context
//! before, the controller is of a new path, and an event names its connection before the path is
//! used.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use s2n_quic_core::event::Subscriber;
use s2n_quic_core::event::api::{ConnectionInfo, ConnectionMeta, PathCreated, SocketAddress};
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo};
use trimtab_stack::{Handle, Path, SharedPath};

use crate::Config;
use crate::controller::PathController;
use crate::steered::Owned;

/// Each connection of an endpoint begins with this configuration. The first part is for
/// `with_congestion_controller`, the second for `with_event` of s2n-quic's builders.
///
/// With a holdback or a memory the peer's address decides, as in
/// [`connection_to`](trimtab_stack::Config::connection_to).
pub fn endpoint(config: Config) -> (Controllers, Events) {
    endpoint_with(move |_| config.clone())
}

/// The same with a configuration for each connection, by its peer's address.
pub fn endpoint_with(
    choose: impl Fn(SocketAddr) -> Config + Send + Sync + 'static,
) -> (Controllers, Events) {
    let waiting = Arc::new(Mutex::new(Waiting::default()));
    let clock: Clock = Arc::new(Instant::now);
    let controllers = Controllers { choose: Arc::new(choose), clock, waiting: waiting.clone() };
    (controllers, Events { waiting })
}

type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// What waits for its other half. An endpoint has one thread for all of it.
#[derive(Debug, Default)]
struct Waiting {
    /// Whether the endpoint has the subscriber.
    is_told: bool,
    /// A connection without a controller.
    connection: Option<Connected>,
    /// A path without a connection.
    path: Option<Slot>,
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the congestion controllers of an endpoint's paths.
#[derive(Clone)]
pub struct Controllers {
    choose: Arc<dyn Fn(SocketAddr) -> Config + Send + Sync>,
    clock: Clock,
    waiting: Arc<Mutex<Waiting>>,
}

impl Controllers {
    /// With a clock that tells when a path begins. Default: the system's. In virtual time it is the
    /// caller's, so that a run can be repeated.
    #[must_use]
    pub fn with_clock(self, now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(now), ..self }
    }
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Controllers")
    }
}

impl Endpoint for Controllers {
    type CongestionController = PathController;

    fn new_congestion_controller(&mut self, path_info: PathInfo<'_>) -> PathController {
        let peer = address(&path_info.remote_address);
        let mtu = path_info.max_datagram_size;
        let config = (self.choose)(peer);
        let slot = Slot::new((self.clock)(), mtu, config, peer.ip());
        let mut waiting = lock(&self.waiting);
        if let Some(connected) = waiting.connection.take() {
            slot.join(connected.0.get_or_init(|| slot.steered()));
        } else if waiting.is_told {
            waiting.path = Some(slot.clone());
        }
        PathController::new(slot, mtu)
    }
}

/// Tells the controllers which connection they are of.
#[derive(Debug)]
pub struct Events {
    waiting: Arc<Mutex<Waiting>>,
}

impl Subscriber for Events {
    type ConnectionContext = Connected;

    fn create_connection_context(
        &mut self,
        _: &ConnectionMeta,
        _: &ConnectionInfo<'_>,
    ) -> Connected {
        let connected = Connected::default();
        let mut waiting = lock(&self.waiting);
        waiting.is_told = true;
        waiting.connection = Some(connected.clone());
        connected
    }

    fn on_path_created(
        &mut self,
        context: &mut Connected,
        _: &ConnectionMeta,
        _: &PathCreated<'_>,
    ) {
        if let (Some(slot), Some(steered)) = (lock(&self.waiting).path.take(), context.0.get()) {
            slot.join(steered);
        }
    }
}

/// A connection's context: `connection.query_event_context(Connected::handle)`.
#[derive(Clone, Debug, Default)]
pub struct Connected(Arc<OnceLock<Owned>>);

impl Connected {
    /// What steers the connection. `None` where its endpoint has no [`Controllers`].
    pub fn handle(&self) -> Option<Handle> {
        self.0.get().map(|steered| steered.handle())
    }
}

/// The place of a path that may learn later which connection it is of.
#[derive(Clone, Debug)]
pub(crate) struct Slot(Arc<Place>);

#[derive(Debug)]
struct Place {
    path: OnceLock<SharedPath>,
    began: Instant,
    mtu: u16,
    config: Config,
    peer: IpAddr,
}

impl Slot {
    fn new(began: Instant, mtu: u16, config: Config, peer: IpAddr) -> Self {
        Self(Arc::new(Place { path: OnceLock::new(), began, mtu, config, peer }))
    }

    /// A connection that begins with this path.
    fn steered(&self) -> Owned {
        self.0.config.connection_to(self.0.peer).0
    }

    /// The path is of this connection.
    fn join(&self, steered: &Owned) {
        let Place { path, began, mtu, .. } = &*self.0;
        path.get_or_init(|| steered.build(*began, *mtu));
    }

    /// When the path began.
    pub(crate) fn began(&self) -> Instant {
        self.0.began
    }

    /// The path, for one callback. Without a subscriber each path is a connection of its own.
    pub(crate) fn path(&self) -> MutexGuard<'_, Path> {
        let Place { path, began, mtu, .. } = &*self.0;
        path.get_or_init(|| self.steered().build(*began, *mtu)).lock()
    }
}

fn address(address: &SocketAddress<'_>) -> SocketAddr {
    match address {
        SocketAddress::IpV4 { ip, port, .. } => (**ip, *port).into(),
        SocketAddress::IpV6 { ip, port, .. } => (**ip, *port).into(),
        other => unreachable!("an address of neither IPv4 nor IPv6: {other:?}"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
