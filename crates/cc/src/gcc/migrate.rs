//! GCC takes over, and hands over: its rate is its state, and probes find what is beyond it.

use trimtab_units::{Bytes, Duration, Time};

use super::Gcc;
use super::search::Search;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};

impl Migrate for Gcc {
    /// Its window is a bound; its target is what it sends at.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let rate = self.rate();
        let bandwidth = self.aimd.capacity().or(self.acked.rate());
        let window = rate * path.srtt();
        OperatingPoint { rate, bandwidth, ..OperatingPoint::of_window(window, path) }
    }

    fn take_over(&mut self, from: &HandOver) {
        let rate = from.rate.min(from.bandwidth);
        self.srtt = from.srtt;
        self.begin_with(rate, from.starved.then(|| Search::new(rate, from.now)));
        self.aimd.rtt = from.srtt;
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.srtt = srtt;
        if !srtt.is_zero() {
            let rate = window / srtt;
            self.begin_with(rate, Some(Search::new(rate, Time::ZERO)));
        }
    }

    /// At what is known to be carried, and no search from there: a rate has no threshold.
    fn retreat(&mut self, from: &HandOver, _ssthresh: Bytes) {
        self.take_over(&HandOver { rate: from.bandwidth, ..*from });
    }
}
