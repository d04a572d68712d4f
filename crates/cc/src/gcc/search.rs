//! The start over a transport that sends no probes: the stream itself is paced as they would be.
//!
//! Libwebrtc finds the capacity with probes, each twice the rate that the last one found
//! (`probe_controller.cc`). A stream transport takes none. So each round trip of packets is one:
//! its rate is what arrives of it, and the search ends where a probe would.

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::Ack;

/// As `further_probe_threshold`, `further_exponential_probe_scale` (`probe_controller.cc`).
const FURTHER: f64 = 0.7;
const FURTHER_SCALE: f64 = 2.0;
/// As `kTargetUtilizationFraction` (`probe_bitrate_estimator.cc`).
const UTILISATION: f64 = 0.95;
/// An interval is a round trip, and this at least.
const SPAN_MIN: Duration = Duration::from_millis(10);

/// What an interval showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The path carries it: the next rate.
    More(Rate),
    /// It does not: what it carries.
    Capacity(Rate),
}

/// An interval of packets sent at a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    rate: Rate,
    /// Since when they leave at it.
    set_at: Time,
    /// Since when they arrive, and what arrived since.
    arriving: Option<(Time, Bytes)>,
}

impl Search {
    pub(super) fn new(rate: Rate, now: Time) -> Self {
        Self { rate, set_at: now, arriving: None }
    }

    /// What the path carried in the interval before.
    pub(super) fn carried(&self) -> Rate {
        self.rate.mul_f64(1.0 / FURTHER_SCALE)
    }

    /// What the interval showed, if it ends here. Where the application limits the sender, it
    /// begins anew.
    pub(super) fn on_ack(&mut self, ack: &Ack, app_limited: bool) -> Option<Found> {
        if ack.newest_sent_at < self.set_at {
            return None;
        }
        if app_limited {
            self.arriving = None;
            return None;
        }
        let Some((since, bytes)) = &mut self.arriving else {
            self.arriving = Some((ack.now, Bytes::ZERO));
            return None;
        };
        *bytes += ack.acked;
        let elapsed = ack.now.since(*since);
        if elapsed < ack.srtt.max(SPAN_MIN) {
            return None;
        }
        let arrived = *bytes / elapsed;
        if arrived <= self.rate.mul_f64(FURTHER) {
            return Some(Found::Capacity(arrived.mul_f64(UTILISATION)));
        }
        let rate = arrived.min(self.rate).mul_f64(FURTHER_SCALE);
        *self = Self::new(rate, ack.now);
        Some(Found::More(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::acked;

    /// Packets of 1250 bytes that arrive every 5 ms, 2 Mbit/s.
    fn play(search: &mut Search, from: u64) -> (u64, Found) {
        let rtt = Duration::from_millis(50);
        for ms in (from..from + 1000).step_by(5) {
            let now = Time::from_millis(ms);
            let ack = acked(now, now - rtt, Bytes::new(1250), rtt);
            if let Some(found) = search.on_ack(&ack, false) {
                return (ms, found);
            }
        }
        panic!("nothing found in a second")
    }

    /// Packets sent at the rate arrive a round trip after it was set, and one more tells.
    #[test]
    fn the_rate_doubles_every_other_round_trip_until_it_does_not_arrive() {
        let mut search = Search::new(Rate::from_mbps(1.5), Time::from_millis(1000));
        let (ms, found) = play(&mut search, 1000);
        assert_eq!((ms, found), (1100, Found::More(Rate::from_mbps(3.0))));
        let (_, found) = play(&mut search, 1100);
        assert_eq!(found, Found::Capacity(Rate::from_mbps(1.9)), "95% of 2 Mbit/s");
    }
}
