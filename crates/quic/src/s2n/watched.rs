//! What is seen of a server's congestion controller: any that s2n-quic takes can be watched.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use s2n_quic::provider::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher, RandomGenerator, RttEstimator, Timestamp,
};
use trimtab_sim::Histogram;
use trimtab_units::Duration;

/// What was seen of a connection since its run began.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// When the run begins; what comes before is the handshake.
    pub(super) from: Option<Timestamp>,
    /// A sample for each acknowledgement that covers the newest packet so far (RFC 9002 §5.1).
    pub(super) rtt: Histogram,
    /// Packets declared lost. Their data is sent again.
    pub(super) lost: u64,
    pub(super) srtt: Duration,
    pub(super) window: u32,
    /// Bytes in flight, as they count against the window.
    pub(super) inflight: u32,
}

impl Seen {
    fn has_begun(&self, at: Timestamp) -> bool {
        self.from.is_some_and(|from| at >= from)
    }
}

/// What was seen of a connection, for its owner to read.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedSeen(Arc<Mutex<Seen>>);

impl SharedSeen {
    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes controllers that are watched.
#[derive(Debug)]
pub(super) struct WatchedEndpoint<E> {
    pub(super) inner: E,
    pub(super) seen: SharedSeen,
}

impl<E: Endpoint> Endpoint for WatchedEndpoint<E> {
    type CongestionController = Watched<E::CongestionController>;

    fn new_congestion_controller(&mut self, path_info: PathInfo<'_>) -> Self::CongestionController {
        let inner = self.inner.new_congestion_controller(path_info);
        let watched = Watched { inner, seen: self.seen.clone() };
        watched.note();
        watched
    }
}

/// A controller that is watched, and otherwise as it is.
#[derive(Clone, Debug)]
pub(super) struct Watched<C> {
    inner: C,
    seen: SharedSeen,
}

impl<C: CongestionController> Watched<C> {
    fn note(&self) {
        let (window, inflight) = (self.inner.congestion_window(), self.inner.bytes_in_flight());
        let mut seen = self.seen.lock();
        (seen.window, seen.inflight) = (window, inflight);
    }
}

fn duration(duration: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl<C: CongestionController> CongestionController for Watched<C> {
    type PacketInfo = C::PacketInfo;

    fn congestion_window(&self) -> u32 {
        self.inner.congestion_window()
    }

    fn bytes_in_flight(&self) -> u32 {
        self.inner.bytes_in_flight()
    }

    fn is_congestion_limited(&self) -> bool {
        self.inner.is_congestion_limited()
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.inner.requires_fast_retransmission()
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        rtt: &RttEstimator,
        publisher: &mut Pub,
    ) -> Self::PacketInfo {
        let info = self.inner.on_packet_sent(time_sent, sent_bytes, app_limited, rtt, publisher);
        self.note();
        info
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        now: Timestamp,
        rtt: &RttEstimator,
        publisher: &mut Pub,
    ) {
        {
            let mut seen = self.seen.lock();
            seen.srtt = duration(rtt.smoothed_rtt());
            if seen.has_begun(time_sent) {
                seen.rtt.record(duration(now - time_sent));
            }
        }
        self.inner.on_rtt_update(time_sent, now, rtt, publisher);
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        newest_sent: Timestamp,
        bytes: usize,
        newest: Self::PacketInfo,
        rtt: &RttEstimator,
        random: &mut dyn RandomGenerator,
        now: Timestamp,
        publisher: &mut Pub,
    ) {
        self.inner.on_ack(newest_sent, bytes, newest, rtt, random, now, publisher);
        self.note();
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: Self::PacketInfo,
        persistent: bool,
        new_burst: bool,
        random: &mut dyn RandomGenerator,
        now: Timestamp,
        publisher: &mut Pub,
    ) {
        {
            let mut seen = self.seen.lock();
            seen.lost += u64::from(seen.has_begun(now));
        }
        let inner = &mut self.inner;
        inner.on_packet_lost(
            lost_bytes,
            packet_info,
            persistent,
            new_burst,
            random,
            now,
            publisher,
        );
        self.note();
    }

    fn on_explicit_congestion<Pub: Publisher>(
        &mut self,
        ce_count: u64,
        event_time: Timestamp,
        publisher: &mut Pub,
    ) {
        self.inner.on_explicit_congestion(ce_count, event_time, publisher);
        self.note();
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, publisher: &mut Pub) {
        self.inner.on_mtu_update(max_data_size, publisher);
        self.note();
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, publisher: &mut Pub) {
        self.inner.on_packet_discarded(bytes_sent, publisher);
        self.note();
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.inner.earliest_departure_time()
    }

    fn send_quantum(&self) -> Option<usize> {
        self.inner.send_quantum()
    }
}
