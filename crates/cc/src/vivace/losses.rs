//! What of the losses is random (§5.4: "persistence criteria"): an interval of some tens of packets
//! can not tell 3% from 6%.

use super::knobs::Values;
use crate::interval::Seen;

/// Each interval moves the average by this share of the difference.
const GAIN: f64 = 0.125;
/// So many standard errors around the average are noise.
const ERRORS: f64 = 2.0;
/// The brakes judge by so many packets, of which more than a tenth is lost once in ten thousand
/// times where 4% are; or by a quarter of them, when the share is twice as high.
const PACKETS: f64 = 200.0;
const PACKETS_FEW: f64 = 50.0;
/// The brakes' threshold (§5.3: "e.g., > 10%").
const BRAKE: f64 = 0.1;

/// The losses of the intervals before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    average: f64,
    /// Packets and losses since the brakes last judged.
    packets: f64,
    lost: f64,
}

impl Losses {
    pub(super) fn add(&mut self, seen: &Seen) {
        self.average += GAIN * (seen.loss - self.average);
        self.packets += seen.packets;
        self.lost += seen.loss * seen.packets;
    }

    /// Whether the last packets had so many losses that the rate is to be cut.
    pub(super) fn are_excessive(&mut self) -> bool {
        let share = self.lost / self.packets.max(1.0);
        let enough = self.packets >= PACKETS;
        let excessive =
            enough && share > BRAKE || self.packets >= PACKETS_FEW && share > 2.0 * BRAKE;
        if enough || excessive {
            self.begin_anew();
        }
        excessive
    }

    /// What is seen, with the average for a loss that does not differ from it by more than chance.
    pub(super) fn smoothed(&self, values: &Values, seen: Seen) -> Seen {
        let error2 = self.average * (1.0 - self.average) / seen.packets.max(1.0);
        let off = seen.loss - self.average;
        let chance = values.loss_filter > 0.0 && off * off <= ERRORS * ERRORS * error2;
        Seen { loss: if chance { self.average } else { seen.loss }, ..seen }
    }

    /// What was lost before a cut says nothing of the rate after it.
    pub(super) fn begin_anew(&mut self) {
        (self.packets, self.lost) = (0.0, 0.0);
    }
}
