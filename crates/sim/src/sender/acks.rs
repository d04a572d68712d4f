//! Acknowledgements: what arrived, what that says of the path, and what must be lost.

use trimtab_cc::transport::Fate;
use trimtab_cc::{Loss, Marked, Phase};
use trimtab_units::{Duration, Time};

use super::timers::{TIMER_MIN, linux_timer};
use super::{AckInfo, Sender};
use crate::packets::Packet;
use crate::recovery::{Prr, PrrAck, Recovery, Reduction};
use crate::transport::LossDetection;

/// RFC 9002 §6.1.1: `kPacketThreshold`; RFC 8985: `DupThresh`.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 §7.6.1: `kPersistentCongestionThreshold`.
const PERSISTENT_CONGESTION_THRESHOLD: u64 = 3;

/// What loss detection found in one go.
#[derive(Default)]
struct LossBatch {
    /// First and last sending time of the longest run of lost packets without an arrival between.
    run: Option<(Time, Time)>,
    longest: Duration,
}

impl Sender {
    /// An acknowledgement arrived; `arrivals` are the numbers of the packets that it newly covers.
    pub(crate) fn on_ack(&mut self, now: Time, info: AckInfo, arrivals: impl Iterator<Item = u64>) {
        let advanced = info.cumulative > self.cumulative;
        self.cumulative = self.cumulative.max(info.cumulative);
        let mut original_late = false;
        for number in arrivals {
            let Some(packet) = self.packets.get_mut(number) else { continue };
            match self.tracker.on_acked(&mut packet.record) {
                Fate::InFlight => {}
                Fate::Acked => continue,
                Fate::Lost | Fate::Discarded => {
                    self.totals.spurious += 1;
                    // The original of a probe is no loss of an episode.
                    if self.episode_lost > 0 {
                        self.episode_spurious += 1;
                        original_late = true;
                    }
                }
            }
            if let Some(collector) = self.governor.collector_mut() {
                let chunk = packet.chunk(self.transport.header);
                self.responses.on_acked(now, chunk, self.cumulative, collector);
            }
        }
        let Some(newest_sent_at) = self.tracker.newest_sent_at() else { return };
        self.totals.delivered = self.tracker.delivered();
        self.backoff = 0;
        self.tail_probe_sent = false;

        self.take_rtt(now, info.delay);
        if original_late {
            self.undo_if_spurious(now);
        }
        // RFC 6675 §5: TCP's episode ends when all that was outstanding has arrived. What is found
        // lost then opens the next.
        if self.transport.loss_detection == LossDetection::RackTlp
            && self.recovery.until().is_some_and(|until| info.cumulative >= until)
        {
            self.close_recovery();
        }
        let lost_before = self.tracker.lost();
        self.detect_losses(now, info);
        self.end_reduction(info, newest_sent_at);
        self.heed_marks(now, info);
        let (srtt, min_rtt) = (self.rtt.smoothed(), self.rtt.min());
        let Some(mut ack) = self.tracker.end_ack(now, srtt, min_rtt) else { return };
        ack.cwnd_limited = (ack.cwnd_limited || self.slow_start_in_use())
            && (advanced || !self.grows_by_cumulative_acks());
        ack.in_recovery = self.recovery.since().is_some();
        self.governor.on_ack(&ack);
        // RFC 9002 §7.3.2: QUIC's episode ends when something sent since it began has arrived.
        if self.transport.loss_detection == LossDetection::Rfc9002
            && self.recovery.since().is_some_and(|since| newest_sent_at > since)
        {
            self.close_recovery();
        }
        if self.prr().is_some() {
            let (losses, inflight) = (self.tracker.lost() > lost_before, self.inflight());
            let ssthresh = self.governor.window();
            let ack = PrrAck { newly: ack.acked, losses, advanced, inflight, ssthresh };
            let packet = self.transport.packet;
            if let Some(prr) = self.prr() {
                prr.on_ack(ack, packet);
            }
        }
        self.update_pacing();
        let keep = self.timeout_base() * 3 + self.rtt.latest() * 2;
        self.packets.forget(now - keep);
    }

    /// Linux lets a window grow only with acknowledgements that advance the cumulative one
    /// (`tcp_may_raise_cwnd`): not between a loss and its detection. An algorithm that sets the
    /// window in recovery itself is asked with every acknowledgement.
    fn grows_by_cumulative_acks(&self) -> bool {
        self.transport.loss_detection == LossDetection::RackTlp && !self.governor.manages_recovery()
    }

    /// Linux lets slow start grow as long as the window is less than twice what was used of it.
    fn slow_start_in_use(&self) -> bool {
        self.transport.loss_detection == LossDetection::RackTlp
            && self.governor.phase() == Phase::SlowStart
            && self.governor.window() < self.inflight() * 2
    }

    fn take_rtt(&mut self, now: Time, delay: Duration) {
        let Some(rtt) = self.tracker.rtt_sample(now) else { return };
        self.totals.rtt.record(rtt);
        match self.transport.loss_detection {
            LossDetection::Rfc9002 => self.rtt.sample(now, rtt, delay),
            // TCP does not know the delay, and measures from the oldest segment (RFC 7323 §4.1).
            LossDetection::RackTlp => {
                let oldest =
                    self.tracker.oldest_sent_at().map_or(rtt, |sent_at| now.since(sent_at));
                self.rtt.sample(now, oldest, Duration::ZERO);
                self.rtt.sample_min(rtt);
            }
        }
    }

    /// Within a TCP episode, losses of packets sent since its beginning belong to it as well: the
    /// algorithm sees them as sent when it began.
    fn as_of_episode(&self, sent_at: Time) -> Time {
        let reduced = self.reduction.as_ref().map(|reduction| reduction.since);
        match (self.transport.loss_detection, self.recovery.since().or(reduced)) {
            (LossDetection::RackTlp, Some(since)) => sent_at.min(since),
            _ => sent_at,
        }
    }

    pub(super) fn detect_losses(&mut self, now: Time, info: AckInfo) {
        self.loss_timer = None;
        let Some(largest) = self.tracker.largest_acked() else { return };
        let from = self.packets.in_flight_from();
        if from >= largest {
            return;
        }
        let mut batch = LossBatch::default();
        let mut previous_lost = from
            .checked_sub(1)
            .and_then(|n| self.packets.get(n))
            .is_some_and(Packet::is_written_off);
        let (packets_behind, wait) = self.thresholds(from, largest);
        let mut number = from;
        while number < largest {
            let Some(packet) = self.packets.get_mut(number) else { break };
            if !packet.is_in_flight() {
                previous_lost = packet.is_written_off();
                if packet.is_acked() {
                    batch.run = None;
                }
                number += 1;
                continue;
            }
            let late = now >= packet.record.sent_at() + wait;
            if !late && packets_behind.is_none_or(|k| number + k > largest) {
                // Later ones were sent later.
                self.loss_timer = Some(self.next_loss_at(now, number, largest, wait));
                break;
            }
            let sent_at = packet.record.sent_at();
            if let Some(lost) = self.tracker.on_lost(now, &mut packet.record, !previous_lost) {
                self.governor.on_packet_lost(&lost);
            }
            let run = batch.run.map_or((sent_at, sent_at), |(first, _)| (first, sent_at));
            batch.run = Some(run);
            batch.longest = batch.longest.max(run.1.since(run.0));
            previous_lost = true;
            self.queue_again(number);
            self.totals.lost += 1;
            self.episode_lost += 1;
            number += 1;
        }
        if let Some(loss) = self.tracker.end_losses(now) {
            self.on_losses(&batch, loss, info);
        }
    }

    /// When to look again, `number` being the oldest packet that may be lost by then.
    fn next_loss_at(&self, now: Time, number: u64, largest: u64, wait: Duration) -> Time {
        let candidates = self.packets.iter_from(number).take_while(|&(n, _)| n < largest);
        let mut sent_at =
            candidates.filter(|(_, p)| p.is_in_flight()).map(|(_, p)| p.record.sent_at());
        match self.transport.loss_detection {
            // RFC 9002 §6.1.2: when the oldest is due.
            LossDetection::Rfc9002 => sent_at.next().unwrap_or(now) + wait,
            // When the newest is (`tcp_rack_detect_loss` keeps the longest wait).
            LossDetection::RackTlp => {
                let due = sent_at.last().unwrap_or(now) + wait;
                linux_timer(now, due.since(now) + TIMER_MIN)
            }
        }
    }

    /// How many packets behind the largest arrived a packet is lost at once, and after what time
    /// since its sending.
    fn thresholds(&mut self, from: u64, largest: u64) -> (Option<u64>, Duration) {
        match self.transport.loss_detection {
            LossDetection::Rfc9002 => (Some(PACKET_THRESHOLD), self.rtt.time_threshold()),
            LossDetection::RackTlp => {
                // RFC 8985 §6.2 step 4: no reordering window once DupThresh packets beyond the
                // first hole have arrived, or while recovery goes on. A packet is then lost as soon
                // as one that was sent later has arrived.
                let beyond = self
                    .packets
                    .iter_from(from)
                    .take_while(|&(number, _)| number <= largest)
                    .filter(|(_, p)| p.is_acked())
                    .take(PACKET_THRESHOLD as usize)
                    .count() as u64;
                if beyond >= PACKET_THRESHOLD || self.recovery.since().is_some() {
                    (Some(1), Duration::MAX)
                } else {
                    (None, self.rtt.latest() + self.rtt.reordering_window())
                }
            }
        }
    }

    fn on_losses(&mut self, batch: &LossBatch, mut loss: Loss, info: AckInfo) {
        let tcp = self.transport.loss_detection == LossDetection::RackTlp;
        let (now, newest) = (loss.now, loss.newest_sent_at);
        loss.newest_sent_at = self.as_of_episode(newest);
        if self.recovery.since().is_none_or(|since| !tcp && newest > since) {
            // Linux goes on with the reduction that a mark began (`tcp_enter_recovery`).
            let began = self.reduction.take().filter(|began| tcp || newest <= began.since);
            let (since, prr) = match began {
                Some(reduction) => (reduction.since, reduction.prr),
                None => (now, self.new_prr()),
            };
            let until = self.highest_offset.max(info.cumulative);
            self.recovery = Recovery::Fast { since, until, prr };
            self.tell_reduced = tcp;
        }
        self.governor.on_loss(&loss);
        if !tcp && self.persistent_congestion(batch, newest) {
            self.totals.timeouts += 1;
            self.governor.on_timeout(&loss.timeout());
        }
    }

    fn new_prr(&self) -> Option<Prr> {
        let prr = self.transport.proportional_rate_reduction && !self.governor.manages_recovery();
        prr.then(|| Prr::new(self.governor.window(), self.transport.packet))
    }

    /// Congestion marks: at most one reduction in a round trip, whatever it is for.
    fn heed_marks(&mut self, now: Time, info: AckInfo) {
        let until = self.highest_offset.max(info.cumulative);
        let marked = match self.transport.loss_detection {
            LossDetection::Rfc9002 => {
                let Some(marked) = self.tracker.on_ce_count(now, info.marks) else { return };
                // RFC 9002 §7.3.2: a recovery period, as after a loss.
                if self.recovery.since().is_none() && self.reduction.is_none() {
                    self.reduction = Some(Reduction { since: now, until, prr: None });
                }
                marked
            }
            // RFC 3168 §6.1.2; Linux: `tcp_enter_cwr`.
            LossDetection::RackTlp => {
                if !info.echo {
                    return;
                }
                self.marked_episode = true;
                if self.recovery.since().is_some() || self.reduction.is_some() {
                    return;
                }
                self.reduction = Some(Reduction { since: now, until, prr: self.new_prr() });
                self.tell_reduced = true;
                Marked { newest_sent_at: now, ..self.tracker.marked(now) }
            }
        };
        self.marked_episode = true;
        self.governor.on_marked(&marked);
    }

    /// It ends when something that was sent since has arrived (RFC 9002 §7.3.2). Linux waits for
    /// the first acknowledgement beyond what was outstanding when it began, by which the receiver
    /// knows of it.
    fn end_reduction(&mut self, info: AckInfo, newest_sent_at: Time) {
        let tcp = self.transport.loss_detection == LossDetection::RackTlp;
        let ends = |reduction: &Reduction| {
            if tcp { info.cumulative > reduction.until } else { newest_sent_at > reduction.since }
        };
        if self.reduction.as_ref().is_some_and(ends) {
            self.reduction = None;
            self.marked_episode = false;
        }
    }

    /// RFC 9002 §7.6: everything sent over a period of three probe timeouts was lost.
    fn persistent_congestion(&self, batch: &LossBatch, newest: Time) -> bool {
        let Some(first_sample) = self.rtt.first_sample_at() else { return false };
        let period = self.rtt.timeout(LossDetection::Rfc9002, self.transport.max_ack_delay)
            * PERSISTENT_CONGESTION_THRESHOLD;
        batch.longest > period && newest - batch.longest >= first_sample
    }

    /// Packets that were written off have arrived: when that shows the reduction to be wrong, it is
    /// undone.
    fn undo_if_spurious(&mut self, now: Time) {
        match self.recovery {
            // RFC 5682 §2.1 step 3b, RFC 8985: an original arrived after the timeout.
            Recovery::Timeout { sent_before, .. } => {
                self.recovery = Recovery::Open;
                self.take_back(now);
                self.restore_written_off(sent_before);
            }
            Recovery::Fast { .. } | Recovery::Open => {
                // RFC 9438 §4.9: all losses of the episode turned out to be none.
                if self.episode_spurious < self.episode_lost {
                    return;
                }
                self.recovery = Recovery::Open;
                self.take_back(now);
            }
        }
        self.episode_lost = 0;
        self.episode_spurious = 0;
    }

    /// The losses were none. A mark was one all the same (Linux: `tcp_fastretrans_alert`, step A).
    fn take_back(&mut self, now: Time) {
        if !std::mem::take(&mut self.marked_episode) {
            self.governor.on_spurious_loss(now);
        }
    }

    /// What a spurious timeout had written off and not yet sent again is in flight.
    fn restore_written_off(&mut self, sent_before: u64) {
        let written_off: Vec<u64> = self.resend.drain(..).collect();
        for number in written_off {
            let Some(packet) = self.packets.get_mut(number) else { continue };
            if packet.waits() && number < sent_before {
                self.tracker.restore(&mut packet.record);
                self.totals.lost -= 1;
                self.packets.back_in_flight(number);
            } else if packet.waits() {
                self.resend.push_back(number);
            }
        }
    }

    fn close_recovery(&mut self) {
        self.recovery = Recovery::Open;
        self.marked_episode = false;
        self.episode_lost = 0;
        self.episode_spurious = 0;
    }
}
