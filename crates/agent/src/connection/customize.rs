//! A connection that the engine of a fleet configures: its part in the aggregate, out of the datapath's sums.

use std::net::IpAddr;

use trimtab_datapath::{Algorithm, Totals};
use trimtab_fleet_client::edge::{Key, Measured, Part};

/// A part, and what of the datapath's sums is in it.
#[derive(Clone, Debug)]
pub(crate) struct Customizing {
    pub(crate) part: Part,
    /// What the engine chose; none before it did, and where no connection can run that here.
    pub(crate) algorithm: Option<Algorithm>,
    /// What was taken in or left out until now, of all since the connection began.
    counted: Totals,
}

impl Customizing {
    /// `before` is not attributed: the connection ran another algorithm then.
    pub(crate) fn new(key: Key, client: IpAddr, before: Totals) -> Self {
        Self { part: Part::new(key).of_client(client), algorithm: None, counted: before }
    }

    /// Takes in what was measured since the last time.
    pub(crate) fn on_totals(&mut self, now: Totals) {
        let before = std::mem::replace(&mut self.counted, now);
        // Differences of sizes and durations end at zero.
        self.part.on_measured(&Measured {
            acked: now.acked - before.acked,
            lost: now.lost - before.lost,
            busy: now.busy - before.busy,
            rtt_sum: now.rtt_sum - before.rtt_sum,
            rtt_count: now.rtt_count.saturating_sub(before.rtt_count),
        });
    }

    /// Leaves out what was measured since the last time.
    pub(crate) fn leave_out(&mut self, now: Totals) {
        self.counted = now;
    }
}
