//! Pacing: when the next packet may leave.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use trimtab_units::{Bytes, Duration, Rate, Time};

/// The most that leaves at once (Linux: `GSO_LEGACY_MAX_SIZE`).
const BURST_MAX: Bytes = Bytes::new(65_536);
/// This much time's worth leaves at once (Linux: `sk_pacing_shift` 10, about a millisecond).
const BURST_TIME: Duration = Duration::from_nanos(1_000_000_000 >> 10);
/// The credit of noq's token bucket: this many packets or this much time's worth, whichever is more,
/// at most so much time's worth (noq-proto 1.4: `MIN_BURST_SIZE`, `TARGET_BURST_INTERVAL`,
/// `MAX_BURST_INTERVAL`).
const CREDIT_PACKETS: u64 = 10;
const CREDIT_TIME: Duration = Duration::from_millis(2);
const CREDIT_TIME_MAX: Duration = Duration::from_millis(10);

/// Lets packets go in bursts of about a millisecond's worth, at least two packets, and then waits as
/// long as they take at the pacing rate, as Linux and QUIC stacks with segmentation offload do.
#[derive(Clone, Debug)]
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
    /// The most that a timer is late, and how late the one for the next burst is.
    timer_late: Duration,
    oversleeps: Duration,
    /// Whether it makes up for what it could have sent and did not, as a token bucket.
    credit: bool,
    random: Pcg32,
}

/// What leaves at once at this rate, which is also what Linux makes a segment of for the network card
/// to split (`tcp_tso_autosize`).
pub(crate) fn burst(rate: Rate, packet: Bytes) -> Bytes {
    (rate * BURST_TIME).max(packet * 2).min(BURST_MAX)
}

/// How long ago the burst that leaves now could have left, at most: what a full bucket holds takes
/// that long, less the packet that leaves.
fn credit(rate: Rate, packet: Bytes) -> Duration {
    let (held, packet) = (packet * CREDIT_PACKETS / rate, packet / rate);
    held.max(CREDIT_TIME).min(CREDIT_TIME_MAX).max(packet) - packet
}

impl Pacer {
    pub(crate) fn new(catches_up: bool, timer_late: Duration, credit: bool, seed: u64) -> Self {
        Self {
            next: Time::ZERO,
            burst_at: Time::ZERO,
            burst_left: Bytes::ZERO,
            spacing: (Bytes::ZERO, Rate::ZERO, Duration::ZERO),
            catches_up,
            late: Duration::ZERO,
            timer_late,
            oversleeps: Duration::ZERO,
            credit,
            random: Pcg32::seed_from_u64(seed),
        }
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

    /// When the timer for the next burst fires.
    pub(crate) fn wakes_at(&self) -> Time {
        self.next + self.oversleeps
    }

    /// A packet leaves that may.
    pub(crate) fn on_sent(&mut self, now: Time, size: Bytes, rate: Rate, packet: Bytes) {
        if now >= self.next {
            if self.catches_up {
                self.late = now.since(self.next);
            }
            self.burst_at = now;
            self.burst_left = burst(rate, packet);
            let least = if self.credit { now - credit(rate, packet) } else { now };
            self.next = self.next.max(least);
            if !self.timer_late.is_zero() {
                self.oversleeps = self.timer_late.mul_f64(self.random.random());
            }
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

    /// Sends on a timer alone for two seconds: the share of the rate, and the largest burst.
    fn on_a_timer(rate: Rate, timer_late: Duration) -> (f64, Bytes) {
        let packet = Bytes::new(1500);
        let mut pacer = Pacer::new(true, timer_late, false, 1);
        let mut now = Time::ZERO;
        let (mut sent, mut largest) = (Bytes::ZERO, Bytes::ZERO);
        while now < Time::from_secs(2) {
            let mut burst = Bytes::ZERO;
            while pacer.allows(now, packet) {
                pacer.on_sent(now, packet, rate, packet);
                burst += packet;
            }
            sent += burst;
            largest = largest.max(burst);
            now = pacer.wakes_at();
        }
        (sent.ratio(rate * now.since(Time::ZERO)), largest)
    }

    #[test]
    fn the_rate_is_kept_and_bursts_are_small() {
        for mbps in [1.0, 12.0, 100.0, 1000.0] {
            let rate = Rate::from_mbps(mbps);
            let (share, largest) = on_a_timer(rate, Duration::ZERO);
            assert!((share - 1.0).abs() < 1e-3, "{mbps} Mbit/s: {share}");
            assert!(largest <= burst(rate, Bytes::new(1500)));
        }
    }

    /// Linux takes back what a timer is late, up to half of the burst.
    #[test]
    fn a_late_timer_costs_no_rate() {
        let (share, _) = on_a_timer(Rate::from_mbps(48.0), Duration::from_micros(100));
        assert!((share - 1.0).abs() < 1e-3, "{share}");
    }

    /// An acknowledgement does not wait for the timer.
    #[test]
    fn a_burst_that_is_due_may_leave_before_the_timer() {
        let packet = Bytes::new(1500);
        let mut pacer = Pacer::new(true, Duration::from_micros(100), false, 1);
        pacer.on_sent(Time::from_millis(1), packet, Rate::from_mbps(12.0), packet);
        assert!(pacer.wakes_at() > pacer.next());
        assert!(pacer.allows(pacer.next(), packet));
    }
    /// At 12 Mbit/s ten packets take 10 ms, and at 1.2 Mbit/s one does.
    #[test]
    fn a_bucket_lets_out_what_was_saved_and_then_keeps_the_rate() {
        let packet = Bytes::new(1500);
        for (mbps, saved) in [(1.2, 1), (12.0, 10), (120.0, 20)] {
            let rate = Rate::from_mbps(mbps);
            let mut pacer = Pacer::new(false, Duration::ZERO, true, 1);
            let mut now = Time::from_secs(1);
            let mut count_until = |end: Time| {
                let mut sent = 0_u64;
                while now < end {
                    while pacer.allows(now, packet) {
                        pacer.on_sent(now, packet, rate, packet);
                        sent += 1;
                    }
                    now = pacer.wakes_at().max(now);
                    if now >= end {
                        break;
                    }
                }
                sent
            };
            let at_once = count_until(Time::from_secs(1) + Duration::from_nanos(1));
            // Bursts have two packets and more, so that the last one may go beyond.
            let burst = burst(rate, packet) / packet.get();
            assert!((saved..saved + burst.get()).contains(&at_once), "{mbps} Mbit/s: {at_once}");
            let then = count_until(Time::from_secs(2));
            let expected = (rate * Duration::from_secs(1)).ratio(packet);
            assert!((then as f64 - expected).abs() <= burst.get() as f64 + 1.0, "{mbps}: {then}");
        }
    }
}
