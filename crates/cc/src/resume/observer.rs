//! What a connection observes of its path, to save it (RFC 9959 §3.1).

use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::Ack;
use crate::filter::{WindowedMaxRate, WindowedMin};
use crate::round::Round;

/// A round-trip time counts for so long (§4.1: "over the previous 5 minutes").
const RTT_WINDOW: Duration = Duration::from_secs(300);
/// And what was delivered for so long, and so many round trips, as in a hand-over
/// ([`PathView`](crate::migrate::PathView)).
const WINDOW: Duration = Duration::from_secs(10);
const ROUNDS: u64 = 10;

/// The volume that is acknowledged in a round trip, and the lowest round-trip time.
#[derive(Clone, Debug)]
pub(super) struct Observer {
    round: Round,
    /// When the present round trip began; `None` before the first.
    since: Option<Time>,
    acked: Bytes,
    rate: WindowedMaxRate,
    min_rtt: WindowedMin,
}

impl Observer {
    pub(super) fn new() -> Self {
        Self {
            round: Round::default(),
            since: None,
            acked: Bytes::ZERO,
            rate: WindowedMaxRate::new(),
            min_rtt: WindowedMin::new(),
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.min_rtt.update(ack.now, RTT_WINDOW, rtt);
        }
        self.acked += ack.acked;
        if !self.round.ends(ack) {
            return;
        }
        if let Some(since) = self.since
            && ack.now > since
        {
            // A round trip in which the sender was rate-limited is discounted, since the greatest
            // counts (§4.1).
            let window = WINDOW.max(ack.srtt * ROUNDS);
            self.rate.update(ack.now, window, self.acked / ack.now.since(since));
        }
        self.since = Some(ack.now);
        self.acked = Bytes::ZERO;
    }

    /// The volume of data acknowledged in one round trip (§3.1), and the round-trip time. The
    /// round trip is the lowest one: a round trip that waited in a queue delivered the queue's bytes
    /// as well, and §4.2.1 asks that the rate not exceed what was observed. So an overshoot of slow
    /// start does not count either (§4.1).
    pub(super) fn observed(&self) -> Option<(Bytes, Duration)> {
        let (rate, rtt): (Rate, Duration) = (self.rate.get()?, self.min_rtt.get()?);
        Some((rate * rtt, rtt))
    }
}
