//! The trait of quinn, carried out on a path that a [`Handle`](crate::Handle) can reach as well.

use std::any::Any;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use trimtab_stack::SharedPath;
use trimtab_stack::units::{Bytes, Duration};

/// The controller of a path. Its state is shared, since quinn clones controllers.
#[derive(Clone, Debug)]
pub(crate) struct PathController(pub(crate) SharedPath);

impl Controller for PathController {
    /// Once per batch. quinn counts the acknowledgements that it sends as well.
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.0.lock().on_bytes_sent(now, Bytes::new(bytes));
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let smoothed = u64::try_from(rtt.get().as_nanos()).unwrap_or(u64::MAX);
        let smoothed = Duration::from_nanos(smoothed);
        self.0.lock().on_bytes_acked(now, sent, Bytes::new(bytes), smoothed);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        _in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.0.lock().on_end_acks(now, app_limited);
    }

    /// Without lost bytes it is a congestion mark.
    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut path = self.0.lock();
        if lost_bytes == 0 {
            path.on_marked(now, sent);
        } else {
            path.on_bytes_lost(now, sent, Bytes::new(lost_bytes));
            path.on_losses(now, is_persistent_congestion);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.lock().on_mtu(new_mtu);
    }

    /// One byte more, since quinn keeps what is in flight below the window.
    fn window(&self) -> u64 {
        self.0.offer().window.get().saturating_add(1)
    }

    fn metrics(&self) -> ControllerMetrics {
        let offer = self.0.offer();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = offer.window.get();
        metrics.ssthresh = offer.ssthresh.map(Bytes::get);
        metrics.pacing_rate = offer.pacing_rate.map(|rate| rate.bits_per_sec() as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
