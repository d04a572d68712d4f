//! What a sender of media spends on packets that were asked for again (RFC 4585 §6.2.1).

use trimtab_units::{Bytes, Duration, Rate, Time};

/// Time is counted in slots of this length, for a second.
const SLOT: Duration = Duration::from_millis(50);
const SLOTS: usize = 20;
/// What was asked for is counted over half a second (libwebrtc `rtp_transport_controller_send.cc`
/// `kRetransmitWindowSize`).
const ASKED_SLOTS: usize = 10;
/// The most of its rate that an encoder leaves to retransmissions (libwebrtc
/// `fec_controller_default.cc` `kProtectionOverheadRateThreshold`).
const SHARE_MAX: f64 = 0.5;

/// The retransmissions of a sender, as libwebrtc limits them.
///
/// Within half a second no more is sent again than the target lets pass (`RTPSender::ReSendPacket()`).
/// What is sent again comes out of the encoder's bitrate (`FecControllerDefault::UpdateFecRates()`).
/// Without the second, a queue that overflows is filled by what it dropped, and stays full.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repairs {
    /// In a ring, by the number of the slot.
    slots: [Slot; SLOTS],
    newest: u64,
}

/// What happened in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sent: Bytes,
    again: Bytes,
    asked: Bytes,
}

impl Repairs {
    /// Whether a packet that was asked for may be sent again, at this target. If so, it counts.
    pub fn ask(&mut self, now: Time, bytes: Bytes, target: Rate) -> bool {
        self.advance(now);
        let asked = self.sum(ASKED_SLOTS, |slot| slot.asked);
        let may = asked + bytes <= target * (SLOT * ASKED_SLOTS as u64);
        if may {
            self.slot().asked += bytes;
        }
        may
    }

    /// A packet of video left, for the first time or `again`.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, again: bool) {
        self.advance(now);
        let slot = self.slot();
        slot.sent += bytes;
        if again {
            slot.again += bytes;
        }
    }

    /// The share of what left in the second before the last packet that had left before, 0 to 0.5.
    /// An encoder leaves it out of its bitrate.
    pub fn share(&self) -> f64 {
        let sent = self.sum(SLOTS, |slot| slot.sent);
        let again = self.sum(SLOTS, |slot| slot.again);
        if sent.is_zero() { 0.0 } else { (again.as_f64() / sent.as_f64()).min(SHARE_MAX) }
    }

    /// Forgets what is older than a second.
    fn advance(&mut self, now: Time) {
        let number = now.as_nanos() / SLOT.as_nanos();
        let from = self.newest.max(number.saturating_sub(SLOTS as u64));
        for passed in from..number {
            self.slots[(passed + 1) as usize % SLOTS] = Slot::default();
        }
        self.newest = self.newest.max(number);
    }

    fn slot(&mut self) -> &mut Slot {
        &mut self.slots[self.newest as usize % SLOTS]
    }

    /// Over the newest slots.
    fn sum(&self, count: usize, of: impl Fn(&Slot) -> Bytes) -> Bytes {
        let newest = self.newest as usize % SLOTS;
        (0..count).map(|age| of(&self.slots[(newest + SLOTS - age) % SLOTS])).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1250);

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// 1 Mbit/s is 62.5 kB in half a second: 50 packets.
    #[test]
    fn no_more_is_sent_again_than_the_target() {
        let (mut repairs, target) = (Repairs::default(), Rate::from_mbps(1.0));
        let asked = |repairs: &mut Repairs, from: u64| {
            (0..80).filter(|i| repairs.ask(ms(from + i), PACKET, target)).count()
        };
        assert_eq!(asked(&mut repairs, 0), 50);
        assert_eq!(asked(&mut repairs, 400), 0, "half a second is not over");
        assert_eq!(asked(&mut repairs, 600), 50);
    }

    #[test]
    fn the_encoder_leaves_at_most_half_to_what_is_sent_again() {
        let mut repairs = Repairs::default();
        assert_eq!(repairs.share(), 0.0);
        (0..100).for_each(|i| repairs.on_sent(ms(10 * i), PACKET, i % 4 == 0));
        assert!((repairs.share() - 0.25).abs() < 1e-9, "{}", repairs.share());
        // The half second that follows has nothing else.
        (100..150).for_each(|i| repairs.on_sent(ms(10 * i), PACKET, true));
        assert_eq!(repairs.share(), 0.5);
        repairs.on_sent(ms(9000), PACKET, false);
        assert_eq!(repairs.share(), 0.0, "what is older than a second is forgotten");
    }
}
