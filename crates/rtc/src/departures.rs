//! When packets left that a receiver may ask for again.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Packets that are remembered, more than responders of rtc-interceptor keep (1024).
const MOST: usize = 2048;

/// A packet, by its stream and number.
type Key = (u32, u16);

/// When packets left last; `None` while one waits to leave again.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    left_at: BTreeMap<Key, Option<Instant>>,
    order: VecDeque<Key>,
}

impl Departures {
    /// A packet leaves.
    pub(crate) fn on_departure(&mut self, key: Key, now: Instant) {
        if self.left_at.insert(key, Some(now)).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST {
            self.order.pop_front().map(|oldest| self.left_at.remove(&oldest));
        }
    }

    /// Whether a packet that was asked for may leave again. Not while it waits for that, nor within
    /// a round trip since it left: the request may be older than the packet (libwebrtc,
    /// `RtpPacketHistory::GetPacketAndMarkAsPending`).
    pub(crate) fn is_due(&self, key: Key, now: Instant, rtt: Duration) -> bool {
        self.left_at.get(&key).is_none_or(|left_at| {
            left_at.is_some_and(|left| now.saturating_duration_since(left) >= rtt)
        })
    }

    /// A packet waits to leave again.
    pub(crate) fn wait(&mut self, key: Key) {
        if let Some(left_at) = self.left_at.get_mut(&key) {
            *left_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_again_once_in_a_round_trip() {
        let (mut departures, begin) = (Departures::default(), Instant::now());
        let rtt = Duration::from_millis(40);
        let at = |ms| begin + Duration::from_millis(ms);
        departures.on_departure((1, 7), at(0));
        assert!(!departures.is_due((1, 7), at(39), rtt), "the request may be older");
        assert!(departures.is_due((1, 7), at(40), rtt));
        departures.wait((1, 7));
        assert!(!departures.is_due((1, 7), at(200), rtt), "it waits");
        departures.on_departure((1, 7), at(200));
        assert!(!departures.is_due((1, 7), at(239), rtt));
        assert!(departures.is_due((1, 7), at(240), rtt));
        assert!(departures.is_due((2, 7), at(0), rtt), "nothing is known of another stream");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let (mut departures, now) = (Departures::default(), Instant::now());
        (0..3000).for_each(|number| departures.on_departure((1, number), now));
        assert_eq!((departures.order.len(), departures.left_at.len()), (MOST, MOST));
        assert!(!departures.left_at.contains_key(&(1, 951)));
        assert!(departures.left_at.contains_key(&(1, 952)));
    }
}
