//! When to probe, and how fast (libwebrtc `probe_controller.cc`).

use trimtab_units::{Bytes, Duration, Rate, Time};

use super::knobs::Values;
use crate::Probe;

/// A probe's result comes within this, or never (`kMaxWaitingTimeForProbingResult`).
const WAIT: Duration = Duration::from_secs(1);
/// A result above this share of the probe's rate is reason for the next, at so many times the
/// result (`further_probe_threshold`, `further_exponential_probe_scale`).
const FURTHER: f64 = 0.7;
const FURTHER_SCALE: f64 = 2.0;
/// In application-limited regions, every so often at so many times the target
/// (`alr_probing_interval`, `alr_probe_scale`).
const ALR_EVERY: Duration = Duration::from_secs(5);
const ALR_SCALE: f64 = 2.0;
/// While losses limit the target, probes go no higher than so many times it
/// (`loss_limited_probe_scale`).
const LOSS_LIMITED_SCALE: f64 = 1.5;
/// A fall below this share of the target (`kBitrateDropThreshold`) is probed anew once the queue is
/// gone within so long (`kBitrateDropTimeout`), at this share of the target before
/// (`kProbeFractionAfterDrop`), where a result is expected within 5% (`kProbeUncertainty`); not
/// more often than this (`kMinTimeBetweenAlrProbes`), and only inside an application-limited region
/// or so soon after it (`kAlrEndedTimeout`).
const DROP: f64 = 0.66;
const DROP_WITHIN: Duration = Duration::from_secs(5);
const DROP_SCALE: f64 = 0.85;
const CERTAIN: f64 = 0.95;
const DROP_EVERY: Duration = Duration::from_secs(5);
const ALR_ENDED: Duration = Duration::from_secs(3);
/// Least packets and time of a probe (`min_probe_packets_sent`, `min_probe_duration`).
const PACKETS: u32 = 5;
const SPAN: Duration = Duration::from_millis(15);

/// Probes outside of such a region take at most this share of the target, were all of it padding
/// of packets of this size. They are by so much above the target, and not a multiple of it: then calls
/// that share a link come to equal rates. Ours.
const PADDING: f64 = 0.4;
const PADDED: Bytes = Bytes::new(1200);
const BUSY_MORE: Rate = Rate::from_bits_per_sec(2_000_000);

/// Where probing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was probed.
    Init,
    /// A result above this rate is reason for another probe.
    Waiting {
        above: Rate,
    },
    Complete,
}

/// Times and rates of the probes.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    state: State,
    /// Rates of probes that have not left yet.
    pending: [Option<Rate>; 2],
    next_id: u32,
    initiated_at: Time,
    estimate: Rate,
    /// The last large fall: when, and from what.
    dropped: Option<(Time, Rate)>,
    drop_probed_at: Time,
    alr_ended_at: Option<Time>,
    /// Whether losses limit the target, which grows.
    loss_limited: bool,
}

impl Probing {
    /// For a new connection; one that takes over (`known`) does not begin with probes.
    pub(super) fn new(target: Rate, known: bool) -> Self {
        Self {
            state: if known { State::Complete } else { State::Init },
            pending: [None; 2],
            next_id: 1,
            initiated_at: Time::ZERO,
            estimate: target,
            dropped: None,
            drop_probed_at: Time::ZERO,
            alr_ended_at: None,
            loss_limited: false,
        }
    }

    /// The probe that is to leave now. `calm`: the delay does not change, and feedback comes.
    pub(super) fn take(
        &mut self,
        now: Time,
        alr_since: Option<Time>,
        calm: bool,
        values: &Values,
    ) -> Option<Probe> {
        self.process(now, alr_since, calm, values);
        let rate = self.pending.iter_mut().find_map(Option::take)?;
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        Some(Probe { id, rate, packets: PACKETS, bytes: rate * SPAN })
    }

    /// `Process()`.
    fn process(&mut self, now: Time, alr_since: Option<Time>, calm: bool, values: &Values) {
        if matches!(self.state, State::Waiting { .. }) && now.since(self.initiated_at) > WAIT {
            self.state = State::Complete;
        }
        match self.state {
            State::Init => {
                // `InitiateExponentialProbing()`.
                let first = self.estimate.mul_f64(values.probe_first);
                let second = self.estimate.mul_f64(values.probe_second);
                let second = (values.probe_second > 0.0).then_some(second);
                self.initiate(now, [Some(first), second], true, values);
            }
            State::Complete if calm => {
                let (due, rate) = match alr_since {
                    Some(since) => {
                        let due = since.max(self.initiated_at) + ALR_EVERY;
                        (Some(due), self.estimate.mul_f64(ALR_SCALE))
                    }
                    None => (self.busy_due(values), self.estimate + BUSY_MORE),
                };
                if due.is_some_and(|due| now >= due) {
                    // Where the target itself were enough, a next one would need no result.
                    let further = rate.mul_f64(FURTHER) > self.estimate;
                    self.initiate(now, [Some(rate), None], further, values);
                }
            }
            State::Waiting { .. } | State::Complete => {}
        }
    }

    /// When to probe although the application uses the target.
    fn busy_due(&self, values: &Values) -> Option<Time> {
        if values.probe_busy <= 0.0 {
            return None;
        }
        let padding = PADDED * u64::from(PACKETS) / self.estimate.mul_f64(PADDING);
        let wait = Duration::from_secs_f64(1.0 / values.probe_busy).max(padding);
        Some(self.initiated_at + wait)
    }

    /// `InitiateProbing()`.
    fn initiate(&mut self, now: Time, rates: [Option<Rate>; 2], further: bool, values: &Values) {
        let mut most = Rate::from_mbps(values.probe_max());
        if self.loss_limited {
            most = most.min(self.estimate.mul_f64(LOSS_LIMITED_SCALE));
        }
        let last = rates[1].or(rates[0]).unwrap_or(most);
        self.pending = rates.map(|rate| rate.map(|rate| rate.min(most)));
        self.initiated_at = now;
        self.state = if further && last < most {
            State::Waiting { above: last.mul_f64(FURTHER) }
        } else {
            State::Complete
        };
    }

    /// There is a new target (`SetEstimatedBitrate()`).
    pub(super) fn on_target(
        &mut self,
        target: Rate,
        now: Time,
        calm: bool,
        loss_limited: bool,
        values: &Values,
    ) {
        self.loss_limited = loss_limited;
        if target < self.estimate.mul_f64(DROP) {
            self.dropped = Some((now, self.estimate));
        }
        self.estimate = target;
        if matches!(self.state, State::Waiting { above } if target > above) && calm {
            let rate = target.mul_f64(FURTHER_SCALE);
            self.initiate(now, [Some(rate), None], true, values);
        }
    }

    pub(super) fn on_alr_ended(&mut self, now: Time) {
        self.alr_ended_at = Some(now);
    }

    /// The queue that an overuse left is gone (`RequestProbe()`).
    pub(super) fn on_recovered(&mut self, now: Time, in_alr: bool, values: &Values) {
        let ended = self.alr_ended_at.is_some_and(|at| now.since(at) < ALR_ENDED);
        let Some((at, before)) = self.dropped.filter(|_| in_alr || ended) else { return };
        let rate = before.mul_f64(DROP_SCALE);
        let worth = rate.mul_f64(CERTAIN) > self.estimate && now.since(at) < DROP_WITHIN;
        let due = now.since(self.drop_probed_at) > DROP_EVERY;
        if worth && due && self.state == State::Complete {
            self.drop_probed_at = now;
            self.initiate(now, [Some(rate), None], false, values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn take(probing: &mut Probing, ms: u64) -> Option<f64> {
        let probe = probing.take(at(ms), None, true, &Values::default())?;
        // To a byte in a second.
        Some((probe.rate.mbps() * 1e5 + 0.5) as u64 as f64 / 1e5)
    }

    /// 3 and 6 times 300 kbit/s; above 0.7 of that, twice the result, and so on to 5 Mbit/s.
    #[test]
    fn probes_go_on_while_they_find_more() {
        let (mut probing, values) = (Probing::new(Rate::from_mbps(0.3), false), Values::default());
        let first = probing.take(at(0), None, true, &values).expect("a probe");
        assert_eq!((first.rate, first.packets), (Rate::from_mbps(0.9), 5));
        assert_eq!(first.bytes, first.rate * SPAN, "15 ms");
        let second = probing.take(at(0), None, true, &values).expect("another");
        assert!((second.rate.mbps() - 1.8).abs() < 1e-9 && second.id != first.id);
        assert_eq!(take(&mut probing, 1), None);
        probing.on_target(Rate::from_mbps(1.2), at(100), true, false, &values);
        assert_eq!(take(&mut probing, 100), None, "1.26 Mbit/s is 0.7 of it");
        probing.on_target(Rate::from_mbps(1.8), at(150), true, false, &values);
        assert_eq!(take(&mut probing, 150), Some(3.6));
        probing.on_target(Rate::from_mbps(3.6), at(300), true, false, &values);
        assert_eq!(take(&mut probing, 300), Some(5.0));
        probing.on_target(Rate::from_mbps(5.0), at(400), true, false, &values);
        assert_eq!(take(&mut probing, 10_000), None, "the most");
    }

    /// A second without a result ends it.
    #[test]
    fn a_result_that_is_late_counts_for_nothing() {
        let (mut probing, values) = (Probing::new(Rate::from_mbps(0.3), false), Values::default());
        while take(&mut probing, 0).is_some() {}
        assert_eq!(take(&mut probing, 1001), None);
        probing.on_target(Rate::from_mbps(1.8), at(1002), true, false, &values);
        assert_eq!(take(&mut probing, 1002), None);
    }

    #[test]
    fn an_application_limited_region_is_probed_every_five_seconds() {
        let (mut probing, values) = (Probing::new(Rate::from_mbps(1.0), true), Values::default());
        let mut take = |ms, calm| probing.take(at(ms), Some(at(2000)), calm, &values);
        assert_eq!(take(6999, true), None);
        assert_eq!(take(7000, false), None, "the delay grows");
        assert_eq!(take(7000, true).map(|probe| probe.rate.mbps()), Some(2.0));
        assert_eq!(take(11_999, true), None);
        assert!(take(12_000, true).is_some());
    }

    /// Twice a second at 1 Mbit/s. At 100 kbit/s five packets are 1.2 s of two fifths of it.
    #[test]
    fn an_application_that_uses_the_target_is_probed_where_the_knob_says_so() {
        let values = Values { probe_busy: 2.0, ..Values::default() };
        for (mbps, wait) in [(1.0, 500), (0.1, 1200)] {
            let mut probing = Probing::new(Rate::from_mbps(mbps), true);
            assert!(probing.take(at(wait - 1), None, true, &values).is_none());
            assert!(probing.take(at(wait), None, false, &values).is_none(), "the delay grows");
            let probe = probing.take(at(wait), None, true, &values).expect("a probe");
            assert!((probe.rate.mbps() - (mbps + 2.0)).abs() < 1e-9);
            assert!(probing.take(at(2 * wait - 1), None, true, &values).is_none());
        }
        // At 10 Mbit/s a probe of 12 does not show that 20 are worth one.
        let values = Values { rate_max: 50.0, ..values };
        let mut probing = Probing::new(Rate::from_mbps(10.0), true);
        assert!(probing.take(at(500), None, true, &values).is_some());
        probing.on_target(Rate::from_mbps(10.0), at(525), true, false, &values);
        assert!(probing.take(at(525), None, true, &values).is_none());
        let never = Values::default();
        assert!(
            Probing::new(Rate::from_mbps(1.0), true).take(at(9999), None, true, &never).is_none()
        );
    }

    /// From 2 to 1 Mbit/s is a fall below 0.66; 0.85 of 2 is probed.
    #[test]
    fn a_large_fall_is_probed_once_the_queue_is_gone() {
        let (mut probing, values) = (Probing::new(Rate::from_mbps(2.0), true), Values::default());
        probing.on_target(Rate::from_mbps(1.0), at(6000), true, false, &values);
        probing.on_recovered(at(6500), false, &values);
        assert_eq!(take(&mut probing, 6500), None, "the application used it all");
        probing.on_alr_ended(at(6600));
        probing.on_recovered(at(6700), false, &values);
        assert_eq!(take(&mut probing, 6700), Some(1.7));
        probing.on_recovered(at(6800), true, &values);
        assert_eq!(take(&mut probing, 6800), None, "not again at once");
    }
}
