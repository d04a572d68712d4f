//! Migration: one algorithm takes over a running connection from another, and what was learnt of the
//! path goes with it.
//!
//! An algorithm that is merely replaced searches for the path's capacity again, on top of the queue
//! that the old one left. Here the new one is handed what the old one and the connection know
//! ([`HandOver`]) and goes on in its *converged* phase (congestion avoidance, ProbeBW, Copa past slow
//! start); BBR alone begins with ProbeRTT, to measure the delay that the old one's queue hid. Of the
//! four kinds of variable of Floo (Table 3), those of the sending rate go over by window = rate ×
//! round-trip time, without the old algorithm's gains; observations come from the connection
//! ([`PathView`]); parameters (knobs) stay as they are set; the rest follows from the phase.
//!
//! Read first: Zhang et al., "Bridging the Gap between QoE and QoS in Congestion Control" (Floo, ATC
//! 2023) §2.3 and §3.4. `path.rs` is what the connection knows whichever algorithm runs, `switcher.rs`
//! when it is time to switch; how each algorithm takes a hand-over is in the algorithm's folder.

mod path;
mod switcher;

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::algorithms::*;
use crate::muses::Muses;
#[cfg(feature = "plugin")]
use crate::plugin::Plugged;
use crate::{CongestionControl, Phase};
#[cfg(feature = "rivals")]
use crate::{
    astraea::Astraea, aurora::Aurora, aurora::mocc::Mocc, indigo::Indigo, orca::Orca, remy::Remy,
};
pub use path::PathView;
pub use switcher::{Switch, Switcher};

/// A minimum round-trip time that BBR and BBRv3 take from each other without measuring again.
const FRESH: Duration = Duration::from_secs(5);

/// What one algorithm hands to the next: a window and a rate without the old one's gains, and what the
/// connection observed. Nothing in it is of a certain transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HandOver {
    /// When the new algorithm takes over.
    pub now: Time,
    /// What to keep in flight, so that the flow goes on at its rate.
    pub window: Bytes,
    /// That rate; at least a byte per second.
    pub rate: Rate,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Lowest round-trip time of the last 10 s.
    pub min_rtt: Duration,
    /// When that was measured.
    pub min_rtt_at: Time,
    /// Highest delivery rate of the last 10 s, 10 round trips at least; the old algorithm's own
    /// estimate where the transport gives no samples. At least a byte per second.
    pub bandwidth: Rate,
    /// The same of the last five to ten round trips: what the path carries now. A link that fades
    /// carries less than it did 10 s ago. Without samples, the window per round trip.
    pub recent_bandwidth: Rate,
    /// Share of the last two round trips' packets that was lost, 0 to 1.
    pub loss: f64,
    /// Bytes in flight.
    pub inflight: Bytes,
    /// Bytes delivered over the life of the connection.
    pub delivered: Bytes,
    /// Whether the old algorithm keeps the queue small by a model of the path (BBR, BBRv3).
    pub modelled: bool,
    /// Whether the minimum round-trip time is the path's, without the old algorithm's queue
    /// ([`PathView::saw_empty_queue`]).
    pub saw_empty_queue: bool,
    /// Whether the old algorithm was held back by losses that came without a queue, or is known to
    /// have left the path idle. The path may then carry much more than window, rate and bandwidth
    /// say, and by Floo's own measure, the capacity (§3.4), it has not converged.
    pub starved: bool,
}

impl HandOver {
    /// What `old` hands over at `now`. `None` before the connection has measured a round trip.
    pub fn of(old: &Controller, path: &PathView, now: Time) -> Option<Self> {
        let (min_rtt, min_rtt_at) = path.min_rtt()?;
        let least = Rate::from_bytes_per_sec(1);
        let point = old.operating_point(path);
        let rate = point.rate.max(least);
        Some(Self {
            now,
            window: point.window,
            rate,
            srtt: path.srtt(),
            min_rtt,
            min_rtt_at,
            bandwidth: path.bandwidth().or(point.bandwidth).unwrap_or(rate).max(least),
            recent_bandwidth: path
                .recent_bandwidth()
                .or(point.bandwidth)
                .unwrap_or(point.window / path.srtt())
                .max(least),
            loss: path.loss(),
            inflight: path.inflight(),
            delivered: path.delivered(),
            modelled: point.modelled,
            saw_empty_queue: path.saw_empty_queue(),
            starved: point.idle || (point.cut_by_losses && path.lost_without_queue()),
        })
    }

    /// Whether BBR need not empty a queue first: the old algorithm was one of its family, and the
    /// minimum round-trip time is fresh.
    pub(crate) fn queue_is_known_small(&self) -> bool {
        self.modelled && self.now.since(self.min_rtt_at) < FRESH
    }
}

/// Where an algorithm operates, without the gains by which it probes (Floo Table 3, sending rate
/// variables).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatingPoint {
    /// What it would keep in flight.
    pub window: Bytes,
    /// The rate that it would keep.
    pub rate: Rate,
    /// Its own estimate of the path's bandwidth, if it has one.
    pub bandwidth: Option<Rate>,
    /// Whether it keeps the queue small by a model of the path.
    pub modelled: bool,
    /// Whether it cuts its window at losses, whatever they come from.
    pub cut_by_losses: bool,
    /// Whether it is known to leave the path idle: a learnt policy whose guard has found that.
    pub idle: bool,
}

impl OperatingPoint {
    /// Of an algorithm that has a window: that, and as much per round trip (Floo §3.4).
    pub(crate) fn of_window(window: Bytes, path: &PathView) -> Self {
        let rate = window / path.srtt();
        Self { window, rate, bandwidth: None, modelled: false, cut_by_losses: false, idle: false }
    }

    /// Of one that cuts its window at losses.
    pub(crate) fn of_cut_window(window: Bytes, path: &PathView) -> Self {
        Self { cut_by_losses: true, ..Self::of_window(window, path) }
    }

    /// Of one that has a bandwidth and allows twice the bandwidth-delay product in flight: what it
    /// has in flight, or would at that bandwidth.
    pub(crate) fn of_model(bandwidth: Rate, window: Bytes, path: &PathView) -> Self {
        let used = path.inflight().max(bandwidth * path.srtt());
        Self {
            window: window.min(used),
            rate: bandwidth,
            bandwidth: Some(bandwidth),
            modelled: true,
            cut_by_losses: false,
            idle: false,
        }
    }
}

/// An algorithm that can hand over a connection, and take one over.
#[enum_dispatch::enum_dispatch]
pub trait Migrate: CongestionControl {
    /// Whether it knows the path and uses it, so that what it knows is worth handing over (Floo
    /// §3.4, converged phases).
    fn is_converged(&self) -> bool {
        self.phase() == Phase::Steady
    }

    /// Where it operates. By default at its window, which it cuts at losses.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        OperatingPoint::of_cut_window(self.window(), path)
    }

    /// Goes on where another algorithm was, in its own converged phase (Floo's *full switching*).
    /// Knobs stay as they are.
    fn take_over(&mut self, from: &HandOver);

    /// Begins anew with another algorithm's window and the connection's round-trip time, and nothing
    /// else (Floo's *part switching*, its baseline: slow start, or Startup, from there on).
    fn inherit(&mut self, window: Bytes, srtt: Duration);

    /// Goes on after a jump that the path did not bear, from the record's window (RFC 9959 §3.5).
    /// `ssthresh` is the most that the path is known to carry, by which the record's rate and
    /// bandwidth go as well. By default as [`take_over`](Self::take_over); an algorithm with a slow
    /// start threshold makes this its threshold.
    fn retreat(&mut self, from: &HandOver, _ssthresh: Bytes) {
        self.take_over(from);
    }
}

#[cfg(test)]
mod tests;
