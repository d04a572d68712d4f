//! A connection whose window and rate a policy decides: what Python classes and models share.

use std::fmt;

use trimtab_cc::{Ack, Config, CongestionControl, Idle, Knob, Loss, Phase, Plugin, Sent, Timeout};
use trimtab_units::{Bytes, Duration, Rate, Time};

use crate::answer;
use crate::fault::Fault;
use crate::monitor::{Applied, Every, Monitor, Observation};

/// A sender that has a rate and no window may have so many round trips of packets in flight, so
/// that the rate binds and not the window; as PCC Vivace does here.
const FLIGHT: f64 = 2.0;

/// What a policy wants to change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) window_bytes: Option<f64>,
    pub(crate) rate_mbps: Option<f64>,
}

/// What decides for a connection. An error ends that: it tells what went wrong, and what to do.
pub(crate) trait Policy: Clone + fmt::Debug + Send + Sync + 'static {
    /// A monitor interval has ended.
    fn on_interval(&mut self, seen: &Observation) -> Result<Answer, String>;

    /// New data was acknowledged.
    fn on_ack(&mut self, _ack: &Ack) -> Result<Answer, String> {
        Ok(Answer::default())
    }

    /// Packets were lost.
    fn on_loss(&mut self, _loss: &Loss) -> Result<Answer, String> {
        Ok(Answer::default())
    }

    /// The retransmission timer expired; `None` leaves the answer to the host.
    fn on_timeout(&mut self, _timeout: &Timeout) -> Result<Option<Answer>, String> {
        Ok(None)
    }

    /// A knob was turned.
    fn on_knob(&mut self, _index: usize, _value: f64) -> Result<(), String> {
        Ok(())
    }
}

/// What all connections of a policy share.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) every: Every,
    pub(crate) knobs: &'static [Knob],
    pub(crate) manages_recovery: bool,
    pub(crate) fault: &'static Fault,
}

/// A connection that a policy decides for.
#[derive(Clone, Debug)]
pub(crate) struct Decided<P> {
    /// `None` once it has failed: the window stays.
    policy: Option<P>,
    terms: &'static Terms,
    limits: Config,
    monitor: Monitor,
    window: Bytes,
    rate: Option<Rate>,
    /// Whether the last answer was a rate without a window.
    by_rate: bool,
    knobs: Vec<f64>,
}

impl<P: Policy> Decided<P> {
    pub(crate) fn new(policy: Result<P, String>, terms: &'static Terms, limits: &Config) -> Self {
        let mut decided = Self {
            policy: None,
            terms,
            limits: *limits,
            monitor: Monitor::new(terms.every, limits),
            window: limits.initial_window.max(limits.min_window),
            rate: None,
            by_rate: false,
            knobs: terms.knobs.iter().map(|knob| knob.default).collect(),
        };
        decided.policy = decided.kept(policy);
        decided
    }

    /// What came out well; a fault is noted, and the policy asked no more.
    fn kept<T>(&mut self, outcome: Result<T, String>) -> Option<T> {
        outcome
            .map_err(|what| {
                self.terms.fault.note(what);
                self.policy = None;
            })
            .ok()
    }

    /// Asks the policy, and does what it answers.
    fn ask(&mut self, what: &str, ask: impl FnOnce(&mut P) -> Result<Answer, String>) {
        let Some(policy) = self.policy.as_mut() else { return };
        let answer = ask(policy);
        let done = answer.and_then(|answer| self.apply(what, answer));
        self.kept(done);
    }

    fn apply(&mut self, what: &str, answer: Answer) -> Result<(), String> {
        if let Some(mbps) = answer.rate_mbps {
            self.rate = Some(answer::rate(what, mbps)?);
            self.by_rate = answer.window_bytes.is_none();
        }
        if let Some(bytes) = answer.window_bytes {
            self.window = answer::window(what, bytes, self.limits.min_window)?;
            self.by_rate = false;
        }
        self.follow_rate();
        Ok(())
    }

    /// Lets the window follow the rate where the policy has no window.
    fn follow_rate(&mut self) {
        if let Some(rate) = self.rate.filter(|_| self.by_rate) {
            let flight = (rate * self.monitor.srtt()).mul_f64(FLIGHT);
            self.window = flight.max(self.limits.initial_window);
        }
    }

    fn end_interval(&mut self, now: Time) {
        let applied = Applied { window: self.window, rate: self.rate };
        if let Some(seen) = self.monitor.take(now, applied) {
            self.ask("on_interval", |policy| policy.on_interval(&seen));
        }
    }

    /// What nothing else answers: the smallest window (RFC 9002 §7.6.2), or for a sender by rate
    /// that of the initial window.
    fn fall_back(&mut self) {
        if self.by_rate {
            let first = self.limits.initial_window / self.monitor.srtt();
            self.rate = self.rate.map(|rate| rate.min(first));
            self.follow_rate();
        } else {
            self.window = self.limits.min_window;
        }
    }
}

impl<P: Policy> CongestionControl for Decided<P> {
    fn on_established(&mut self, rtt: Duration) {
        self.monitor.on_established(rtt);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.monitor.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.monitor.on_ack(ack);
        self.ask("on_ack", |policy| policy.on_ack(ack));
        self.follow_rate();
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.monitor.on_loss(loss);
        self.ask("on_loss", |policy| policy.on_loss(loss));
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        let Some(policy) = self.policy.as_mut() else { return self.fall_back() };
        let answer = policy.on_timeout(timeout);
        let done = answer.and_then(|answer| match answer {
            Some(answer) => self.apply("on_timeout", answer),
            None => {
                self.fall_back();
                Ok(())
            }
        });
        self.kept(done);
    }

    fn on_mtu(&mut self, limits: &Config) {
        self.limits = Config { seed: self.limits.seed, ..*limits };
        self.monitor.resize(limits.mss);
        self.window = self.window.max(limits.min_window);
    }

    fn on_idle(&mut self, _idle: &Idle) {
        // What was measured is of another time (RFC 5681 §4.1).
        self.window = self.window.min(self.limits.initial_window);
    }

    fn on_timer(&mut self, now: Time) {
        self.end_interval(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.monitor.ends()
    }

    fn window(&self) -> Bytes {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn phase(&self) -> Phase {
        Phase::Steady
    }

    fn manages_recovery(&self) -> bool {
        self.terms.manages_recovery
    }

    fn knobs(&self) -> &'static [Knob] {
        self.terms.knobs
    }

    fn knob(&self, index: usize) -> Option<f64> {
        self.knobs.get(index).copied()
    }

    fn apply_knob(&mut self, index: usize, value: f64) {
        let Some(knob) = self.knobs.get_mut(index) else { return };
        *knob = value;
        let done = self.policy.as_mut().map_or(Ok(()), |policy| policy.on_knob(index, value));
        self.kept(done);
    }
}

impl<P: Policy> Plugin for Decided<P> {
    fn duplicate(&self) -> Box<dyn Plugin> {
        Box::new(self.clone())
    }
}
