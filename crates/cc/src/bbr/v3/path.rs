//! What the flow believes of the path: the largest delivery rate of two cycles and the smallest
//! round-trip time, with the schedule of ProbeRTT.

use trimtab_units::{Duration, Rate, Time};

/// `BBR.max_bw`: the largest sample of this ProbeBW cycle and the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    previous: Rate,
    current: Rate,
}

impl MaxBw {
    /// What the connection measured, as the sample of this cycle.
    pub(super) fn known(rate: Rate) -> Self {
        Self { previous: Rate::ZERO, current: rate }
    }

    pub(super) fn get(&self) -> Rate {
        self.previous.max(self.current)
    }

    /// `UpdateMaxBw()`: a sample that the application limited counts only if it beats the estimate.
    pub(super) fn update(&mut self, rate: Rate, app_limited: bool) {
        if !app_limited || rate >= self.get() {
            self.current = self.current.max(rate);
        }
    }

    /// `AdvanceMaxBwFilter()`. A cycle without a sample says nothing, so the one before it stays.
    pub(super) fn advance(&mut self) {
        if !self.current.is_zero() {
            self.previous = self.current;
            self.current = Rate::ZERO;
        }
    }
}

/// `BBR.min_rtt` and `BBR.probe_rtt_min_delay`: the same minimum over two windows, the shorter of
/// which schedules ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    value: Option<Duration>,
    stamp: Time,
    recent: Option<Duration>,
    recent_stamp: Time,
    started: bool,
}

impl MinRtt {
    /// What the connection measured, for windows that begin now; the shorter has no sample yet.
    pub(super) fn known(value: Duration, now: Time) -> Self {
        Self { value: Some(value), stamp: now, recent: None, recent_stamp: now, started: true }
    }

    pub(super) fn get(&self) -> Option<Duration> {
        self.value
    }

    /// The windows begin, unless they have.
    pub(super) fn start(&mut self, now: Time) {
        if !self.started {
            self.started = true;
            (self.stamp, self.recent_stamp) = (now, now);
        }
    }

    /// ProbeRTT is over: the next is a whole interval away.
    pub(super) fn schedule(&mut self, now: Time) {
        self.recent_stamp = now;
    }

    /// `UpdateMinRTT()`. Returns whether ProbeRTT is due. `MinRTTFilterLen` is twice
    /// `ProbeRTTInterval`, so that the filter spans two ProbeRTTs.
    pub(super) fn update(&mut self, now: Time, rtt: Option<Duration>, interval: Duration) -> bool {
        let due = now > self.recent_stamp + interval;
        if let Some(rtt) = rtt
            && (due || self.recent.is_none_or(|recent| rtt < recent))
        {
            self.recent = Some(rtt);
            self.recent_stamp = now;
        }
        let expired = now > self.stamp + interval * 2;
        if let Some(recent) = self.recent
            && (expired || self.value.is_none_or(|value| recent < value))
        {
            self.value = Some(recent);
            self.stamp = self.recent_stamp;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_sample_lives_for_two_cycles() {
        let rate = Rate::from_mbps;
        let mut max = MaxBw::default();
        max.update(rate(10.0), false);
        max.update(rate(5.0), true);
        assert_eq!(max.get(), rate(10.0));
        max.advance();
        max.update(rate(4.0), false);
        assert_eq!(max.get(), rate(10.0), "the cycle before still counts");
        max.advance();
        assert_eq!(max.get(), rate(4.0));
        max.advance();
        assert_eq!(max.get(), rate(4.0), "an empty cycle forgets nothing");
        max.update(rate(6.0), true);
        assert_eq!(max.get(), rate(6.0), "application-limited, but more than was believed");
    }

    #[test]
    fn the_filter_spans_two_probe_intervals() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let interval = Duration::from_secs(5);
        let mut min = MinRtt::default();
        min.start(Time::ZERO);
        assert!(!min.update(Time::from_millis(100), ms(40), interval));
        assert!(!min.update(Time::from_millis(5000), ms(60), interval));
        assert!(min.update(Time::from_millis(5101), ms(60), interval), "due after 5 s");
        assert_eq!(min.get(), ms(40), "remembered for 10 s");
        min.update(Time::from_millis(10_101), ms(70), interval);
        assert_eq!(min.get(), ms(60), "the smallest of the last interval takes over");
    }
}
