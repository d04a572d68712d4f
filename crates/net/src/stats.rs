//! What a link has done so far.

use trimtab_units::Bytes;

use crate::link::DropCause;

/// A number of packets and their bytes, overhead included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.packets += 1;
        self.bytes += bytes;
    }
}

/// What a link has done so far.
///
/// `arrivals` = `departures` + [`dropped`](Self::dropped) + what waits in the queue, in packets and in
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that were sent into the link, with those that it dropped at once.
    pub arrivals: Count,
    /// Packets that left the queue for the far end, with the one whose transmission has only begun.
    pub departures: Count,
    /// Packets that the far end has received, which is to say that [`Link::poll`](crate::Link::poll) gave.
    pub deliveries: Count,
    /// Drops by random loss.
    pub random_loss: Count,
    /// Drops by the policer.
    pub policer: Count,
    /// Drops because the queue was full.
    pub queue_full: Count,
    /// Drops by active queue management, and above the threshold for marks.
    pub aqm: Count,
    /// Packets that entered the queue with a mark (ECN).
    pub marked: Count,
}

impl LinkStats {
    /// The drops for one reason.
    pub fn drops(&self, cause: DropCause) -> Count {
        match cause {
            DropCause::RandomLoss => self.random_loss,
            DropCause::Policer => self.policer,
            DropCause::QueueFull => self.queue_full,
            DropCause::Aqm => self.aqm,
        }
    }

    /// All drops.
    pub fn dropped(&self) -> Count {
        let causes = [self.random_loss, self.policer, self.queue_full, self.aqm];
        Count {
            packets: causes.iter().map(|count| count.packets).sum(),
            bytes: causes.iter().map(|count| count.bytes).sum(),
        }
    }

    pub(crate) fn add_drop(&mut self, cause: DropCause, bytes: Bytes) {
        let count = match cause {
            DropCause::RandomLoss => &mut self.random_loss,
            DropCause::Policer => &mut self.policer,
            DropCause::QueueFull => &mut self.queue_full,
            DropCause::Aqm => &mut self.aqm,
        };
        count.add(bytes);
    }
}
