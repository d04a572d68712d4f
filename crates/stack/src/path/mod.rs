//! One path of a connection: the stack's callbacks in, the events of `trimtab-cc` to the algorithm,
//! and the steering once an interval. Read first: [`trimtab_cc::transport`], RFC 9002 §7.
//!
//! noq and quinn report the packets that an acknowledgement covers, then the losses that it reveals,
//! then congestion marks. An algorithm gets losses and marks first. So the acknowledgement waits
//! for the next callback that is none of these: the stack asks for [`window`](Path::window) before
//! it sends again.

mod by_arrival;
mod by_bytes;
mod by_newest;
mod by_packet;

pub use by_arrival::{Reported, ReportedFate};

use std::time::Instant;

use trimtab_cc::resume::CarefulResume;
use trimtab_cc::transport::{Packet, Reports, Tracker};
use trimtab_cc::{Config as Limits, KnobError, set_knob};
use trimtab_qoe::{Factors, Model};
use trimtab_steer::safety::Arm;
use trimtab_steer::{Driver, HostView, KnobValues};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::guarded::Guarded;
use crate::hints::{Hints, Responses};
use crate::memory::Place;
use crate::metrics::Metrics;
use crate::packets::Packets;
use crate::paths::Next;
use crate::plan::Plan;
use crate::qlog::{Sight, Trace};
use crate::stack::Pacing;
use crate::steering::Steering;

/// The most bytes of an initial window of more than two packets (RFC 9002 §7.2).
const INITIAL_WINDOW_MAX: Bytes = Bytes::new(14_720);
/// What leaves at once: a millisecond's worth at the pacing rate, at least two packets, at most 64
/// KB (draft-ietf-ccwg-bbr §5.6.3). The simulator does the same.
const QUANTUM_TIME: Duration = Duration::from_millis(1);
const QUANTUM_MAX: Bytes = Bytes::new(65_536);

/// Packets that a window which stands for a rate has more than the rate fills: those whose
/// acknowledgement the peer delays (RFC 9000 §13.2.2), and the part of one.
const SLACK: u64 = 2;

/// A path, from the first packet on.
///
/// A stack that reports packets by their numbers calls [`on_sent`](Self::on_sent),
/// [`on_acked`](Self::on_acked) and [`on_packet_lost`](Self::on_packet_lost). One that reports bytes
/// by the time of sending calls [`on_bytes_sent`](Self::on_bytes_sent),
/// [`on_bytes_acked`](Self::on_bytes_acked) and [`on_bytes_lost`](Self::on_bytes_lost). The rest is
/// common. For one acknowledgement the order is: acked, end of acknowledgement, losses, marks.
///
/// One that reports the newest packet of an acknowledgement and a sum calls
/// [`on_sent`](Self::on_sent), [`on_loss`](Self::on_loss) and
/// [`on_newest_acked`](Self::on_newest_acked). There the order is: losses, acked, marks, end.
///
/// One that carries media calls [`on_sent`](Self::on_sent) and, with all that feedback reports,
/// [`on_feedback`](Self::on_feedback).
#[derive(Debug)]
pub struct Path {
    /// When it began: time zero.
    epoch: Instant,
    now: Time,
    limits: Limits,
    pacing: Pacing,
    tracker: Tracker,
    packets: Packets,
    driver: Driver,
    pub(crate) steering: Steering,
    arm: Arm,
    factors: Factors,
    /// What of the open responses has not arrived.
    remaining: Bytes,
    pub(crate) responses: Responses,
    /// Smoothed and lowest round-trip time; `None` before the first sample.
    rtt: Option<(Duration, Duration)>,
    /// What a receiver of media adds, and the round-trip time of the present report without that.
    reports: Reports,
    sample: Option<Duration>,
    /// The stack's smoothed round-trip time before the present acknowledgement.
    smoothed: Duration,
    /// In flight before the present acknowledgement; `None` between acknowledgements.
    prior_inflight: Option<Bytes>,
    /// The acknowledgement that waits: whether the application limited the sender before it.
    waiting: Option<bool>,
    /// When the recovery period began, while it lasts (RFC 9002 §7.3.2).
    recovery: Option<Time>,
    /// How many acknowledgements reported marks.
    marked: u64,
    /// The packet that was lost last, by the tracker's number.
    last_lost: Option<u64>,
    /// The batch of losses that has not ended: whether it is persistent congestion.
    losing: Option<bool>,
    /// Where what it observes is left at the end.
    place: Option<Place>,
    /// Its log. Boxed, since few connections have one.
    trace: Option<Box<Trace>>,
}

/// The limits of a path whose packets have this size, those of RFC 9002 §7.2: the initial window is
/// 10 packets, but no more than 14,720 bytes or 2 packets.
fn limits(mtu: u16, seed: u64) -> Limits {
    let limits = Limits::with_mss(Bytes::new(mtu.into()), seed);
    let most = INITIAL_WINDOW_MAX.max(limits.mss * 2);
    Limits { paced: true, initial_window: limits.initial_window.min(most), ..limits }
}

impl Path {
    /// The path with this number.
    pub(crate) fn new(next: &Next, number: u64, now: Instant, mtu: u16) -> Self {
        let Next { settings, hints } = next;
        let seed = settings.seed.wrapping_add(number);
        let limits = Limits { clock: settings.clock(now), ..limits(mtu, seed) };
        let arm = settings.arm();
        let plan = if arm == Arm::Holdback { &*settings.baseline } else { &settings.plan };
        // A path that follows the first one begins afresh (RFC 9000 §9.4).
        let place = if number == 0 { settings.place(now) } else { None };
        let suited = place.as_ref().and_then(|place| place.suited(plan.label(), now));
        let remembering = suited.map(|suited| plan.clone().beginning_with(suited));
        let plan = remembering.as_ref().unwrap_or(plan);
        let mut driver = plan.start().driver(&limits);
        if number == 0
            && let Some(how) = settings.resumption(plan, place.as_ref(), now)
        {
            driver = driver.resuming(&limits, how);
        }
        let guard = settings.guard.filter(|_| arm == Arm::Treated);
        let guard =
            guard.map(|safety| Guarded::new(safety, plan.clone(), settings.baseline.clone()));
        let steering = Steering::new(plan, guard, settings.keeps_reports, &mut driver);
        let trace = settings.qlog.as_ref().map(|qlog| {
            let mut trace = qlog.begin(plan.label(), number, limits.clock);
            trace.on_begin(&limits, &driver, plan.label());
            Box::new(trace)
        });
        Self {
            epoch: now,
            now: Time::ZERO,
            limits,
            pacing: settings.traits.pacing,
            tracker: Tracker::new(),
            packets: Packets::default(),
            driver,
            steering,
            arm,
            factors: hints.factors(),
            remaining: hints.remaining(),
            responses: Responses::of(hints),
            rtt: None,
            reports: Reports::default(),
            sample: None,
            smoothed: Duration::ZERO,
            prior_inflight: None,
            waiting: None,
            recovery: None,
            marked: 0,
            last_lost: None,
            losing: None,
            place,
            trace,
        }
    }

    /// The path's time.
    fn at(&self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The window kept the sender from sending.
    pub fn on_window_limited(&mut self) {
        self.settle();
        self.tracker.on_window_limited();
    }

    /// An acknowledgement arrives, or covers another packet.
    fn begin_acked(&mut self, now: Instant, smoothed: Duration) {
        self.settle();
        self.now = self.at(now);
        self.smoothed = smoothed;
        self.prior_inflight.get_or_insert(self.tracker.inflight());
    }

    /// The acknowledgement covers no more packets; losses and marks may follow.
    pub fn on_end_acks(&mut self, now: Instant, app_limited: bool) {
        self.now = self.at(now);
        self.waiting = Some(app_limited);
    }

    /// Tracker and algorithm take a packet for lost.
    fn take_lost(&mut self, packet: &mut Packet) {
        let place = packet.number();
        let new_range = self.last_lost.is_none_or(|last| !(last..=last + 1).contains(&place));
        self.last_lost = Some(place);
        if let Some(lost) = self.tracker.on_lost(self.now, packet, new_range) {
            self.driver.on_packet_lost(&lost);
        }
    }

    /// The batch of losses is complete.
    pub fn on_losses(&mut self, now: Instant, persistent: bool) {
        self.now = self.at(now);
        self.end_losses(persistent);
    }

    fn end_losses(&mut self, persistent: bool) {
        let Some(loss) = self.tracker.end_losses(self.now) else { return };
        if self.recovery.is_none_or(|since| loss.newest_sent_at > since) {
            self.recovery = Some(self.now);
        }
        self.driver.on_loss(&loss);
        // RFC 9002 §7.6.
        if persistent {
            self.driver.on_timeout(&loss.timeout());
        }
        if let Some(trace) = &mut self.trace {
            trace.on_losses(self.now, &self.driver, persistent);
        }
    }

    /// The acknowledgement shows that the path marked packets (RFC 9002 §7.1). The newest packet that
    /// it covers left at `newest_sent`. Marks of another path, before this one began, say nothing of
    /// it (RFC 9000 §9.4). Stacks tell no number of marks, and no algorithm of Trimtab asks for one:
    /// all answer once in a round trip (RFC 9002 §7.3.1).
    pub fn on_marked(&mut self, now: Instant, newest_sent: Instant) {
        self.now = self.at(now);
        if newest_sent < self.epoch {
            return;
        }
        if let Some(persistent) = self.losing.take() {
            self.end_losses(persistent);
        }
        self.marked += 1;
        self.driver.on_marked(&self.tracker.marked(self.now));
        if let Some(trace) = &mut self.trace {
            trace.on_marked(self.now, &self.driver);
        }
    }

    /// All packets of the last episode of losses arrived after all.
    pub fn on_spurious_loss(&mut self) {
        self.settle();
        self.driver.on_spurious_loss(self.now);
        if let Some(trace) = &mut self.trace {
            trace.on_spurious_loss(self.now, &self.driver);
        }
    }

    /// Packets have another size from now on (RFC 8899).
    pub fn on_mtu(&mut self, mtu: u16) {
        let Limits { clock, seed, .. } = self.limits;
        self.limits = Limits { clock, ..limits(mtu, seed) };
        self.driver.on_mtu(&self.limits);
        if let Some(trace) = &mut self.trace {
            trace.on_mtu(self.now, &self.limits);
        }
    }

    /// What may be in flight. For a stack that paces by rate it is the algorithm's congestion window.
    /// Where the stack paces by window, it is at most what the algorithm's rate puts in flight in a
    /// round trip, so that the window makes the rate.
    pub fn window(&mut self) -> Bytes {
        self.settle();
        self.offered()
    }

    fn offered(&self) -> Bytes {
        let window = self.driver.window();
        match (self.pacing, self.driver.pacing_rate(), self.rtt) {
            (Pacing::ByWindow, Some(rate), Some((srtt, _))) => {
                let paced = rate * srtt + self.limits.mss * SLACK;
                window.min(paced.max(self.limits.min_window))
            }
            _ => window,
        }
    }

    /// The algorithm.
    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The algorithm's pacing rate; `None` leaves it to the stack.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.driver.pacing_rate()
    }

    /// The window below which the algorithm is in slow start, where it has one.
    pub fn ssthresh(&self) -> Option<Bytes> {
        self.driver.ssthresh()
    }

    /// The most that leaves at once; `None` without a pacing rate.
    pub fn send_quantum(&self) -> Option<Bytes> {
        let rate = self.driver.pacing_rate()?;
        Some((rate * QUANTUM_TIME).max(self.limits.mss * 2).min(QUANTUM_MAX))
    }

    /// The highest delivery rate of the last 10 s.
    pub fn bandwidth(&self) -> Option<Rate> {
        self.driver.switcher()?.path().bandwidth()
    }

    /// Tells the algorithm of the losses and of the acknowledgement that wait.
    fn settle(&mut self) {
        if let Some(persistent) = self.losing.take() {
            self.end_losses(persistent);
        }
        let Some(app_limited) = self.waiting.take() else { return };
        let (now, prior) = (self.now, self.prior_inflight.take());
        // RFC 9002 §7.8: a sender that waits for the pacer uses its window, if at least half of it.
        if app_limited {
            self.tracker.on_app_limited();
        } else if prior.is_some_and(|prior| prior * 2 >= self.offered()) {
            self.tracker.on_window_limited();
        }
        let sample = self.sample.take().or_else(|| self.tracker.rtt_sample(now));
        if let Some(sample) = sample {
            self.take_rtt(sample);
        }
        let newest = self.tracker.newest_sent_at();
        if let Some((srtt, min_rtt)) = self.rtt
            && let Some(mut ack) = self.tracker.end_ack(now, srtt, min_rtt)
        {
            ack.in_recovery = self.recovery.is_some();
            ack.rtt = ack.rtt.and(sample);
            self.driver.on_ack(&ack);
            self.driver.decide();
            let (inflight, rtt) = (self.tracker.inflight(), self.rtt);
            if let Some(trace) = &mut self.trace {
                trace.on_ack(now, &Sight { driver: &self.driver, inflight, rtt }, app_limited);
            }
        }
        if newest > self.recovery {
            self.recovery = None;
        }
        if let Some(newest) = newest {
            self.discard_before(newest);
        }
        self.steer();
    }

    /// RFC 9002 §5.3. The stack's own estimate takes this sample in later, less the peer's delay.
    fn take_rtt(&mut self, sample: Duration) {
        if let Some(trace) = &mut self.trace {
            trace.on_rtt(sample, self.rtt.map(|_| self.smoothed));
        }
        self.rtt = Some(match self.rtt {
            None => {
                self.steering.begin(self.now, sample, &mut self.driver);
                (sample, sample)
            }
            Some((_, min)) => ((self.smoothed * 7 + sample) / 8, min.min(sample)),
        });
    }

    /// Lets go of records that the stack will never mention again: of packets whose keys were
    /// discarded (RFC 9002 §6.4), of lost probes of the packet size, and of the path before a
    /// rebinding. Whatever is that much older than an acknowledged packet would have been declared lost
    /// (§6.1.2).
    fn discard_before(&mut self, newest: Time) {
        let Some((srtt, _)) = self.rtt else { return };
        let old = srtt.max(self.now.since(newest)) * 2;
        let before = newest.min(self.now - old);
        self.discard_older(before);
    }

    /// Whatever was sent before then leaves flight without a signal.
    fn discard_older(&mut self, before: Time) {
        while let Some(mut packet) = self.packets.take_stale(before) {
            if let Some(discarded) = self.tracker.on_discarded(self.now, &mut packet) {
                self.driver.on_discarded(&discarded);
            }
        }
    }

    /// Timers of the algorithm and reports to its steering. Stacks have no timer for controllers,
    /// so both wait for the next packet or acknowledgement.
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
            unsent: self.remaining - self.tracker.inflight(),
            factors: self.factors,
        };
        self.steering.turn(now, &view, &self.limits, &mut self.driver);
        if let Some(trace) = &mut self.trace {
            trace.on_turn(now, &mut self.steering, &self.driver);
        }
    }

    /// What the application says from now on.
    pub(crate) fn set_hints(&mut self, hints: &Hints) {
        (self.factors, self.remaining) = (hints.factors(), hints.remaining());
    }

    /// A response of this size arrived whole.
    pub(crate) fn on_response_end(&mut self, id: u64, size: Bytes) {
        let Some((wait, duration)) = self.responses.end(id, self.now) else { return };
        if let Some(collector) = self.driver.collector_mut() {
            collector.on_response_sent(wait);
            collector.on_response_arrived(size, duration);
        }
    }

    /// Another scheme is to run, from the next callback on. The holdback stays as it is.
    pub(crate) fn change(&mut self, plan: &Plan) {
        if self.arm == Arm::Treated {
            self.steering.change(plan.clone());
            if let Some(trace) = &mut self.trace {
                trace.on_change();
            }
        }
    }

    /// The steering follows another model.
    pub(crate) fn set_model(&mut self, model: &Model) {
        self.steering.set_model(model);
    }

    /// Turns a knob of the algorithm that runs. The holdback stays as it is.
    pub(crate) fn set_knob(&mut self, name: &str, value: f64) -> Result<(), KnobError> {
        if self.arm == Arm::Holdback {
            return Ok(());
        }
        set_knob(self.driver.algorithm_mut(), name, value)?;
        if let Some(trace) = &mut self.trace {
            trace.on_knob(self.now, name, value);
        }
        Ok(())
    }

    /// What is known of it now.
    pub(crate) fn metrics(&self) -> Metrics {
        let switcher = self.driver.switcher();
        Metrics {
            scheme: self.steering.label().to_owned(),
            arm: self.arm,
            resting: self.steering.resting(),
            fallbacks: self.steering.fallbacks(),
            algorithm: self.driver.name(),
            resume: self.driver.resume().map(CarefulResume::stage),
            pending: switcher.and_then(|s| s.pending()).map(|spec| spec.algorithm().name),
            knobs: KnobValues::of(self.driver.algorithm()),
            phase: self.driver.phase(),
            window: self.driver.window(),
            pacing_rate: self.driver.pacing_rate(),
            target: self.encoder_rate(),
            srtt: self.rtt.map(|(srtt, _)| srtt),
            min_rtt: self.rtt.map(|(_, min)| min),
            delivery_rate: self.bandwidth(),
            inflight: self.tracker.inflight(),
            sent: self.tracker.sent(),
            delivered: self.tracker.delivered(),
            lost: self.tracker.lost(),
            marked: self.marked,
            switches: self.steering.switches(&self.driver),
            reason: self.steering.reason(),
            refused: self.steering.refused(),
            insight: self.steering.insight(),
        }
    }
}

impl Drop for Path {
    /// The stack lets go of a controller when its path or its connection is over.
    fn drop(&mut self) {
        self.settle();
        if let (Some(place), Some(state)) = (&self.place, self.driver.resume()) {
            place.leave(state, self.epoch, self.now);
        }
        if let Some(place) = &self.place {
            let now = self.epoch + std::time::Duration::from_nanos(self.now.as_nanos());
            match self.steering.suited() {
                _ if self.steering.fallbacks() > 0 => place.suits_nothing(),
                Some(suited) => place.suits(self.steering.label(), suited, now),
                None => {}
            }
        }
        let (inflight, rtt) = (self.tracker.inflight(), self.rtt);
        if let Some(trace) = &mut self.trace {
            trace.on_end(self.now, &Sight { driver: &self.driver, inflight, rtt });
        }
    }
}

#[cfg(test)]
mod tests;
