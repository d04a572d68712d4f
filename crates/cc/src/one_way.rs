//! Queueing delay on the way to the receiver: one-way delays above the least of the last ten
//! minutes (RFC 6817 §3.4.2 and Appendix A.1, as RFC 8698 §4.2 and SCReAM use it). The receiver's
//! clock may begin anywhere, and run a little faster or slower.

use trimtab_units::{Duration, Time};

/// The least delay of each of so many minutes is kept (RFC 6817 §2.5, `BASE_HISTORY`).
const MINUTES: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// The least delays.
#[derive(Clone, Debug)]
pub(crate) struct OneWay {
    /// Of each minute, in nanoseconds by both clocks; the last minutes that have one.
    least: [i64; MINUTES],
    place: u8,
    /// When the running minute began; `None` before any packet.
    since: Option<Time>,
}

impl Default for OneWay {
    fn default() -> Self {
        Self { least: [i64::MAX; MINUTES], place: 0, since: None }
    }
}

impl OneWay {
    /// How much longer than the least one a packet took, reported to the sender at `now`.
    pub(crate) fn queued(&mut self, sent: Time, arrived: Time, now: Time) -> Duration {
        let delay = arrived.as_nanos().wrapping_sub(sent.as_nanos()).cast_signed();
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= MINUTE {
            self.since = Some(now);
            self.place = (self.place + 1) % MINUTES as u8;
            self.least[usize::from(self.place)] = i64::MAX;
        }
        let running = &mut self.least[usize::from(self.place)];
        *running = delay.min(*running);
        let least = self.least.iter().fold(delay, |least, &minute| least.min(minute));
        Duration::from_nanos(delay.wrapping_sub(least).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_ten_minutes_is_no_queue() {
        let mut way = OneWay::default();
        let mut queued = |sent: u64, delay_ms: u64| {
            let sent = Time::from_secs(sent);
            // The receiver's clock is an hour ahead.
            let arrived = sent + Duration::from_secs(3600) + Duration::from_millis(delay_ms);
            way.queued(sent, arrived, sent + Duration::from_millis(delay_ms * 2)).as_millis()
        };
        assert_eq!((queued(0, 30), queued(1, 50), queued(2, 20), queued(3, 50)), (0, 20, 0, 30));
        for minute in 1..=9 {
            assert_eq!(queued(60 * minute + 5, 40), 20, "minute {minute}");
        }
        assert_eq!(queued(665, 40), 0, "the path is longer since ten minutes");
    }

    /// A receiver whose clock is behind the sender's: the difference is negative.
    #[test]
    fn clocks_may_differ_either_way() {
        let mut way = OneWay::default();
        let at = |ms: u64| Time::from_millis(ms);
        assert_eq!(way.queued(at(5000), at(10), at(5050)).as_millis(), 0);
        assert_eq!(way.queued(at(5100), at(125), at(5150)).as_millis(), 15);
    }
}
