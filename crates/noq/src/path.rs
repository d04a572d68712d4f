//! One path of a connection: noq's callbacks in, the events of `trimtab-cc` to the algorithm, and
//! the steering once an interval. Read first: [`trimtab_cc::transport`], RFC 9002 §7.
//!
//! noq reports the packets that an acknowledgement covers, then the losses that it reveals, then
//! congestion marks. An algorithm gets losses and marks first. So the acknowledgement waits
//! for the next callback that is none of these: noq asks for [`window`](Path::window) before it
//! sends again.

use std::time::Instant;

use trimtab_cc::resume::CarefulResume;
use trimtab_cc::transport::{Packet, Tracker};
use trimtab_cc::{Config as Limits, KnobError, set_knob};
use trimtab_qoe::{Factors, Model};
use trimtab_steer::{Driver, HostView, KnobValues};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::factory::Next;
use crate::memory::Place;
use crate::metrics::Metrics;
use crate::packets::Packets;
use crate::plan::Plan;
use crate::steering::Steering;

/// What leaves at once: a millisecond's worth at the pacing rate, at least two packets, at most 64
/// KB (draft-ietf-ccwg-bbr §5.6.3). The simulator does the same.
const QUANTUM_TIME: Duration = Duration::from_millis(1);
const QUANTUM_MAX: Bytes = Bytes::new(65_536);

/// A path, from the first packet on.
#[derive(Debug)]
pub(crate) struct Path {
    /// When it began: time zero.
    epoch: Instant,
    now: Time,
    limits: Limits,
    tracker: Tracker,
    packets: Packets,
    driver: Driver,
    pub(crate) steering: Steering,
    pub(crate) factors: Factors,
    /// Smoothed and lowest round-trip time; `None` before the first sample.
    rtt: Option<(Duration, Duration)>,
    /// noq's smoothed round-trip time before the present acknowledgement.
    smoothed: Duration,
    /// In flight before the present acknowledgement; `None` between acknowledgements.
    prior_inflight: Option<Bytes>,
    /// The acknowledgement that waits: whether the application limited the sender before it.
    waiting: Option<bool>,
    /// When the recovery period began, while it lasts (RFC 9002 §7.3.2).
    recovery: Option<Time>,
    /// The packet that was lost last, by the tracker's number.
    last_lost: Option<u64>,
    /// Where what it observes is left at the end.
    place: Option<Place>,
}

impl Path {
    /// The path with this number.
    pub(crate) fn new(next: &Next, number: u64, now: Instant, mtu: u16) -> Self {
        let Next { config, factors } = next;
        let limits = limits(mtu, config.seed.wrapping_add(number));
        let mut driver = config.plan.start().driver(&limits);
        let mut place = None;
        // A path that follows the first one begins afresh (RFC 9000 §9.4).
        if number == 0 {
            place = config.place(now);
            if let Some(how) = config.resumption(place.as_ref(), now) {
                driver = driver.resuming(&limits, how);
            }
        }
        let steering = Steering::new(&config.plan, &mut driver);
        Self {
            epoch: now,
            now: Time::ZERO,
            limits,
            tracker: Tracker::new(),
            packets: Packets::default(),
            driver,
            steering,
            factors: *factors,
            rtt: None,
            smoothed: Duration::ZERO,
            prior_inflight: None,
            waiting: None,
            recovery: None,
            last_lost: None,
            place,
        }
    }

    /// The path's time.
    fn at(&self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// A packet that elicits an acknowledgement left.
    pub(crate) fn on_sent(&mut self, now: Instant, size: Bytes, number: u64) {
        self.settle();
        self.now = self.at(now);
        self.steer();
        let (packet, sent) = self.tracker.on_sent(self.now, size);
        self.packets.insert(number, packet);
        self.driver.on_sent(&sent);
    }

    /// The window kept the sender from sending.
    pub(crate) fn on_window_limited(&mut self) {
        self.settle();
        self.tracker.on_window_limited();
    }

    /// The acknowledgement that arrives covers a packet. `smoothed` is noq's estimate before it.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        number: u64,
        smoothed: Duration,
    ) {
        self.settle();
        self.now = self.at(now);
        self.smoothed = smoothed;
        self.prior_inflight.get_or_insert(self.tracker.inflight());
        let sent_at = self.at(sent);
        if let Some(mut packet) = self.packets.take(number, sent_at) {
            self.tracker.on_acked(&mut packet);
        }
    }

    /// The acknowledgement covers no more packets; losses and marks may follow.
    pub(crate) fn on_end_acks(&mut self, now: Instant, app_limited: bool) {
        self.now = self.at(now);
        self.waiting = Some(app_limited);
    }

    /// A packet was declared lost. Packets that elicit no acknowledgement have no record.
    pub(crate) fn on_packet_lost(&mut self, now: Instant, number: u64) {
        self.now = self.at(now);
        let Some(mut packet) = self.packets.take_oldest(number) else { return };
        let place = packet.number();
        let new_range = self.last_lost.is_none_or(|last| last + 1 != place);
        self.last_lost = Some(place);
        if let Some(lost) = self.tracker.on_lost(self.now, &mut packet, new_range) {
            self.driver.on_packet_lost(&lost);
        }
    }

    /// The batch of losses is complete.
    pub(crate) fn on_losses(&mut self, now: Instant, persistent: bool) {
        self.now = self.at(now);
        let Some(loss) = self.tracker.end_losses(self.now) else { return };
        if self.recovery.is_none_or(|since| loss.newest_sent_at > since) {
            self.recovery = Some(self.now);
        }
        self.driver.on_loss(&loss);
        // RFC 9002 §7.6.
        if persistent {
            self.driver.on_timeout(&loss.timeout());
        }
    }

    /// The acknowledgement shows that the path marked packets (RFC 9002 §7.1).
    pub(crate) fn on_marked(&mut self, now: Instant) {
        self.now = self.at(now);
        self.driver.on_marked(&self.tracker.marked(self.now));
    }

    /// All packets of the last episode of losses arrived after all.
    pub(crate) fn on_spurious_loss(&mut self) {
        self.settle();
        self.driver.on_spurious_loss(self.now);
    }

    /// Packets have another size from now on (RFC 8899).
    pub(crate) fn on_mtu(&mut self, mtu: u16) {
        self.limits = limits(mtu, self.limits.seed);
        self.driver.on_mtu(&self.limits);
    }

    /// The congestion window.
    pub(crate) fn window(&mut self) -> Bytes {
        self.settle();
        self.driver.window()
    }

    /// The algorithm.
    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The most that leaves at once; `None` without a pacing rate.
    pub(crate) fn send_quantum(&self) -> Option<Bytes> {
        let rate = self.driver.pacing_rate()?;
        Some((rate * QUANTUM_TIME).max(self.limits.mss * 2).min(QUANTUM_MAX))
    }

    /// The highest delivery rate of the last 10 s.
    pub(crate) fn bandwidth(&self) -> Option<Rate> {
        self.driver.switcher()?.path().bandwidth()
    }

    /// Tells the algorithm of the acknowledgement that waits.
    fn settle(&mut self) {
        let Some(app_limited) = self.waiting.take() else { return };
        let (now, prior) = (self.now, self.prior_inflight.take());
        // RFC 9002 §7.8: a sender that waits for the pacer uses its window, if at least half of it.
        if app_limited {
            self.tracker.on_app_limited();
        } else if prior.is_some_and(|prior| prior * 2 >= self.driver.window()) {
            self.tracker.on_window_limited();
        }
        if let Some(sample) = self.tracker.rtt_sample(now) {
            self.take_rtt(sample);
        }
        let newest = self.tracker.newest().map(Packet::sent_at);
        if let Some((srtt, min_rtt)) = self.rtt
            && let Some(mut ack) = self.tracker.end_ack(now, srtt, min_rtt)
        {
            ack.in_recovery = self.recovery.is_some();
            self.driver.on_ack(&ack);
            self.driver.decide();
        }
        if newest > self.recovery {
            self.recovery = None;
        }
        if let Some(newest) = newest {
            self.discard_before(newest);
        }
        self.steer();
    }

    /// RFC 9002 §5.3. noq's own estimate takes this sample in later, less the peer's delay.
    fn take_rtt(&mut self, sample: Duration) {
        self.rtt = Some(match self.rtt {
            None => {
                self.steering.begin(self.now, sample, &mut self.driver);
                (sample, sample)
            }
            Some((_, min)) => ((self.smoothed * 7 + sample) / 8, min.min(sample)),
        });
    }

    /// Lets go of records that noq will never mention again: of packets whose keys were discarded
    /// (RFC 9002 §6.4), of lost probes of the packet size, and of the path before a rebinding.
    /// Whatever is that much older than an acknowledged packet would have been declared lost
    /// (§6.1.2).
    fn discard_before(&mut self, newest: Time) {
        let Some((srtt, _)) = self.rtt else { return };
        let old = srtt.max(self.now.since(newest)) * 2;
        let before = newest.min(Time::ZERO + self.now.since(Time::ZERO + old));
        while let Some(mut packet) = self.packets.take_stale(before) {
            if let Some(discarded) = self.tracker.on_discarded(self.now, &mut packet) {
                self.driver.on_discarded(&discarded);
            }
        }
    }

    /// Timers of the algorithm and reports to its steering. noq has no timer for controllers, so
    /// both wait for the next packet or acknowledgement.
    fn steer(&mut self) {
        let now = self.now;
        self.driver.on_timer(now);
        self.driver.decide();
        if !self.steering.is_due(now, &self.driver) {
            return;
        }
        let (srtt, min_rtt) = self.rtt.unwrap_or_default();
        let view = HostView {
            srtt,
            min_rtt,
            inflight: self.tracker.inflight(),
            mss: self.limits.mss,
            unsent: Bytes::ZERO,
            factors: self.factors,
        };
        self.steering.turn(now, &view, &self.limits, &mut self.driver);
    }

    /// Another scheme is to run, from the next callback on.
    pub(crate) fn change(&mut self, plan: &Plan) {
        self.steering.change(plan.clone());
    }

    /// The steering follows another model.
    pub(crate) fn set_model(&mut self, model: &Model) {
        self.steering.set_model(model);
    }

    /// Turns a knob of the algorithm that runs.
    pub(crate) fn set_knob(&mut self, name: &str, value: f64) -> Result<(), KnobError> {
        set_knob(self.driver.algorithm_mut(), name, value)
    }

    /// What is known of it now.
    pub(crate) fn metrics(&self) -> Metrics {
        let switcher = self.driver.switcher();
        Metrics {
            scheme: self.steering.label().to_owned(),
            algorithm: self.driver.name(),
            resume: self.driver.resume().map(CarefulResume::stage),
            pending: switcher.and_then(|s| s.pending()).map(|spec| spec.algorithm().name),
            knobs: KnobValues::of(self.driver.algorithm()),
            phase: self.driver.phase(),
            window: self.driver.window(),
            pacing_rate: self.driver.pacing_rate(),
            srtt: self.rtt.map(|(srtt, _)| srtt),
            min_rtt: self.rtt.map(|(_, min)| min),
            delivery_rate: self.bandwidth(),
            inflight: self.tracker.inflight(),
            sent: self.tracker.sent(),
            delivered: self.tracker.delivered(),
            lost: self.tracker.lost(),
            switches: self.steering.switches(&self.driver),
            reason: self.steering.reason(),
            refused: self.steering.refused(),
            insight: self.steering.insight(),
        }
    }
}

impl Drop for Path {
    /// noq lets go of a controller when its path or its connection is over.
    fn drop(&mut self) {
        self.settle();
        if let (Some(place), Some(state)) = (&self.place, self.driver.resume()) {
            place.leave(state, self.epoch, self.now);
        }
    }
}

/// What algorithms are built from (RFC 9002 §7.2), for packets of this size.
fn limits(mtu: u16, seed: u64) -> Limits {
    Limits { paced: true, ..Limits::with_mss(Bytes::new(mtu.into()), seed) }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
