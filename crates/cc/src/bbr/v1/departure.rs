//! When the pacer lets the next packet go, and so how much is in the network by then
//! (`bbr_packets_in_net_at_edt`).

use trimtab_units::{Bytes, Duration, Rate, Time};

/// The pacer's earliest departure time, followed from what was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Departure {
    next: Time,
}

impl Departure {
    pub(super) fn on_sent(&mut self, now: Time, bytes: Bytes, rate: Rate) {
        self.next = self.next.max(now) + bytes / rate;
    }

    /// How long the next packet still waits.
    pub(super) fn wait(&self, now: Time) -> Duration {
        self.next.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pacer at 12 Mbit/s lets a packet go every millisecond, and saves up nothing while idle.
    #[test]
    fn departures_are_a_packet_time_apart() {
        let (at, ms) = (Time::from_millis, Duration::from_millis);
        let rate = Rate::from_mbps(12.0);
        let mut departure = Departure::default();
        for sent in 1..=3 {
            departure.on_sent(at(100), Bytes::new(1500), rate);
            assert_eq!(departure.wait(at(100)), ms(sent));
        }
        assert_eq!(departure.wait(at(102)), ms(1));
        assert_eq!(departure.wait(at(500)), Duration::ZERO);
        departure.on_sent(at(500), Bytes::new(3000), rate);
        assert_eq!(departure.wait(at(500)), ms(2));
    }
}
