//! Timers: probes, timeouts, pacing, and the algorithm's own.

use trimtab_units::{Duration, Time};

use super::{AckInfo, Sender};
use crate::recovery::Recovery;
use crate::transport::LossDetection;

/// A clock tick of Linux (`HZ` 250, what most distributions build).
const TICK: Duration = Duration::from_millis(4);
/// A wait doubles no more often.
const DOUBLINGS: u32 = 10;
/// What Linux adds to the waits for reordering and for a tail loss probe (`TCP_TIMEOUT_MIN_US`).
pub(super) const TIMER_MIN: Duration = Duration::from_millis(2);

/// When a timer of Linux that is set now rings: at a tick of its clock, the wait rounded up to
/// ticks.
pub(super) fn linux_timer(now: Time, wait: Duration) -> Time {
    let tick = TICK.as_nanos();
    let ticks = now.as_nanos() / tick + wait.as_nanos().div_ceil(tick);
    Time::from_nanos(ticks * tick)
}

impl Sender {
    /// The probe timeout (QUIC) or the retransmission timeout (TCP), without back-off.
    pub(super) fn timeout_base(&self) -> Duration {
        self.rtt.timeout(self.transport.loss_detection, self.transport.max_ack_delay)
    }

    /// How long to wait for an answer before the next probe: twice as long each time, as far as the
    /// transport lets it grow.
    fn probe_wait(&self) -> Duration {
        let base = self.timeout_base();
        let doubled = |times: u32| base * (1 << times.min(DOUBLINGS));
        let Some(growth) = self.transport.probe_growth else { return doubled(self.backoff) };
        let growth = growth.max(self.rtt.smoothed() * 3 / 2);
        (1..=self.backoff).fold(base, |wait, times| doubled(times).min(wait + growth))
    }

    /// When the oldest unanswered packet calls for a probe or a timeout.
    fn timeout_at(&self) -> Time {
        if self.inflight().is_zero() {
            return Time::MAX;
        }
        let rto = self.probe_wait();
        let wait = match self.transport.loss_detection {
            LossDetection::Rfc9002 => rto,
            LossDetection::RackTlp => {
                let fast = self.recovery.since().is_none() && !self.tail_probe_sent;
                // RFC 8985 §7.2: two round trips, and the peer's delay when only one is in flight.
                let single = self.inflight() <= self.transport.packet;
                let delay = if single { Duration::from_millis(200) } else { TIMER_MIN };
                if fast && self.backoff == 0 {
                    (self.rtt.smoothed() * 2 + delay).min(rto)
                } else {
                    rto
                }
            }
        };
        self.last_sent_at + wait
    }

    /// The next time at which [`on_timer`](Self::on_timer) has something to do.
    pub(crate) fn next_timer(&self) -> Time {
        let mut next = self.timeout_at();
        if let Some(at) = self.loss_timer {
            next = next.min(at);
        }
        if let Some(at) = self.governor.next_timer() {
            next = next.min(at);
        }
        if self.pacing_blocked {
            next = next.min(self.pacer.wakes_at());
        }
        next
    }

    /// Does what is due.
    pub(crate) fn on_timer(&mut self, now: Time) {
        self.governor.on_timer(now);
        if self.loss_timer.is_some_and(|at| at <= now) {
            let delay = Duration::ZERO;
            let nothing = AckInfo { arrivals: 0, cumulative: 0, delay, marks: 0, echo: false };
            self.detect_losses(now, nothing);
        }
        if self.timeout_at() <= now {
            match self.transport.loss_detection {
                LossDetection::Rfc9002 => self.probe(now),
                LossDetection::RackTlp => self.tail_probe_or_timeout(now),
            }
        }
    }

    /// RFC 9002 §6.2.4: one or two packets leave whatever the window says, with new data or, when
    /// there is none, with the oldest that is unanswered.
    fn probe(&mut self, now: Time) {
        self.backoff += 1;
        self.probes = if self.backoff > 1 { 2 } else { 1 };
        self.last_sent_at = now;
        if !self.has_data() {
            self.repeat_in_flight(now, false);
        }
    }

    fn tail_probe_or_timeout(&mut self, now: Time) {
        let probe = self.recovery.since().is_none() && !self.tail_probe_sent && self.backoff == 0;
        if probe {
            // RFC 8985 §7.3: new data if there is any, else the last packet once more.
            self.tail_probe_sent = true;
            self.probes = 1;
            self.last_sent_at = now;
            if !self.has_data() {
                self.repeat_in_flight(now, true);
            }
            return;
        }
        self.totals.timeouts += 1;
        self.backoff += 1;
        self.last_sent_at = now;
        let next = self.packets.next_number();
        let from = self.packets.in_flight_from();
        for number in from..next {
            let Some(packet) = self.packets.get_mut(number) else { continue };
            // The batch is one event: what was in flight was lost or not, and is not told by
            // packets.
            if self.tracker.on_lost(now, &mut packet.record, true).is_some() {
                self.totals.lost += 1;
                self.queue_again(number);
            }
        }
        let written_off = self.tracker.end_losses(now);
        self.loss_timer = None;
        self.reduction = None;
        // A second timeout in a row is the same episode: the window is at its minimum already.
        if let (Some(written_off), false) =
            (written_off, matches!(self.recovery, Recovery::Timeout { .. }))
        {
            self.recovery =
                Recovery::Timeout { since: now, until: self.highest_offset, sent_before: next };
            self.governor.on_timeout(&written_off.timeout());
        }
    }

    /// Sends the data of a packet in flight once more: the newest (a tail loss probe) or the
    /// oldest.
    fn repeat_in_flight(&mut self, now: Time, newest: bool) {
        let from = self.packets.in_flight_from();
        let number = {
            let in_flight = self.packets.iter_from(from).filter(|(_, p)| p.is_in_flight());
            let mut numbers = in_flight.map(|(number, _)| number);
            if newest { numbers.last() } else { numbers.next() }
        };
        let Some(number) = number else { return };
        // Written off, though not as a loss to react to: if it arrives, nothing was wrong.
        if let Some(packet) = self.packets.get_mut(number)
            && let Some(discarded) = self.tracker.on_discarded(now, &mut packet.record)
        {
            self.governor.on_discarded(&discarded);
            self.queue_again(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_timers_ring_at_ticks() {
        let ms = Duration::from_millis;
        assert_eq!(linux_timer(Time::from_millis(8), ms(4)), Time::from_millis(12));
        assert_eq!(linux_timer(Time::from_millis(9), ms(5)), Time::from_millis(16));
        // By up to a tick early: the tick that is under way counts whole.
        assert_eq!(linux_timer(Time::from_millis(11), ms(4)), Time::from_millis(12));
    }
}
