//! The trait of noq, carried out on a path that a [`Handle`](crate::Handle) can reach as well.

use std::any::Any;
use std::time::Instant;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};
use trimtab_stack::SharedPath;
use trimtab_stack::units::{Bytes, Duration, Rate};

/// The controller of a path. Its state is shared, since noq clones controllers.
#[derive(Clone, Debug)]
pub(crate) struct PathController(pub(crate) SharedPath);

impl Controller for PathController {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.0.on_sent(now, Bytes::new(bytes.into()), pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.0.lock().on_window_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        pn: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let smoothed = u64::try_from(rtt.get().as_nanos()).unwrap_or(u64::MAX);
        self.0.lock().on_acked(now, sent, pn, Duration::from_nanos(smoothed));
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

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: Instant) {
        self.0.lock().on_packet_lost(now, pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        if is_ecn {
            self.0.lock().on_marked(now, sent);
        } else {
            self.0.lock().on_losses(now, is_persistent_congestion);
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.0.lock().on_spurious_loss();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.lock().on_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.0.offer().window.get()
    }

    fn metrics(&self) -> ControllerMetrics {
        let offer = self.0.offer();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = offer.window.get();
        metrics.ssthresh = offer.ssthresh.map(Bytes::get);
        metrics.pacing_rate = offer.pacing_rate.map(Rate::bytes_per_sec);
        metrics.send_quantum = offer.send_quantum.map(Bytes::get);
        // Bit/s here, bytes/s above: so noq has it.
        metrics.bandwidth_estimate = offer.bandwidth.map(|rate| rate.bits_per_sec() as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.0.offer().window.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
