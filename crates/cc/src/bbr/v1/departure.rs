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
