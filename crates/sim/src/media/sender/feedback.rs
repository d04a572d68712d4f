//! Feedback: what arrived, what that says of the path, and what must be lost.

use trimtab_cc::transport::{Fate, Packet};
use trimtab_cc::{Arrival, Feedback};
use trimtab_units::{Duration, Time};

use super::MediaSender;
use crate::media::{FEEDBACK_MAX, content};
use crate::sender::Sender;
use crate::transport::LossDetection;

/// A packet that is reported missing is lost once so many packets that left after it have arrived
/// (RFC 9002 §6.1.1, `kPacketThreshold`).
const PACKET_THRESHOLD: u64 = 3;
/// Without feedback for so many probe timeouts everything in flight is lost (RFC 9002 §7.6.1).
const TIMEOUTS: u64 = 3;
/// The largest back-off, as a power of two.
const BACKOFF_MAX: u32 = 6;

impl MediaSender {
    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        feedback: &content::Feedback,
        base: &mut Sender,
    ) {
        let mut arrivals = Vec::with_capacity(feedback.packets.len());
        for &(number, arrived_at) in &feedback.packets {
            let Some(sent) = self.sent.get_mut(number) else { continue };
            if arrived_at.is_some() {
                let before = base.tracker.on_acked(&mut sent.record);
                base.totals.spurious += u64::from(before == Fate::Lost);
            }
            arrivals.push(Arrival {
                sent_at: sent.record.sent_at(),
                arrived_at,
                bytes: sent.record.size(),
                probe: sent.probe,
                marked: false,
            });
        }
        self.learn_flight(now, &arrivals);
        base.totals.delivered = base.tracker.delivered();
        (self.progress_at, self.backoff) = (now, 0);
        let waited = feedback.waited.unwrap_or(Duration::ZERO);
        let rtt = base.tracker.rtt_sample(now).map(|rtt| rtt - waited);
        if let Some(rtt) = rtt {
            base.totals.rtt.record(rtt);
            base.rtt.sample(now, rtt, Duration::ZERO);
        }
        let end = base
            .tracker
            .largest_acked()
            .map_or(0, |largest| (largest + 1).saturating_sub(PACKET_THRESHOLD));
        self.write_off(now, end, base);
        let newest_sent_at = base.tracker.newest().map(Packet::sent_at);
        if let Some(mut ack) = base.tracker.end_ack(now, base.rtt.smoothed(), base.rtt.min()) {
            ack.rtt = rtt;
            ack.in_recovery = self.episode.is_some();
            base.governor.on_ack(&ack);
        }
        // RFC 9002 §7.3.2: the episode ends when something that was sent since has arrived.
        if newest_sent_at > self.episode {
            self.episode = None;
        }
        let inflight = base.tracker.inflight();
        base.governor.on_feedback(&Feedback { now, packets: &arrivals, rtt, inflight });
        if let Some(driver) = base.governor.driver_mut() {
            driver.decide();
        }
    }

    /// The mean time in flight, smoothed as round-trip times are (RFC 6298 §2).
    fn learn_flight(&mut self, now: Time, arrivals: &[Arrival]) {
        let arrived = || arrivals.iter().filter(|arrival| arrival.arrived_at.is_some());
        let sum: Duration = arrived().map(|arrival| now.since(arrival.sent_at)).sum();
        let count = arrived().count() as u64;
        if count > 0 {
            let mean = sum / count;
            let before = if self.flight.is_zero() { mean } else { self.flight };
            self.flight = (before * 7 + mean) / 8;
        }
    }

    /// Declares lost what is in flight below `end`.
    fn write_off(&mut self, now: Time, end: u64, base: &mut Sender) {
        let mut previous_lost = false;
        let from = self.settled.max(self.sent.first());
        for number in from..end.min(self.sent.end()) {
            let Some(sent) = self.sent.get_mut(number) else { continue };
            if let Some(lost) = base.tracker.on_lost(now, &mut sent.record, !previous_lost) {
                base.governor.on_packet_lost(&lost);
                base.totals.lost += 1;
            }
            previous_lost = sent.record.fate() == Fate::Lost;
        }
        self.settled = from.max(end);
        if let Some(loss) = base.tracker.end_losses(now) {
            if self.episode.is_none_or(|since| loss.newest_sent_at > since) {
                self.episode = Some(now);
            }
            base.governor.on_loss(&loss);
        }
    }

    /// When everything in flight is lost unless something is heard.
    pub(super) fn timeout_at(&self, base: &Sender) -> Time {
        if base.tracker.inflight().is_zero() {
            return Time::MAX;
        }
        let timeout = base.rtt.timeout(LossDetection::Rfc9002, FEEDBACK_MAX) * TIMEOUTS;
        self.progress_at + timeout * (1 << self.backoff)
    }

    /// Nothing was heard for too long.
    pub(super) fn on_timeout(&mut self, now: Time, base: &mut Sender) {
        base.totals.timeouts += 1;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.progress_at = now;
        let prior_inflight = base.tracker.inflight();
        self.write_off(now, self.sent.end(), base);
        let inflight = base.tracker.inflight();
        base.governor.on_timeout(&trimtab_cc::Timeout { now, prior_inflight, inflight });
    }
}
