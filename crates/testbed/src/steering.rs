//! The loop in which Mortise and the selection of Muses' trees run: a report of each steered
//! connection once an interval, read from shared memory, and what it decides written back. No
//! packet waits for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trimtab_apps::Application;
use trimtab_kernel::{Flow, Reporter};
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
    pub(crate) flow: Flow,
    pub(crate) steerer: Steerer,
    pub(crate) app: SharedApp,
    pub(crate) insight: SharedInsight,
    /// When the next report is due; at first, when the client begins.
    pub(crate) next: Time,
    /// `None` until then.
    pub(crate) reporter: Option<Reporter>,
}

/// Steers until `stop`, or until all connections have ended.
pub(crate) fn steer(mut steered: Vec<Steered>, clock: Clock, stop: &AtomicBool) {
    hurry();
    while !stop.load(Ordering::Relaxed) && !steered.is_empty() {
        let next = steered.iter().map(|s| s.next).min().unwrap_or(Time::MAX);
        let now = clock.now();
        clock.sleep_until(next.min(now + LOOK));
        let now = clock.now();
        steered.retain_mut(|s| s.next > now || s.report(now).is_some());
    }
}

impl Steered {
    /// Makes the report that is due, and does what it leads to; `None` when the connection has ended.
    fn report(&mut self, now: Time) -> Option<()> {
        let Some(reporter) = &mut self.reporter else {
            let reporter = self.reporter.insert(Reporter::new(&self.flow, trimtab_kernel::now())?);
            let interval = self.steerer.interval(reporter.last().srtt);
            self.next = now + interval.max(INTERVAL_MIN);
            return Some(());
        };
        let factors = (&self.app.lock().factors(now)).into();
        let report = reporter.report(&self.flow, trimtab_kernel::now(), factors)?;
        if let Some(Action::Set(values)) = self.steerer.on_report(&report) {
            for (knob, value) in values.iter() {
                self.flow.set(knob, value).ok()?;
            }
        }
        self.insight.put(self.steerer.insight());
        self.next = now + self.steerer.interval(report.srtt).max(INTERVAL_MIN);
        Some(())
    }
}
