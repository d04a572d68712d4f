//! Tells the losses of a full queue from those of the link, by the delay at which they come.
//!
//! A queue drops packets when it is full, and then the delay is at its greatest. A radio drops them
//! at any delay. So a loss is the queue's where the delay is near its greatest of late, and where
//! packets are lost there more often than at other times.

use trimtab_units::{Bytes, Duration, Time};

use super::mode::EMPTY_SLACK;

/// The greatest queueing delay is that of the last one to two stretches of this length …
const STRETCH: Duration = Duration::from_secs(5);
/// … and of so many round trips at least.
const STRETCH_ROUNDS: u64 = 10;
/// A queue is full from this share of the greatest delay on: 3 of 4.
const FULL: (u64, u64) = (3, 4);
/// Losses are the queue's where more than so many times as much is lost while it is full.
const OFTEN: u128 = 2;
/// Both tallies halve when one of them has so many packets: what the link does changes.
const PACKETS: u64 = 2000;

/// What is known of the losses of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Blame {
    /// The greatest queueing delay of the last stretch, and of this one.
    most: [Duration; 2],
    stretch_from: Time,
    full: bool,
    /// While the queue was full, and while it was not.
    when_full: Tally,
    otherwise: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    lost: Bytes,
    acked: Bytes,
}

impl Tally {
    fn seen(&self) -> u128 {
        u128::from((self.lost + self.acked).get().max(1))
    }

    fn halve(&mut self) {
        *self = Self { lost: self.lost / 2, acked: self.acked / 2 };
    }
}

impl Blame {
    /// Takes what was acknowledged, and the queueing delay that it shows.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        srtt: Duration,
        queueing: Duration,
        acked: Bytes,
        mss: Bytes,
    ) {
        if now.since(self.stretch_from) > STRETCH.max(srtt * STRETCH_ROUNDS) {
            self.most = [self.most[1], Duration::ZERO];
            self.stretch_from = now;
        }
        self.most[1] = self.most[1].max(queueing);
        let most = self.most[0].max(self.most[1]);
        self.full = queueing > EMPTY_SLACK && queueing * FULL.1 >= most * FULL.0;
        self.tally().acked += acked;
        if self.when_full.acked.max(self.otherwise.acked) > mss * PACKETS {
            self.when_full.halve();
            self.otherwise.halve();
        }
    }

    /// Packets were lost. Whether by a full queue.
    pub(super) fn on_loss(&mut self, lost: Bytes) -> bool {
        self.tally().lost += lost;
        let (full, otherwise) = (self.when_full, self.otherwise);
        let when_full = u128::from(full.lost.get()) * otherwise.seen();
        self.full && when_full > OFTEN * u128::from(otherwise.lost.get()) * full.seen()
    }

    fn tally(&mut self) -> &mut Tally {
        if self.full { &mut self.when_full } else { &mut self.otherwise }
    }
}
