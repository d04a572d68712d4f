//! Feedback: what arrived, what that says of the path, and what must be lost.

use trimtab_cc::transport::Fate;
use trimtab_cc::{Arrival, Feedback};
use trimtab_units::{Duration, Time};

use super::MediaSender;
use crate::media::content;
use crate::sender::Sender;

/// A packet that is reported missing is lost once so many packets that left after it have arrived
/// (RFC 9002 §6.1.1, `kPacketThreshold`).
const PACKET_THRESHOLD: u64 = 3;
/// Packets are lost after so long without any feedback: the least retransmission timeout of
/// RFC 6298 §2.4.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// … or after so many round trips, where that is longer. `trimtab-rtc` waits as long.
const SILENCE_ROUNDS: u64 = 3;

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
        self.learn_turnaround(now, &arrivals);
        base.totals.delivered = base.tracker.delivered();
        self.progress_at = now;
        let rtt = base.tracker.rtt_sample(now).and_then(|rtt| match feedback.waited {
            Some(waited) => Some(rtt - waited),
            None => self.round_trip(now, &arrivals),
        });
        if let Some(rtt) = rtt {
            base.totals.rtt.record(rtt);
            base.rtt.sample(now, rtt, Duration::ZERO);
        }
        let end = base
            .tracker
            .largest_acked()
            .map_or(0, |largest| (largest + 1).saturating_sub(PACKET_THRESHOLD));
        self.write_off(now, end, base);
        let newest_sent_at = base.tracker.newest_sent_at();
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

    fn learn_turnaround(&mut self, now: Time, arrivals: &[Arrival]) {
        let arrived = || arrivals.iter().filter(|arrival| arrival.arrived_at.is_some());
        let sum: Duration = arrived().map(|arrival| now.since(arrival.sent_at)).sum();
        let count = arrived().count() as u64;
        if count > 0 {
            self.reports.took(sum / count, count);
        }
    }

    /// The round-trip time of the newest packet that arrived.
    fn round_trip(&mut self, now: Time, arrivals: &[Arrival]) -> Option<Duration> {
        let newest = arrivals.iter().rfind(|arrival| arrival.arrived_at.is_some())?;
        Some(self.reports.round_trip(now, newest.sent_at, newest.arrived_at?))
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
        self.progress_at + (base.rtt.smoothed() * SILENCE_ROUNDS).max(SILENCE_MIN)
    }

    /// Nothing was heard for too long.
    pub(super) fn on_timeout(&mut self, now: Time, base: &mut Sender) {
        base.totals.timeouts += 1;
        self.progress_at = now;
        let prior_inflight = base.tracker.inflight();
        self.write_off(now, self.sent.end(), base);
        let inflight = base.tracker.inflight();
        base.governor.on_timeout(&trimtab_cc::Timeout { now, prior_inflight, inflight });
    }
}
