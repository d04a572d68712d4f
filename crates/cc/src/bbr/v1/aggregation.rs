//! How much more is acknowledged at once than the bandwidth explains (`bbr_update_ack_aggregation`).
//!
//! Wi-Fi, cellular links and delayed acknowledgements return acknowledgements in bursts, with
//! silences between them. The window must cover the silence, or the sender stops in it.

use trimtab_units::{Bytes, Rate, Time};

use super::window::whole_packets;

/// Rounds in each of the two slots of the maximum filter (`bbr_extra_acked_win_rtts`): the maximum
/// is over the last 5 to 10 rounds.
const SLOT_ROUNDS: u32 = 5;
/// An epoch of so many packets is old, and begins anew (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_PACKETS_MAX: u64 = 1 << 20;

/// The largest recent excess.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Time,
    epoch_acked: Bytes,
    slots: [Bytes; 2],
    /// Rounds since the current slot began.
    slot_age: u32,
    current: usize,
}

/// An acknowledgement as this estimator sees it.
pub(super) struct Acked {
    pub(super) now: Time,
    pub(super) bytes: Bytes,
    pub(super) bw: Rate,
    pub(super) window: Bytes,
    pub(super) mss: Bytes,
    pub(super) round_started: bool,
}

impl Aggregation {
    /// The largest excess of the last 5 to 10 rounds.
    pub(super) fn extra(&self) -> Bytes {
        self.slots[0].max(self.slots[1])
    }

    /// A new epoch: nothing was expected while the sender was idle.
    pub(super) fn restart_epoch(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = Bytes::ZERO;
    }

    pub(super) fn update(&mut self, ack: &Acked) {
        if ack.round_started {
            self.slot_age += 1;
            if self.slot_age >= SLOT_ROUNDS {
                self.slot_age = 0;
                self.current = 1 - self.current;
                self.slots[self.current] = Bytes::ZERO;
            }
        }
        let mut expected = whole_packets(ack.bw * ack.now.since(self.epoch_start), ack.mss);
        // Slower than expected: whatever was aggregated has been delivered.
        if self.epoch_acked <= expected
            || self.epoch_acked + ack.bytes >= ack.mss * EPOCH_PACKETS_MAX
        {
            self.restart_epoch(ack.now);
            expected = Bytes::ZERO;
        }
        self.epoch_acked += ack.bytes;
        let extra = (self.epoch_acked - expected).min(ack.window);
        let slot = &mut self.slots[self.current];
        *slot = extra.max(*slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets at once every 10 ms at one packet per ms: a burst is ten packets ahead.
    #[test]
    fn measures_the_burst_and_forgets_it_after_ten_rounds() {
        let mut aggregation = Aggregation::default();
        let mss = Bytes::new(1500);
        let bw = Rate::from_mbps(12.0);
        let ack = |ms: u64, packets: u64| Acked {
            now: Time::from_millis(ms),
            bytes: mss * packets,
            bw,
            window: mss * 100,
            mss,
            round_started: true,
        };
        for i in 1..=5 {
            aggregation.update(&ack(10 * i, 10));
        }
        assert_eq!(aggregation.extra(), mss * 10);
        for i in 1..=10 {
            aggregation.update(&ack(70 + i, 1)); // after a silence
        }
        assert_eq!(aggregation.extra(), mss, "one packet per millisecond is what was expected");
    }
}
