//! What is seen of a controller of quinn.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Bytes in flight on the server's path, for its owner to read.
#[derive(Clone, Debug, Default)]
pub(super) struct Watching(Arc<AtomicU64>);

impl Watching {
    pub(super) fn inflight(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes controllers that are watched.
pub(super) struct WatchedFactory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    watching: Watching,
}

impl WatchedFactory {
    pub(super) fn new(inner: Arc<dyn ControllerFactory + Send + Sync>, watching: Watching) -> Self {
        Self { inner, watching }
    }
}

impl ControllerFactory for WatchedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        Box::new(Watched { inner, watching: self.watching.clone() })
    }
}

/// A controller that is watched, and otherwise as it is.
struct Watched {
    inner: Box<dyn Controller>,
    watching: Watching,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.watching.0.fetch_add(bytes, Ordering::Relaxed);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.watching.0.store(in_flight, Ordering::Relaxed);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let before = self.watching.inflight();
        self.watching.0.store(before.saturating_sub(lost_bytes), Ordering::Relaxed);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), watching: self.watching.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
