//! What passes the link towards the browser: waits in the queue, and losses.

use trimtab_emu::{Direction, Fate, Passage};
use trimtab_rtc::units::{Bytes, Duration};
use trimtab_sim::Histogram;

/// The packets of a run as the link sees them.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) packets: u64,
    pub(crate) dropped: u64,
    /// What left the queue.
    pub(crate) carried: Bytes,
    /// Waits in the queue.
    pub(crate) queue: Histogram,
    /// Waits since last asked, and how many these are.
    recent: (Duration, u64),
}

impl Watch {
    /// The mean wait since the last call, in milliseconds; NaN when no packet passed.
    pub(crate) fn take_queue_delay_ms(&mut self) -> f64 {
        let (total, count) = std::mem::take(&mut self.recent);
        if count == 0 { f64::NAN } else { total.as_millis_f64() / count as f64 }
    }

    /// A packet passes.
    pub(crate) fn see(&mut self, passage: &Passage<'_>) {
        if passage.direction != Direction::Down {
            return;
        }
        match passage.fate {
            Fate::Arrived => self.packets += 1,
            Fate::Dropped { .. } => self.dropped += 1,
            Fate::Delivered { departed, .. } => {
                self.carried += Bytes::new(passage.packet.len() as u64);
                let wait = departed.since(passage.arrived);
                self.queue.record(wait);
                self.recent = (self.recent.0 + wait, self.recent.1 + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trimtab_rtc::units::Time;

    use super::*;

    #[test]
    fn waits_and_losses_are_those_of_the_way_to_the_browser() {
        let (packet, mut watch) = ([0; 100], Watch::default());
        let mut see = |direction, fate| {
            let arrived = Time::from_millis(3);
            watch.see(&Passage { direction, packet: &packet, arrived, fate });
        };
        let fate = Fate::Delivered { at: Time::from_millis(19), departed: Time::from_millis(9) };
        see(Direction::Down, Fate::Arrived);
        see(Direction::Down, fate);
        see(Direction::Down, Fate::Dropped { at: Time::ZERO });
        see(Direction::Up, fate);
        assert_eq!((watch.packets, watch.dropped, watch.carried), (1, 1, Bytes::new(100)));
        assert_eq!(watch.queue.mean(), Duration::from_millis(6));
        assert!((watch.take_queue_delay_ms() - 6.0).abs() < 1e-9);
        assert!(watch.take_queue_delay_ms().is_nan(), "nothing since");
    }
}
