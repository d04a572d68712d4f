//! When the next packet may leave: s2n-quic has no pacer for controllers of others.
//!
//! It is a token bucket, like noq's, so that the simulator's transport `noq` describes both. What
//! was not sent in time may leave at once later: ten packets or 2 ms of the rate, whichever is
//! more, but at most 10 ms of the rate.

use trimtab_stack::units::{Bytes, Duration, Rate};

const CREDIT_PACKETS: u64 = 10;
const CREDIT_LEAST: Duration = Duration::from_millis(2);
const CREDIT_MOST: Duration = Duration::from_millis(10);

/// What has left, less what the rate allowed since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// When the last packet left, by the path's time.
    sent_at: Duration,
    /// By how many bytes the sender was ahead of its rate after that packet; negative where it was
    /// behind. Real, since a packet may take less than a microsecond.
    ahead: f64,
}

impl Pacer {
    /// A packet of so many bytes left.
    pub(crate) fn on_sent(&mut self, now: Duration, size: Bytes, pace: Option<Rate>, mss: Bytes) {
        let Some(rate) = pace else {
            *self = Self { sent_at: now, ahead: 0.0 };
            return;
        };
        let credit = (mss * CREDIT_PACKETS).max(rate * CREDIT_LEAST).min(rate * CREDIT_MOST);
        // A bucket that is full holds the packet that may leave now as well.
        let least = -((credit - mss).get() as f64);
        self.ahead = self.ahead_at(now, rate).max(least) + size.get() as f64;
        self.sent_at = now;
    }

    fn ahead_at(&self, now: Duration, rate: Rate) -> f64 {
        self.ahead - (now - self.sent_at).as_secs_f64() * rate.bytes_per_sec() as f64
    }

    /// When the next packet may leave, at the rate that holds now: a change of the rate moves it at
    /// once. `None` where nothing paces.
    pub(crate) fn next(&self, pace: Option<Rate>) -> Option<Duration> {
        let ahead = Bytes::new(self.ahead.max(0.0) as u64);
        pace.map(|rate| self.sent_at + ahead / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1200);

    /// Sends whenever it may, for a second: bytes, and the most that left at once.
    fn second(pacer: &mut Pacer, from: Duration, rate: Rate) -> (Bytes, Bytes) {
        let (mut sent, mut largest, mut burst) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        let mut now = from;
        loop {
            let next = pacer.next(Some(rate)).expect("it paces");
            if next > now {
                burst = Bytes::ZERO;
            }
            now = now.max(next);
            if now >= from + Duration::from_secs(1) {
                return (sent, largest);
            }
            pacer.on_sent(now, MSS, Some(rate), MSS);
            (sent, burst) = (sent + MSS, burst + MSS);
            largest = largest.max(burst);
        }
    }

    #[test]
    fn the_rate_is_kept_however_short_a_packet_takes() {
        for mbps in [1.0, 12.0, 1000.0, 20_000.0] {
            let rate = Rate::from_mbps(mbps);
            let (sent, _) = second(&mut Pacer::default(), Duration::ZERO, rate);
            let share = sent.ratio(rate * Duration::from_secs(1));
            assert!((0.999..1.02).contains(&share), "{mbps} Mbit/s: {share}");
        }
    }

    /// 10 ms of 8 Mbit/s are fewer than ten packets, and ten packets are more than 2 ms of 24
    /// Mbit/s.
    #[test]
    fn an_idle_sender_saves_no_more_than_the_bucket_holds() {
        for (mbps, bytes) in [(8.0, 10_000), (24.0, 12_000), (80.0, 20_000)] {
            let rate = Rate::from_mbps(mbps);
            let (_, largest) = second(&mut Pacer::default(), Duration::from_secs(5), rate);
            let bucket = Bytes::new(bytes);
            assert!(largest <= bucket + MSS && largest + MSS >= bucket, "{mbps}: {largest:?}");
        }
    }

    #[test]
    fn a_higher_rate_moves_the_next_departure_at_once() {
        let mut pacer = Pacer::default();
        let slow = Some(Rate::from_mbps(0.008));
        let fast = Some(Rate::from_mbps(8.0));
        (0..20).for_each(|_| pacer.on_sent(Duration::ZERO, MSS, slow, MSS));
        assert!(pacer.next(slow) > Some(Duration::from_secs(20)));
        assert!(pacer.next(fast) < Some(Duration::from_millis(25)));
        assert_eq!(pacer.next(None), None);
    }
}
