//! The trait of rtc-interceptor, carried out on a path that a [`Handle`](crate::Handle) can reach
//! as well.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rtc_interceptor::{BandwidthEstimator, EstimatorStats, PacketReport};
use rtc_rtcp::transport_feedbacks::cc_feedback_report::Ecn;
use trimtab_stack::{Reported, ReportedFate};

use crate::shared::Shared;

/// How long a chain should remember what left, for
/// [`with_prune_horizon`](rtc_interceptor::CongestionControlBuilder::with_prune_horizon): as libwebrtc
/// (`TransportFeedbackAdapter`, `kSendTimeHistoryWindow`). By its default of 2 s nothing would be
/// reported of what left at the beginning of a longer outage.
pub const HISTORY: Duration = Duration::from_secs(60);
/// Packets are lost after so long without any feedback: the least retransmission timeout of
/// RFC 6298 §2.4.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// … or after so many round trips, where that is longer.
const SILENCE_ROUNDS: u64 = 3;
/// The chain must not be woken at once again.
const TICK: Duration = Duration::from_millis(1);

/// Feeds an algorithm of Trimtab with what rtc-interceptor reports, and gives the target.
#[derive(Debug)]
pub struct Estimator {
    shared: Arc<Shared>,
    /// The last time that was given.
    now: Instant,
    /// The share of the last feedback's packets that did not arrive.
    loss: Option<f64>,
}

impl Estimator {
    pub(crate) fn new(shared: Arc<Shared>, now: Instant) -> Self {
        Self { shared, now, loss: None }
    }

    /// When packets in flight are lost unless feedback comes.
    fn silent_at(&self) -> Option<Instant> {
        let since = self.shared.books().waiting_since?;
        let srtt = self.shared.path.lock().srtt().unwrap_or_default();
        let rounds = Duration::from_nanos(srtt.as_nanos().saturating_mul(SILENCE_ROUNDS));
        Some(since + rounds.max(SILENCE_MIN))
    }
}

fn fate(report: &PacketReport) -> ReportedFate {
    if report.arrived {
        ReportedFate::Arrived { at: report.arrival, marked: report.ecn == Ecn::Ce }
    } else {
        ReportedFate::Missing
    }
}

impl BandwidthEstimator for Estimator {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        self.now = now;
        if reports.is_empty() {
            return;
        }
        let mut books = self.shared.books();
        let reported: Vec<_> = reports
            .iter()
            .map(|report| Reported {
                number: report.id,
                fate: fate(report),
                probe: books.probe_of(report.id),
            })
            .collect();
        let missing = reports.iter().filter(|report| !report.arrived).count();
        self.loss = Some(missing as f64 / reports.len() as f64);
        let mut path = self.shared.path.lock();
        path.on_feedback(now, &reported);
        books.waiting_since = Some(now).filter(|_| !path.inflight().is_zero());
    }

    fn target_bitrate(&self) -> f64 {
        self.shared.target().bits_per_sec()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.silent_at().is_some_and(|at| at <= now) {
            self.shared.books().waiting_since = None;
            self.shared.path.lock().on_silence(now);
        }
        let mut path = self.shared.path.lock();
        if path.next_timer().is_some_and(|at| at <= now) {
            path.on_timer(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let timer = self.shared.path.lock().next_timer();
        let due = timer.into_iter().chain(self.silent_at()).min()?;
        Some(due.max(self.now + TICK))
    }

    fn stats(&self) -> EstimatorStats {
        let mut stats = EstimatorStats::default();
        stats.packet_loss = self.loss;
        let srtt = self.shared.path.lock().srtt();
        stats.round_trip_time = srtt.map(|srtt| Duration::from_nanos(srtt.as_nanos()));
        stats
    }
}
