//! Controllers with a watch on each call: how long it takes, and what it allocates.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use stats_alloc::Region;

use crate::memory::ALLOCATOR;
use crate::transfer::Controllers;

/// Packets before this one are the warm-up: windows and queues reach their size.
const WARM_UP: u64 = 20_000;

/// What the calls took, after the warm-up.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    packets: AtomicU64,
    calls: AtomicU64,
    nanos: AtomicU64,
    allocations: AtomicU64,
}

impl Tally {
    fn warm_packets(&self) -> f64 {
        self.packets.load(Ordering::Relaxed).saturating_sub(WARM_UP).max(1) as f64
    }

    /// Less what reading the clock takes.
    pub(crate) fn nanos_per_packet(&self) -> f64 {
        let calls = self.calls.load(Ordering::Relaxed) as f64;
        let nanos = self.nanos.load(Ordering::Relaxed) as f64;
        (nanos - calls * clock_nanos()) / self.warm_packets()
    }

    pub(crate) fn allocations_per_packet(&self) -> f64 {
        self.allocations.load(Ordering::Relaxed) as f64 / self.warm_packets()
    }

    /// Both ends run on one thread, so nobody else allocates meanwhile.
    fn watch<T>(&self, call: impl FnOnce() -> T) -> T {
        if self.packets.load(Ordering::Relaxed) < WARM_UP {
            return call();
        }
        let region = Region::new(ALLOCATOR);
        let begun = Instant::now();
        let result = call();
        let took = begun.elapsed();
        let change = region.change();
        self.calls.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        let allocated = change.allocations + change.reallocations;
        self.allocations.fetch_add(allocated as u64, Ordering::Relaxed);
        result
    }
}

/// What two readings of the clock are apart where nothing comes between them: the least of many
/// means, since a machine has other work to do.
fn clock_nanos() -> f64 {
    const TIMES: u32 = 1000;
    static NANOS: OnceLock<f64> = OnceLock::new();
    *NANOS.get_or_init(|| {
        let mean = |_| {
            let sum: Duration = (0..TIMES).map(|_| Instant::now().elapsed()).sum();
            sum.as_secs_f64() * 1e9 / f64::from(TIMES)
        };
        (0..TIMES).map(mean).fold(f64::INFINITY, f64::min)
    })
}

/// Controllers that do as these, and what they take.
pub(crate) fn watch(inner: Controllers) -> (Controllers, Arc<Tally>) {
    let tally = Arc::new(Tally::default());
    (Arc::new(Factory { inner, tally: tally.clone() }), tally)
}

struct Factory {
    inner: Controllers,
    tally: Arc<Tally>,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        Box::new(Watched { inner, tally: self.tally.clone() })
    }
}

#[derive(Debug)]
struct Watched {
    inner: Box<dyn Controller>,
    tally: Arc<Tally>,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.tally.watch(|| self.inner.on_sent(now, bytes, largest_pn));
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.tally.packets.fetch_add(1, Ordering::Relaxed);
        self.tally.watch(|| self.inner.on_packet_sent(now, bytes, pn));
    }

    fn on_cwnd_limited(&mut self) {
        self.tally.watch(|| self.inner.on_cwnd_limited());
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
        self.tally.watch(|| self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.tally.watch(|| self.inner.on_end_acks(now, in_flight, app_limited, largest));
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.tally.watch(|| {
            let inner = &mut self.inner;
            inner.on_congestion_event(
                now,
                sent,
                is_persistent,
                is_ecn,
                lost_bytes,
                largest_lost_pn,
            );
        });
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.tally.watch(|| self.inner.on_packet_lost(lost_bytes, pn, now));
    }

    fn on_spurious_congestion_event(&mut self) {
        self.tally.watch(|| self.inner.on_spurious_congestion_event());
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, max_delay);
    }

    fn window(&self) -> u64 {
        self.tally.watch(|| self.inner.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        self.tally.watch(|| self.inner.metrics())
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), tally: self.tally.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
