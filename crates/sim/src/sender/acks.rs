//! Acknowledgements: what arrived, what that says of the path, and what must be lost.

use trimtab_cc::{Ack, Loss, LostPacket, Marked, Phase, RateSample, Timeout};
use trimtab_units::{Bytes, Duration, Time};

use super::timers::{TIMER_MIN, linux_timer};
use super::{AckInfo, Sender};
use crate::packets::Fate;
use crate::recovery::{Prr, PrrAck, Recovery, Reduction};
use crate::transport::LossDetection;

/// RFC 9002 §6.1.1: `kPacketThreshold`; RFC 8985: `DupThresh`.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 §7.6.1: `kPersistentCongestionThreshold`.
const PERSISTENT_CONGESTION_THRESHOLD: u64 = 3;

/// What loss detection found in one go.
#[derive(Default)]
struct LossBatch {
    bytes: Bytes,
    newest: Option<Time>,
    /// First and last sending time of the longest run of lost packets without an arrival between.
    run: Option<(Time, Time)>,
    longest: Duration,
}

impl Sender {
    /// An acknowledgement arrived; `arrivals` are the numbers of the packets that it newly covers.
    pub(crate) fn on_ack(&mut self, now: Time, info: AckInfo, arrivals: impl Iterator<Item = u64>) {
        let prior_inflight = self.inflight;
        let advanced = info.cumulative > self.cumulative;
        self.cumulative = self.cumulative.max(info.cumulative);
        let mut acked = Bytes::ZERO;
        let mut newest: Option<u64> = None;
        let mut oldest_sent_at = Time::MAX;
        let mut original_late = false;
        for number in arrivals {
            let Some(packet) = self.packets.get_mut(number) else { continue };
            match packet.fate {
                Fate::InFlight => self.inflight -= packet.size,
                Fate::Acked => continue,
                Fate::Lost | Fate::Resent => {
                    self.totals.spurious += 1;
                    // The original of a probe is no loss of an episode.
                    if self.episode_lost > 0 {
                        self.episode_spurious += 1;
                        original_late = true;
                    }
                }
            }
            packet.fate = Fate::Acked;
            acked += packet.size;
            if let Some(collector) = &mut self.collector {
                self.responses.on_acked(now, packet.chunk, self.cumulative, collector);
            }
            oldest_sent_at = oldest_sent_at.min(packet.sent_at);
            newest = newest.max(Some(number));
        }
        let Some(newest) = newest else { return };
        self.delivered += acked;
        self.delivered_at = now;
        self.totals.delivered = self.delivered;
        self.backoff = 0;
        self.tail_probe_sent = false;

        let rtt = self.take_rtt(now, newest, oldest_sent_at, info.delay);
        let rate = self.take_rate(now, newest);
        if self.delivered > self.app_limited_until {
            self.app_limited_until = Bytes::ZERO;
        }
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
        let lost_before = self.lost;
        self.detect_losses(now, info);
        let newest_sent_at = self.packets.get(newest).map_or(now, |p| p.sent_at);
        self.end_reduction(info, newest_sent_at);
        self.heed_marks(now, info, newest_sent_at, prior_inflight);
        let rate = rate.map(|(mut sample, lost_at_send)| {
            sample.lost = self.lost - lost_at_send;
            sample
        });
        let ack = Ack {
            now,
            acked,
            rtt,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            inflight: self.inflight,
            prior_inflight,
            delivered: self.delivered,
            newest_sent_at,
            rate,
            cwnd_limited: (newest < self.limited_below || self.slow_start_in_use())
                && (advanced || !self.grows_by_cumulative_acks()),
            in_recovery: self.recovery.since().is_some(),
        };
        self.governor.on_ack(&ack);
        if let Some(collector) = &mut self.collector {
            collector.on_ack(&ack);
        }
        // RFC 9002 §7.3.2: QUIC's episode ends when something sent since it began has arrived.
        if self.transport.loss_detection == LossDetection::Rfc9002
            && self.recovery.since().is_some_and(|since| newest_sent_at > since)
        {
            self.close_recovery();
        }
        let ssthresh = self.governor.window();
        let (losses, inflight) = (self.lost > lost_before, self.inflight);
        let packet = self.transport.packet;
        if let Some(prr) = self.prr() {
            let ack = PrrAck { newly: acked, losses, advanced, inflight, ssthresh };
            prr.on_ack(ack, packet);
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
            && self.governor.window() < self.inflight * 2
    }

    fn take_rtt(
        &mut self,
        now: Time,
        newest: u64,
        oldest_sent_at: Time,
        delay: Duration,
    ) -> Option<Duration> {
        if self.largest_acked.is_some_and(|largest| newest <= largest) {
            return None; // RFC 9002 §5.1: only a new largest one gives a sample
        }
        self.largest_acked = Some(newest);
        let rtt = now.since(self.packets.get(newest)?.sent_at);
        self.totals.rtt.record(rtt);
        match self.transport.loss_detection {
            LossDetection::Rfc9002 => self.rtt.sample(now, rtt, delay),
            // TCP does not know the delay, and measures from the oldest segment (RFC 7323 §4.1).
            LossDetection::RackTlp => {
                self.rtt.sample(now, now.since(oldest_sent_at), Duration::ZERO);
                self.rtt.sample_min(rtt);
            }
        }
        Some(rtt)
    }

    /// The delivery-rate sample of the newest packet (draft-cheng §3.3), and the bytes that had been
    /// lost when it was sent.
    fn take_rate(&mut self, now: Time, newest: u64) -> Option<(RateSample, Bytes)> {
        let packet = self.packets.get(newest)?;
        let send_elapsed = packet.sent_at.since(packet.first_sent_at);
        let ack_elapsed = now.since(packet.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        self.first_sent_at = packet.sent_at;
        // Too short to be true: acknowledgements that were held up together.
        if interval.is_zero() || interval < self.rtt.min() {
            return None;
        }
        let sample = RateSample {
            delivered: self.delivered - packet.delivered,
            interval,
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
            tx_in_flight: packet.tx_in_flight,
            lost: Bytes::ZERO,
        };
        Some((sample, packet.lost))
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
        let Some(largest) = self.largest_acked else { return };
        let from = self.packets.in_flight_from();
        if from >= largest {
            return;
        }
        let prior_inflight = self.inflight;
        let mut batch = LossBatch::default();
        let mut previous_lost = from
            .checked_sub(1)
            .and_then(|n| self.packets.get(n))
            .is_some_and(|p| matches!(p.fate, Fate::Lost | Fate::Resent));
        let (packets_behind, wait) = self.thresholds(from, largest);
        let mut number = from;
        while number < largest {
            let Some(packet) = self.packets.get_mut(number) else { break };
            if packet.fate != Fate::InFlight {
                previous_lost = matches!(packet.fate, Fate::Lost | Fate::Resent);
                if packet.fate == Fate::Acked {
                    batch.run = None;
                }
                number += 1;
                continue;
            }
            let late = now >= packet.sent_at + wait;
            if !late && packets_behind.is_none_or(|k| number + k > largest) {
                // Later ones were sent later.
                self.loss_timer = Some(self.next_loss_at(now, number, largest, wait));
                break;
            }
            packet.fate = Fate::Lost;
            let (size, sent_at) = (packet.size, packet.sent_at);
            self.inflight -= size;
            self.lost += size;
            batch.bytes += size;
            batch.newest = Some(sent_at);
            let run = batch.run.map_or((sent_at, sent_at), |(first, _)| (first, sent_at));
            batch.run = Some(run);
            batch.longest = batch.longest.max(run.1.since(run.0));
            let lost = LostPacket {
                now,
                bytes: size,
                sent_at,
                tx_in_flight: packet.tx_in_flight,
                lost_since_sent: self.lost - packet.lost,
                app_limited: packet.app_limited,
                delivered_at_send: packet.delivered,
                new_range: !previous_lost,
            };
            self.governor.on_packet_lost(&lost);
            previous_lost = true;
            self.queue_again(number);
            self.totals.lost += 1;
            self.episode_lost += 1;
            number += 1;
        }
        if let Some(newest) = batch.newest {
            self.on_losses(now, &batch, newest, prior_inflight, info);
        }
    }

    /// When to look again, `number` being the oldest packet that may be lost by then.
    fn next_loss_at(&self, now: Time, number: u64, largest: u64, wait: Duration) -> Time {
        let candidates = self.packets.iter_from(number).take_while(|&(n, _)| n < largest);
        let mut sent_at =
            candidates.filter(|(_, p)| p.fate == Fate::InFlight).map(|(_, p)| p.sent_at);
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
                    .filter(|(_, p)| p.fate == Fate::Acked)
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

    fn on_losses(
        &mut self,
        now: Time,
        batch: &LossBatch,
        newest: Time,
        prior_inflight: Bytes,
        info: AckInfo,
    ) {
        let tcp = self.transport.loss_detection == LossDetection::RackTlp;
        let loss = Loss {
            now,
            lost: batch.bytes,
            newest_sent_at: self.as_of_episode(newest),
            inflight: self.inflight,
            prior_inflight,
        };
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
        if let Some(collector) = &mut self.collector {
            collector.on_loss(&loss);
        }
        if !tcp && self.persistent_congestion(batch) {
            self.totals.timeouts += 1;
            self.governor.on_timeout(&Timeout { now, prior_inflight, inflight: self.inflight });
        }
    }

    fn new_prr(&self) -> Option<Prr> {
        let prr = self.transport.proportional_rate_reduction && !self.governor.manages_recovery();
        prr.then(|| Prr::new(self.governor.window(), self.transport.packet))
    }

    /// Congestion marks: at most one reduction in a round trip, whatever it is for.
    fn heed_marks(&mut self, now: Time, info: AckInfo, newest: Time, prior_inflight: Bytes) {
        let inflight = self.inflight;
        let mut marked = Marked { now, newest_sent_at: newest, inflight, prior_inflight };
        let until = self.highest_offset.max(info.cumulative);
        match self.transport.loss_detection {
            LossDetection::Rfc9002 => {
                if info.marks <= self.marks {
                    return;
                }
                self.marks = info.marks;
                // RFC 9002 §7.3.2: a recovery period, as after a loss.
                if self.recovery.since().is_none() && self.reduction.is_none() {
                    self.reduction = Some(Reduction { since: now, until, prr: None });
                }
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
                marked.newest_sent_at = now;
                self.reduction = Some(Reduction { since: now, until, prr: self.new_prr() });
                self.tell_reduced = true;
            }
        }
        self.marked_episode = true;
        self.governor.on_marked(&marked);
    }

    /// It ends when something that was sent since has arrived (RFC 9002 §7.3.2). Linux waits for the first acknowledgement
    /// beyond what was outstanding when it began, by which the receiver knows of it.
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
    fn persistent_congestion(&self, batch: &LossBatch) -> bool {
        let Some(first_sample) = self.rtt.first_sample_at() else { return false };
        let period = self.rtt.timeout(LossDetection::Rfc9002, self.transport.max_ack_delay)
            * PERSISTENT_CONGESTION_THRESHOLD;
        batch.longest > period && batch.newest.is_some_and(|n| n - batch.longest >= first_sample)
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
            if packet.fate == Fate::Lost && number < sent_before {
                packet.fate = Fate::InFlight;
                self.inflight += packet.size;
                self.lost -= packet.size;
                self.totals.lost -= 1;
                self.packets.back_in_flight(number);
            } else if packet.fate == Fate::Lost {
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
