//! What a server's congestion controller gets, for the record: round-trip times and losses. Any
//! controller can be observed, noq's own as well.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use trimtab_sim::Histogram;

/// What was seen of a connection since its run began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// When the run begins, once that is known; what comes before is the handshake.
    from: Option<Instant>,
    /// A sample for each acknowledgement that covers the newest packet so far (RFC 9002 §5.1).
    pub(crate) rtt: Histogram,
    /// Packets declared lost. Their data is sent again.
    pub(crate) lost: u64,
    /// Bytes in flight, as they count against the window; some of the handshake's may stay in it.
    pub(crate) inflight: u64,
}

impl Seen {
    /// So many bytes are no longer in flight.
    fn left(&mut self, bytes: u64) {
        self.inflight = self.inflight.saturating_sub(bytes);
    }

    fn has_begun(&self, at: Instant) -> bool {
        self.from.is_some_and(|from| at >= from)
    }
}

/// What was seen of a connection, for its owner to read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedSeen(Arc<Mutex<Seen>>);

impl SharedSeen {
    /// The run begins at `from`.
    pub(crate) fn begin(&self, from: Instant) {
        self.lock().from = Some(from);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes controllers that are observed.
pub(crate) struct ObservedFactory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    seen: SharedSeen,
}

impl ObservedFactory {
    pub(crate) fn new(inner: Arc<dyn ControllerFactory + Send + Sync>, seen: SharedSeen) -> Self {
        Self { inner, seen }
    }
}

impl ControllerFactory for ObservedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Observed {
            inner: self.inner.clone().build(now, current_mtu),
            seen: self.seen.clone(),
            newest: None,
            largest: None,
        })
    }
}

/// A controller that is observed, and otherwise as it is.
#[derive(Debug)]
struct Observed {
    inner: Box<dyn Controller>,
    seen: SharedSeen,
    /// Number and sending time of the newest packet that the present acknowledgement covers.
    newest: Option<(u64, Instant)>,
    /// The largest number that was acknowledged before.
    largest: Option<u64>,
}

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.seen.lock().inflight += u64::from(bytes);
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        if self.newest.is_none_or(|(newest, _)| pn > newest) {
            self.newest = Some((pn, sent));
        }
        self.seen.lock().left(bytes);
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        if let Some((number, sent)) = self.newest.take()
            && self.largest.is_none_or(|largest| number > largest)
        {
            self.largest = Some(number);
            let mut seen = self.seen.lock();
            if seen.has_begun(sent) {
                let rtt = now.saturating_duration_since(sent).as_nanos();
                let rtt =
                    trimtab_units::Duration::from_nanos(u64::try_from(rtt).unwrap_or(u64::MAX));
                seen.rtt.record(rtt);
            }
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let persistent = is_persistent_congestion;
        self.inner.on_congestion_event(now, sent, persistent, is_ecn, lost_bytes, largest_lost_pn);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        {
            let mut seen = self.seen.lock();
            seen.lost += u64::from(seen.has_begun(now));
            seen.left(lost_bytes.into());
        }
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            seen: self.seen.clone(),
            newest: self.newest,
            largest: self.largest,
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
