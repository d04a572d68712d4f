//! Pacing: when the next packet may leave.

use trimtab_units::{Bytes, Duration, Rate, Time};

/// The most that leaves at once (Linux: `GSO_LEGACY_MAX_SIZE`).
const BURST_MAX: Bytes = Bytes::new(65_536);
/// This much time's worth leaves at once (Linux: `sk_pacing_shift` 10, about a millisecond).
const BURST_TIME: Duration = Duration::from_nanos(1_000_000_000 >> 10);

/// Lets packets go in bursts of about a millisecond's worth, at least two packets, and then waits as
/// long as they take at the pacing rate, as Linux and QUIC stacks with segmentation offload do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// When the next burst may begin.
    next: Time,
    /// When the current one began, and what is left of it.
    burst_at: Time,
    burst_left: Bytes,
    /// The time that a packet of this size takes at this rate, as computed last: packets that follow
    /// each other are alike.
    spacing: (Bytes, Rate, Duration),
    /// Whether a wait makes up for a burst that began late, by up to half of itself, as in Linux
    /// (`tcp_update_skb_after_send`).
    catches_up: bool,
    /// How late the present burst began.
    late: Duration,
}

/// What leaves at once at this rate, which is also what Linux makes a segment of for the network card
/// to split (`tcp_tso_autosize`).
pub(crate) fn burst(rate: Rate, packet: Bytes) -> Bytes {
    (rate * BURST_TIME).max(packet * 2).min(BURST_MAX)
}

impl Pacer {
    pub(crate) fn new(catches_up: bool) -> Self {
        Self { catches_up, ..Self::default() }
    }

    /// Whether a packet of `size` may leave now.
    pub(crate) fn allows(&self, now: Time, size: Bytes) -> bool {
        now >= self.next || self.continues(now, size)
    }

    /// Whether a packet that leaves now goes on with the burst before it.
    pub(crate) fn continues(&self, now: Time, size: Bytes) -> bool {
        now == self.burst_at && self.burst_left >= size
    }

    /// When the next burst may begin.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// A packet leaves that may.
    pub(crate) fn on_sent(&mut self, now: Time, size: Bytes, rate: Rate, packet: Bytes) {
        if now >= self.next {
            if self.catches_up {
                self.late = now.since(self.next);
            }
            self.burst_at = now;
            self.burst_left = burst(rate, packet);
            self.next = now;
        }
        self.burst_left -= size;
        if (self.spacing.0, self.spacing.1) != (size, rate) {
            self.spacing = (size, rate, size / rate);
        }
        let wait = self.spacing.2;
        let made_up = self.late.min(wait / 2);
        self.late -= made_up;
        self.next += wait - made_up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_bursts_are_small() {
        let packet = Bytes::new(1500);
        for mbps in [1.0, 12.0, 100.0, 1000.0] {
            let rate = Rate::from_mbps(mbps);
            let mut pacer = Pacer::new(true);
            let mut now = Time::ZERO;
            let mut sent = Bytes::ZERO;
            let mut largest = Bytes::ZERO;
            while now < Time::from_secs(2) {
                let mut burst = Bytes::ZERO;
                while pacer.allows(now, packet) {
                    pacer.on_sent(now, packet, rate, packet);
                    burst += packet;
                }
                sent += burst;
                largest = largest.max(burst);
                now = pacer.next();
            }
            let share = sent.ratio(rate * now.since(Time::ZERO));
            assert!((share - 1.0).abs() < 1e-3, "{mbps} Mbit/s: {share}");
            assert!(largest <= (rate * BURST_TIME).max(packet * 2).min(BURST_MAX));
        }
    }
}
