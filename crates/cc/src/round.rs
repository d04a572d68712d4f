//! Round trips counted by packets.

use trimtab_units::{Bytes, Time};

use crate::Ack;
use crate::migrate::HandOver;

/// A round trip: it ends once something sent after its start is acknowledged.
///
/// Two signs of that are used. Data beyond all that was delivered or in flight at the start was
/// delivered: exact even where many packets leave in the same instant, as long as none is lost. Or
/// the newest acknowledged packet left at a later time: right after losses, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    /// Delivered bytes when everything in flight at the start has arrived.
    end: Bytes,
    /// When it started.
    start: Time,
}

impl Round {
    /// The round that begins with a hand-over: what is in flight is the old algorithm's.
    pub(crate) fn beginning(from: &HandOver) -> Self {
        Self { end: from.delivered + from.inflight, start: from.now }
    }

    /// Whether this acknowledgement ends the round; the next one then starts with it. The first
    /// acknowledgement of a connection does.
    pub(crate) fn ends(&mut self, ack: &Ack) -> bool {
        let over = ack.delivered > self.end || ack.newest_sent_at > self.start;
        if over {
            self.end = ack.delivered + ack.inflight;
            self.start = ack.now;
        }
        over
    }
}
