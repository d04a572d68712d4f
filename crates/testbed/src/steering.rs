//! The loop in which Mortise, the selection of algorithms and that of Muses' trees run: a report of
//! each steered connection once an interval, read from shared memory, and what it decides written
//! back. No packet waits for it. When a connection is looked at, how its reports are completed and
//! how its algorithm is switched is what the agent runs in production (`trimtab-datapath`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trimtab_apps::Application;
use trimtab_datapath::{
    Asked, Attention, Datapath as _, Found, IDLE_FIRST, Link, Responses, remaining, until_report,
};
use trimtab_kernel::{Datapath, KernelLink};
use trimtab_qoe::Factors;
use trimtab_steer::{Action, Insight, Steer, Steerer};
use trimtab_units::{Duration, Time};

use crate::client::{LOOK, SharedApp};
use crate::clock::{Clock, hurry};

/// Reports are no closer together than this.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// What a steered connection is steered by at the moment, for others to read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedInsight(Arc<Mutex<Insight>>);

impl SharedInsight {
    /// As of the last report; all `None` before.
    pub(crate) fn get(&self) -> Insight {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, now: Insight) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// A connection that is steered.
#[derive(Debug)]
pub(crate) struct Steered {
    link: KernelLink,
    steerer: Steerer,
    app: SharedApp,
    insight: SharedInsight,
    /// When to look at it next; at first, when the client begins.
    next: Time,
    attention: Attention,
    responses: Responses,
    asked: Asked,
}

/// Steers until `stop`, or until all connections have ended.
pub(crate) fn steer(mut steered: Vec<Steered>, clock: Clock, stop: &AtomicBool) {
    hurry();
    while !stop.load(Ordering::Relaxed) && !steered.is_empty() {
        let next = steered.iter().map(|s| s.next).min().unwrap_or(Time::MAX);
        let now = clock.now();
        clock.sleep_until(next.min(now + LOOK));
        let now = clock.now();
        steered.retain_mut(|s| s.next > now || s.look(now).is_some());
    }
}

impl Steered {
    /// A connection that is steered from `start` on; what steers it shows itself in `insight`.
    pub(crate) fn new(
        link: KernelLink,
        steerer: Steerer,
        app: SharedApp,
        insight: SharedInsight,
        start: Time,
    ) -> Self {
        let (attention, responses, asked) = Default::default();
        Self { link, steerer, app, insight, next: start, attention, responses, asked }
    }

    /// Looks at the connection, makes the report that is due, and does what it leads to; `None` when
    /// the connection has ended.
    fn look(&mut self, now: Time) -> Option<()> {
        let responses = self.steerer.needs().responses;
        let wait = match self.attention.look(self.link.acks()?, responses, now) {
            Found::Quiet(wait) => {
                self.responses.on_quiet(trimtab_kernel::now());
                if responses && self.attention.pauses(now) {
                    self.link.begin(trimtab_kernel::now()).then_some(())?;
                }
                wait
            }
            Found::Woken => {
                self.link.begin(trimtab_kernel::now()).then_some(())?;
                IDLE_FIRST
            }
            Found::Active => self.report(now)?,
        };
        self.next = now + wait.max(INTERVAL_MIN);
        Some(())
    }

    /// Makes a report, and does what it leads to; how long until the next one.
    fn report(&mut self, now: Time) -> Option<Duration> {
        let factors: Factors = (&self.app.lock().factors(now)).into();
        let mut report = self.link.report(trimtab_kernel::now(), factors)?;
        if self.steerer.needs().responses {
            self.responses.complete(&mut report, remaining(&factors));
        }
        self.attention.on_report(report.srtt);
        // An error is the connection's end, which the next look sees.
        match self.steerer.on_report(&report) {
            Some(Action::Set(values)) => {
                for (knob, value) in values.iter() {
                    let _ = self.link.set(knob, value);
                }
            }
            Some(Action::Switch { to, how }) => {
                let is_its = |a: &&trimtab_datapath::Algorithm| a.name() == to.algorithm().name;
                // Whatever it chooses among was checked before it began.
                let algorithm = *Datapath::ALGORITHMS.iter().find(is_its)?;
                let _ = self.asked.switch(&self.link, &to, algorithm, how);
            }
            None => {}
        }
        self.insight.put(self.steerer.insight());
        Some(until_report(&self.steerer, report.srtt))
    }
}
