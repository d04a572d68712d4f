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
    /// Takes what was acknowledged, and the queueing delay of the standing round-trip time: one
    /// acknowledgement that is late shows a delay that no queue had, and no loss would be a full
    /// queue's for ten seconds.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1500);
    const SRTT: Duration = Duration::from_millis(100);

    /// Acknowledges so many packets at this time in ms, with this queueing delay in us.
    fn ack(blame: &mut Blame, now: u64, queueing: u64, packets: u64) {
        let queueing = Duration::from_micros(queueing);
        blame.on_ack(Time::from_millis(now), SRTT, queueing, MSS * packets, MSS);
    }

    /// One whose greatest queueing delay is 40 ms.
    fn swung() -> Blame {
        let mut blame = Blame::default();
        ack(&mut blame, 1, 40_000, 1);
        blame
    }

    /// Whether one packet that is lost next, at this queueing delay, is the queue's.
    fn is_full_at(blame: &Blame, now: u64, queueing: u64) -> bool {
        let mut blame = blame.clone();
        ack(&mut blame, now, queueing, 1);
        blame.on_loss(MSS)
    }

    #[test]
    fn a_queue_is_full_from_three_quarters_of_its_greatest_delay_on() {
        let blame = swung();
        assert!(is_full_at(&blame, 2, 40_000) && is_full_at(&blame, 2, 30_000));
        assert!(!is_full_at(&blame, 2, 29_999));
    }

    /// The jitter of a link that sends in whole milliseconds.
    #[test]
    fn a_queue_of_a_millisecond_is_never_full() {
        assert!(!is_full_at(&Blame::default(), 1, 1000));
        assert!(is_full_at(&Blame::default(), 1, 1001));
    }

    /// A radio loses as much at any delay, so that is no sign of the queue.
    #[test]
    fn a_full_queue_loses_more_than_twice_as_often() {
        // One of 100 packets while the queue was short.
        let mut blame = Blame::default();
        ack(&mut blame, 1, 0, 99);
        assert!(!blame.on_loss(MSS));
        ack(&mut blame, 2, 40_000, 98);
        assert!(!blame.on_loss(MSS), "1 of 99");
        assert!(!blame.on_loss(MSS), "2 of 100 are twice as much, and no more");
        assert!(blame.on_loss(MSS), "3 of 101");
        // What is lost while the queue is short is the link's, however often the full one loses.
        ack(&mut blame, 3, 0, 1);
        assert!(!blame.on_loss(MSS));
    }

    #[test]
    fn the_greatest_delay_is_that_of_the_last_ten_seconds() {
        let mut blame = swung();
        ack(&mut blame, 5001, 10_000, 1); // a second stretch begins
        assert!(!is_full_at(&blame, 10_001, 10_000), "the first one counts until that ends");
        assert!(is_full_at(&blame, 10_002, 10_000), "now 10 ms are the most");
        // Where ten round trips are longer than 5 s, they are a stretch.
        let mut far = swung();
        for now in [5001, 10_002] {
            let (now, second) = (Time::from_millis(now), Duration::from_secs(1));
            far.on_ack(now, second, Duration::from_millis(10), MSS, MSS);
        }
        assert!(!far.on_loss(MSS), "one has ended, of two");
    }

    /// A link that lost much in the past, and does not any more, is forgiven.
    #[test]
    fn tallies_halve_every_2000_packets() {
        let mut blame = swung();
        ack(&mut blame, 2, 0, 1000);
        blame.on_loss(MSS * 100);
        ack(&mut blame, 3, 0, 1000);
        assert_eq!((blame.otherwise.acked, blame.otherwise.lost), (MSS * 2000, MSS * 100));
        ack(&mut blame, 4, 0, 2);
        assert_eq!((blame.otherwise.acked, blame.otherwise.lost), (MSS * 1001, MSS * 50));
        assert_eq!(blame.when_full.acked, MSS / 2, "of both at once");
    }
}
