//! Allegro takes over: past its starting phase, at the rate of what ran before.

use trimtab_units::{Bytes, Duration, Rate};

use super::{Allegro, State};
use crate::interval::Intervals;
use crate::migrate::{HandOver, Migrate, OperatingPoint, PathView};

impl Migrate for Allegro {
    fn is_converged(&self) -> bool {
        !matches!(self.state, State::Starting { .. }) && self.rate > 0.0
    }

    /// Its window is a bound; its rate is what it sends at.
    fn operating_point(&self, path: &PathView) -> OperatingPoint {
        let rate = Rate::from_mbps(self.rate);
        let window = rate * path.srtt();
        OperatingPoint { rate, ..OperatingPoint::of_window(window, path) }
    }

    fn take_over(&mut self, from: &HandOver) {
        self.srtt = from.srtt;
        self.intervals = Intervals::new();
        self.timed_out = 0.0;
        let rate = from.rate.min(from.bandwidth).mbps();
        if from.starved {
            self.state = State::Starting { utility: f64::NEG_INFINITY };
            self.go(rate);
        } else {
            self.decide(rate, self.values.epsilon_min);
        }
    }

    fn inherit(&mut self, window: Bytes, srtt: Duration) {
        self.srtt = srtt;
        if !srtt.is_zero() {
            // What is under way was sent at another rate.
            self.intervals.clear();
            self.go((window / srtt).mbps());
        }
    }

    /// At what is known to be carried, and no search from there: a rate has no threshold.
    fn retreat(&mut self, from: &HandOver, _ssthresh: Bytes) {
        self.take_over(&HandOver { rate: from.bandwidth, ..*from });
    }
}
