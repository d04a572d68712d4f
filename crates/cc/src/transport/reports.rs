//! What a receiver of media adds to the way of a packet.

use trimtab_units::{Duration, Time};

/// How long the way back is remembered: as Copa and BBR remember the round-trip time.
const RETURN_WINDOW: Duration = Duration::from_secs(10);
/// A smoothed turnaround is that of about so many packets.
const TURNAROUND_PACKETS: f64 = 32.0;

/// Round trips by the reports of a receiver of media.
///
/// It reports in batches, and does not tell how long a report waited. What is the same in all reports
/// is the way back. So the shortest time from an arrival to its report, by two clocks whose offset is
/// unknown, stands for the way back, and a round trip is that and the packet's way there: the offset
/// cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reports {
    /// The shortest time from an arrival to its report, in nanoseconds by two clocks: of the present
    /// stretch of time, and of the one before.
    shortest: [Option<i64>; 2],
    since: Time,
    turnaround: Option<Duration>,
}

impl Reports {
    /// So many packets were reported now, which took `mean` from sending to report.
    pub fn took(&mut self, mean: Duration, packets: u64) {
        let weight = packets as f64 / (packets as f64 + TURNAROUND_PACKETS);
        self.turnaround = Some(
            self.turnaround
                .map_or(mean, |before| before.mul_f64(1.0 - weight) + mean.mul_f64(weight)),
        );
    }

    /// The smoothed mean time from a packet's sending to its report; `None` before the first report.
    pub fn turnaround(&self) -> Option<Duration> {
        self.turnaround
    }

    /// The round-trip time of the newest packet of a report, without the receiver's wait. `now` and
    /// `sent_at` are by the sender's clock, `arrived_at` is by the receiver's.
    pub fn round_trip(&mut self, now: Time, sent_at: Time, arrived_at: Time) -> Duration {
        let [now_ns, sent, arrived] =
            [now, sent_at, arrived_at].map(|at| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX));
        if now.since(self.since) > RETURN_WINDOW {
            (self.shortest, self.since) = ([None, self.shortest[0]], now);
        }
        let back = now_ns.saturating_sub(arrived);
        let shortest = self.shortest[0].map_or(back, |shortest| shortest.min(back));
        self.shortest[0] = Some(shortest);
        let shortest = self.shortest[1].map_or(shortest, |before| before.min(shortest));
        let there = arrived.saturating_sub(sent);
        Duration::from_nanos(u64::try_from(there.saturating_add(shortest)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30 ms there, 10 ms back, and the receiver's clock is an hour ahead.
    #[test]
    fn a_round_trip_is_without_the_wait_of_the_report() {
        let (mut reports, ahead) = (Reports::default(), Duration::from_secs(3600));
        let mut of = |waited: u64| {
            let sent = Time::from_millis(5000);
            let arrived = sent + Duration::from_millis(30);
            let now = arrived + Duration::from_millis(waited + 10);
            reports.round_trip(now, sent, arrived + ahead).as_millis()
        };
        assert_eq!(of(20), 60, "nothing better is known yet");
        assert_eq!([of(0), of(20), of(62)], [40; 3]);
    }
}
