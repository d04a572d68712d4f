//! The rate by what the detector says: additive or multiplicative increase, and a decrease to a
//! share of the throughput (libwebrtc `aimd_rate_control.cc`, `delay_based_bwe.cc`).

use libm::{ceil, pow};
use trimtab_units::{Bytes, Duration, Rate, Time};

use super::capacity::Capacity;
use super::knobs::Values;
use super::trend::Usage;

/// Round-trip time before any is known (`kDefaultRtt`).
const RTT: Duration = Duration::from_millis(200);
/// The rate grows to so much more than what arrives, and this (`throughput_based_limit`).
const THROUGHPUT_MORE: f64 = 1.5;
const THROUGHPUT_PLUS: Rate = Rate::from_bits_per_sec(10_000);
/// Least increase in a second (`kMinIncreaseRateBpsPerSecond`), and least multiplicative step.
const ADDITIVE_MIN: f64 = 4_000.0;
const STEP_MIN: Rate = Rate::from_bits_per_sec(1_000);
/// The additive increase is a packet of a frame in so long: 30 frames a second of packets of 1200
/// bytes, and twice the round-trip time with 100 ms for the detector
/// (`GetNearMaxIncreaseRateBpsPerSecond()`).
const FRAMES: f64 = 30.0;
const PACKET: f64 = 1200.0;
const DETECTOR: Duration = Duration::from_millis(100);
/// Overuse counts again after a round trip, but this at least and at most
/// (`TimeToReduceFurther()`).
const REDUCE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));

/// What the rate does.
///
/// ```text
///          normal                overuse
///   Hold ─────────▶ Increase ──────────────▶ decrease, and Hold
///     ▲                │
///     └────────────────┘ underuse; overuse decreases from Hold, too
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
}

/// The delay-based rate.
#[derive(Clone, Debug)]
pub(super) struct Aimd {
    rate: Rate,
    /// The last one known.
    throughput: Rate,
    capacity: Capacity,
    state: State,
    changed_at: Option<Time>,
    pub(super) rtt: Duration,
}

impl Aimd {
    /// At a start rate, which stands for the throughput until one is known (`SetStartBitrate()`).
    pub(super) fn new(rate: Rate) -> Self {
        let capacity = Capacity::default();
        Self { rate, throughput: rate, capacity, state: State::Hold, changed_at: None, rtt: RTT }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// What the link is known to carry.
    pub(super) fn capacity(&self) -> Option<Rate> {
        self.capacity.get()
    }

    /// Goes on at a rate that was measured (`SetEstimate()`).
    pub(super) fn set(&mut self, rate: Rate, now: Time, values: &Values) {
        self.rate = rate.max(least(values));
        self.changed_at = Some(now);
    }

    /// After a feedback (`DelayBasedBwe::MaybeUpdateEstimate()`). Whether there is a new rate.
    pub(super) fn update(
        &mut self,
        usage: Usage,
        throughput: Option<Rate>,
        now: Time,
        values: &Values,
    ) -> bool {
        self.throughput = throughput.unwrap_or(self.throughput);
        if usage == Usage::Over {
            let Some(throughput) = throughput else {
                // Nothing measured yet: half, at most once in a while.
                let due = self.may_reduce(now, self.rate.mul_f64(0.5));
                if due {
                    self.set(self.rate.mul_f64(0.5), now, values);
                }
                return due;
            };
            if !self.may_reduce(now, throughput) {
                return false;
            }
            self.decrease(values);
            self.state = State::Hold;
            self.changed_at = Some(now);
            return true;
        }
        match (usage, self.state) {
            (Usage::Under, _) => self.state = State::Hold,
            (_, State::Hold) => {
                self.state = State::Increase;
                self.changed_at = Some(now);
            }
            (_, State::Increase) => {}
        }
        if self.state == State::Increase {
            self.increase(now, values);
            self.changed_at = Some(now);
        }
        true
    }

    /// `TimeToReduceFurther()`.
    fn may_reduce(&self, now: Time, throughput: Rate) -> bool {
        let wait = self.rtt.clamp(REDUCE.0, REDUCE.1);
        self.changed_at.is_none_or(|at| now.since(at) >= wait)
            || throughput < self.rate.mul_f64(0.5)
    }

    /// `ChangeBitrate()`, `kRcIncrease`.
    fn increase(&mut self, now: Time, values: &Values) {
        self.capacity.doubt_above(self.throughput);
        // What the application does not use says nothing of a higher rate.
        let limit = self.throughput.mul_f64(THROUGHPUT_MORE) + THROUGHPUT_PLUS;
        if self.rate >= limit {
            return;
        }
        let elapsed = self.changed_at.map_or(1.0, |at| now.since(at).as_secs_f64());
        let more = if self.capacity.get().is_some() {
            let bps = self.additive() * values.step * elapsed;
            Rate::from_mbps(bps * 1e-6)
        } else {
            // `MultiplicativeRateIncrease()`.
            let factor = pow(values.growth, elapsed.min(1.0)) - 1.0;
            self.rate.mul_f64(factor).max(STEP_MIN)
        };
        self.rate = (self.rate + more).min(limit).max(least(values));
    }

    /// Additive increase in bit/s in a second (`GetNearMaxIncreaseRateBpsPerSecond()`).
    fn additive(&self) -> f64 {
        let frame = self.rate.bytes_per_sec() as f64 / FRAMES;
        let packet = Bytes::from_f64(frame / ceil(frame / PACKET).max(1.0));
        let response = (self.rtt + DETECTOR) * 2;
        (packet.bits() / response.as_secs_f64()).max(ADDITIVE_MIN)
    }

    /// `ChangeBitrate()`, `kRcDecrease`.
    fn decrease(&mut self, values: &Values) {
        let throughput = self.throughput;
        let mut rate = throughput.mul_f64(values.decrease);
        if let Some(capacity) = self.capacity.get().filter(|_| rate > self.rate) {
            rate = capacity.mul_f64(values.decrease);
        }
        self.capacity.doubt_below(throughput);
        self.capacity.on_overuse(throughput);
        self.rate = self.rate.min(rate).max(least(values));
    }
}

fn least(values: &Values) -> Rate {
    Rate::from_mbps(values.rate_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn mbps(rate: Rate) -> f64 {
        rate.mbps()
    }

    /// 8% in a second while the capacity is unknown; the first second begins with the first
    /// feedback.
    #[test]
    fn the_rate_grows_by_eight_percent_in_a_second() {
        let (mut aimd, values) = (Aimd::new(Rate::from_mbps(1.0)), Values::default());
        for i in 0..=40 {
            aimd.update(Usage::Normal, Some(Rate::from_mbps(1.0)), at(50 * i), &values);
        }
        assert!((mbps(aimd.rate()) - 1.08 * 1.08).abs() < 0.003, "{}", aimd.rate());
        // Not above 1.5 times what arrives and 10 kbit/s.
        for i in 41..2000 {
            aimd.update(Usage::Normal, Some(Rate::from_mbps(1.0)), at(50 * i), &values);
        }
        assert!((mbps(aimd.rate()) - 1.51).abs() < 1e-6, "{}", aimd.rate());
    }

    /// 0.85 of the throughput, and then a packet of a frame in twice 100 ms and the round-trip
    /// time: at 1.7 Mbit/s a frame is 7083 bytes in 6 packets of 1180; with 50 ms that is 31.5
    /// kbit/s in a second.
    #[test]
    fn an_overuse_leaves_a_share_and_the_rate_grows_slowly_from_there() {
        let (mut aimd, values) = (Aimd::new(Rate::from_mbps(3.0)), Values::default());
        aimd.rtt = Duration::from_millis(50);
        let throughput = Some(Rate::from_mbps(2.0));
        aimd.update(Usage::Over, throughput, at(0), &values);
        assert!((mbps(aimd.rate()) - 1.7).abs() < 1e-5, "{}", aimd.rate());
        assert!(!aimd.update(Usage::Over, throughput, at(49), &values), "once in a round trip");
        for i in 1..=21 {
            aimd.update(Usage::Normal, throughput, at(50 * i), &values);
        }
        let grown = mbps(aimd.rate()) - 1.7;
        assert!((grown - 0.0315).abs() < 0.001, "{grown}");
        aimd.update(Usage::Under, throughput, at(1100), &values);
        let held = aimd.rate();
        aimd.update(Usage::Normal, throughput, at(1150), &values);
        assert_eq!(aimd.rate(), held, "the clock of the increase begins anew");
    }

    #[test]
    fn the_knobs_turn_growth_decrease_and_step() {
        let place = |name| crate::Knob::place(Values::KNOBS, name);
        let mut values = Values::default();
        values.set(place("growth"), 1.2);
        values.set(place("decrease"), 0.9);
        values.set(place("step"), 4.0);
        let mut aimd = Aimd::new(Rate::from_mbps(2.0));
        aimd.rtt = Duration::from_millis(50);
        let throughput = Some(Rate::from_mbps(2.0));
        for i in 0..=20 {
            aimd.update(Usage::Normal, throughput, at(50 * i), &values);
        }
        assert!((mbps(aimd.rate()) - 2.4).abs() < 0.003, "{}", aimd.rate());
        aimd.update(Usage::Over, throughput, at(2000), &values);
        assert!((mbps(aimd.rate()) - 1.8).abs() < 1e-5, "{}", aimd.rate());
        for i in 0..=20 {
            aimd.update(Usage::Normal, throughput, at(2100 + 50 * i), &values);
        }
        // 7500 bytes are 7 packets of 1071: 28.6 kbit/s in a second, times 4.
        let grown = mbps(aimd.rate()) - 1.8;
        assert!((grown - 0.114).abs() < 0.008, "{grown}");
    }

    /// An overuse before half a second of arrivals halves the rate.
    #[test]
    fn an_overuse_before_any_throughput_halves() {
        let (mut aimd, values) = (Aimd::new(Rate::from_mbps(1.0)), Values::default());
        assert!(aimd.update(Usage::Over, None, at(100), &values));
        assert!(!aimd.update(Usage::Over, None, at(200), &values), "200 ms are not over");
        assert!(aimd.update(Usage::Over, None, at(300), &values));
        assert_eq!(aimd.rate(), Rate::from_mbps(0.25));
    }
}
