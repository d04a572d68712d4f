//! The congestion signal: queueing delay, losses and marks as one number in milliseconds (RFC 8698
//! §4.2 and §5.1).

use libm::exp;
use trimtab_units::{Bytes, Duration, Rate, Time};

/// Samples of the least-delay filter (§5.1.1).
const DELAYS: usize = 15;
/// Observation window in updates of 100 ms: LOGWIN is 500 ms (§4.1, Figure 3).
const SLOTS: usize = 5;
/// LOGWIN itself (§4.1, Figure 3).
const LOGWIN: Duration = Duration::from_millis(500);
/// Queueing delay that is none, QEPS (§4.1, Figure 3).
const QEPS: Duration = Duration::from_millis(10);
/// Where delays count less while there are losses, QTH in milliseconds, and how steeply, LAMBDA (§4.2,
/// Equation 1).
const QTH: f64 = 50.0;
const LAMBDA: f64 = 0.5;
/// Losses count as such for so many average intervals, MULTILOSS (§4.2).
const MULTILOSS: f64 = 7.0;
/// A reference share of lost or marked packets costs so many milliseconds: PLRREF, DLOSS, PMRREF,
/// DMARK (§4.2, Equation 2).
const LOSS: (f64, f64) = (0.01, 10.0);
const MARK: (f64, f64) = (0.01, 2.0);
/// Weight of a new share, ALPHA (§5.1.2).
const ALPHA: f64 = 0.1;
/// Weights of the last loss intervals (RFC 5348 §5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// What was heard between two updates.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    length: Duration,
    bytes: Bytes,
    packets: u32,
    lost: u32,
    marked: u32,
}

/// The filters.
#[derive(Clone, Debug, Default)]
pub(super) struct Signal {
    /// Last queueing delays, in milliseconds.
    delays: [f32; DELAYS],
    known: u8,
    next_delay: u8,
    slots: [Slot; SLOTS],
    place: u8,
    loss: f64,
    mark: f64,
    /// Packets since the last loss, and between those before it, latest first.
    since_loss: u32,
    intervals: [u32; 8],
    lost_at: Option<Time>,
    delayed_at: Option<Time>,
}

impl Signal {
    /// A packet arrived, so much later than the fastest.
    pub(super) fn on_arrival(&mut self, now: Time, queued: Duration, bytes: Bytes, marked: bool) {
        self.delays[usize::from(self.next_delay)] = queued.as_millis_f64() as f32;
        self.next_delay = (self.next_delay + 1) % DELAYS as u8;
        self.known = (self.known + 1).min(DELAYS as u8);
        if queued >= QEPS {
            self.delayed_at = Some(now);
        }
        let slot = &mut self.slots[usize::from(self.place)];
        slot.bytes += bytes;
        slot.packets = slot.packets.saturating_add(1);
        slot.marked = slot.marked.saturating_add(u32::from(marked));
        self.since_loss = self.since_loss.saturating_add(1);
    }

    /// Packets did not arrive.
    pub(super) fn on_lost(&mut self, now: Time, packets: u32) {
        if packets == 0 {
            return;
        }
        self.lost_at = Some(now);
        let slot = &mut self.slots[usize::from(self.place)];
        slot.packets = slot.packets.saturating_add(packets);
        slot.lost = slot.lost.saturating_add(packets);
        self.intervals.rotate_right(1);
        self.intervals[0] = self.since_loss.max(1);
        self.since_loss = 0;
    }

    /// An update after so long: what it goes by from here is the window up to now.
    pub(super) fn close(&mut self, length: Duration) {
        self.slots[usize::from(self.place)].length = length;
        let sum = |of: fn(&Slot) -> u32| self.slots.iter().map(|slot| f64::from(of(slot))).sum();
        let packets: f64 = sum(|slot| slot.packets);
        if packets > 0.0 {
            // §5.1.2: smoothed shares.
            let (lost, marked): (f64, f64) = (sum(|slot| slot.lost), sum(|slot| slot.marked));
            self.loss += ALPHA * (lost / packets - self.loss);
            self.mark += ALPHA * (marked / packets - self.mark);
        }
    }

    /// The next interval begins.
    pub(super) fn open(&mut self) {
        self.place = (self.place + 1) % SLOTS as u8;
        self.slots[usize::from(self.place)] = Slot::default();
    }

    /// The rate that arrived in the observation window, `r_recv` (§5.1.3).
    pub(super) fn received(&self) -> Rate {
        let bytes = self.slots.iter().fold(Bytes::ZERO, |sum, slot| sum + slot.bytes);
        let length = self.slots.iter().fold(Duration::ZERO, |sum, slot| sum + slot.length);
        if length.is_zero() { Rate::ZERO } else { bytes / length }
    }

    /// Whether the path has room: no loss and no queue in the observation window (§4.2, `rmode` 0).
    pub(super) fn has_room(&self, now: Time) -> bool {
        let recent = |at: Option<Time>| at.is_some_and(|at| now.since(at) <= LOGWIN);
        !recent(self.lost_at) && !recent(self.delayed_at)
    }

    /// The aggregate congestion signal `x_curr`, in milliseconds (§4.2, Equations 1 and 2).
    pub(super) fn congestion(&self) -> f64 {
        let loss = self.loss / LOSS.0;
        let mark = self.mark / MARK.0;
        self.warped() + LOSS.1 * loss * loss + MARK.1 * mark * mark
    }

    /// The queueing delay, which counts less and less beyond QTH while losses happen: so the flow
    /// is not starved by others that fill the queue (§4.2, Equation 1).
    fn warped(&self) -> f64 {
        let known = &self.delays[..usize::from(self.known)];
        let least = known.iter().copied().fold(f32::INFINITY, f32::min);
        let queued = if known.is_empty() { 0.0 } else { f64::from(least) };
        let expected = MULTILOSS * self.loss_interval();
        if queued < QTH || f64::from(self.since_loss) > expected {
            return queued;
        }
        QTH * exp(-LAMBDA * (queued - QTH) / QTH)
    }

    /// The average number of packets between losses (RFC 5348 §5.4); 0 without any.
    fn loss_interval(&self) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (weight, interval) in WEIGHTS.iter().zip(self.intervals).filter(|(_, i)| *i > 0) {
            sum += weight * f64::from(interval);
            weights += weight;
        }
        if weights > 0.0 { sum / weights } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1250);

    fn arrive(signal: &mut Signal, packets: u32, queued_ms: u64) {
        for _ in 0..packets {
            signal.on_arrival(Time::ZERO, Duration::from_millis(queued_ms), PACKET, false);
        }
    }

    /// §5.1.1: the least of 15 samples, so one late packet is none.
    #[test]
    fn the_delay_is_the_least_of_fifteen() {
        let mut signal = Signal::default();
        arrive(&mut signal, 14, 30);
        arrive(&mut signal, 1, 12);
        assert!((signal.congestion() - 12.0).abs() < 1e-6);
        arrive(&mut signal, 15, 30);
        assert!((signal.congestion() - 30.0).abs() < 1e-6);
    }

    /// Equation 1: with losses 100 ms count as 50 exp(-0.5) = 30.3 ms, and without any as 100.
    #[test]
    fn long_delays_count_less_next_to_losses() {
        let mut signal = Signal::default();
        arrive(&mut signal, 200, 100);
        assert!((signal.warped() - 100.0).abs() < 1e-6);
        signal.on_lost(Time::ZERO, 1);
        assert!((signal.warped() - 50.0 * libm::exp(-0.5)).abs() < 1e-6, "{}", signal.warped());
        // Seven intervals of 200 packets without a loss, and it is forgotten.
        arrive(&mut signal, 1400, 100);
        assert!(signal.warped() < 50.0);
        arrive(&mut signal, 1, 100);
        assert!((signal.warped() - 100.0).abs() < 1e-6);
    }

    /// Equation 2: a share of 1% costs 10 ms, one of 2% 40 ms. The share is smoothed by 0.1.
    #[test]
    fn losses_cost_by_their_square() {
        let mut signal = Signal::default();
        for _ in 0..200 {
            arrive(&mut signal, 98, 0);
            signal.on_lost(Time::ZERO, 2);
            signal.close(Duration::from_millis(100));
            signal.open();
        }
        assert!((signal.congestion() - 40.0).abs() < 1e-3, "{}", signal.congestion());
        assert!((signal.received().mbps() - 9.8).abs() < 1e-6, "{}", signal.received());
    }

    #[test]
    fn room_is_no_queue_and_no_loss_for_half_a_second() {
        let mut signal = Signal::default();
        let at = |ms| Time::from_millis(ms);
        assert!(signal.has_room(at(0)));
        signal.on_arrival(at(100), QEPS, PACKET, false);
        assert!(!signal.has_room(at(600)) && signal.has_room(at(601)));
        signal.on_lost(at(700), 1);
        assert!(!signal.has_room(at(1200)) && signal.has_room(at(1201)));
    }
}
