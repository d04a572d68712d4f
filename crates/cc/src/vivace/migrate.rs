//! Vivace takes over: past slow start, at the rate of what ran before (migration.md §5, §7).

use trimtab_units::{Bytes, Duration, Rate};

use super::losses::Losses;
use super::{Climb, Vivace};
use crate::filter::WindowedMin;
use crate::interval::Intervals;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};

impl Migrate for Vivace {
    fn is_converged(&self) -> bool {
        !self.starting && self.rate > 0.0
    }

    /// Its window is a bound; its rate is what it sends at.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let rate = Rate::from_mbps(self.rate);
        let window = rate * path.srtt();
        OperatingPoint { rate, ..OperatingPoint::of_window(window, path) }
    }

    fn take_over(&mut self, from: &HandOver) {
        self.srtt = from.srtt;
        self.rtt_min = WindowedMin::new();
        self.rtt_min.update(from.min_rtt_at, super::RTT_MIN_WINDOW, from.min_rtt);
        self.intervals = Intervals::new();
        self.losses = Losses::default();
        self.climb = Climb::default();
        self.stuck = 0;
        self.timed_out = 0.0;
        self.excessive_since = None;
        // The queue of the one before it is no reason to brake at once.
        self.calm_at = from.now + from.srtt * 2;
        self.starting = from.starved;
        self.opening = false;
        self.start_window = from.window;
        self.start_utility = f64::NEG_INFINITY;
        self.forget(from.rate.min(from.bandwidth).mbps());
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.srtt = srtt;
        self.start_window = window;
        if !srtt.is_zero() {
            // What is under way was sent at another rate.
            self.intervals.clear();
            self.forget((window / srtt).mbps());
        }
    }

    /// At what is known to be carried, and no search from there: a rate has no threshold.
    fn retreat(&mut self, from: &HandOver, _ssthresh: Bytes) {
        self.take_over(&HandOver { rate: from.bandwidth, ..*from });
    }
}
