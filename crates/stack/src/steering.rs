//! What steers a path: reports once an interval, the actions that they lead to, and changes that
//! the caller asks for.

use std::collections::VecDeque;
use std::mem;

use trimtab_cc::migrate::{HandOver, Migrate, Switch, Switcher};
use trimtab_cc::resume::Resumption;
use trimtab_cc::{Config as Limits, Spec};
use trimtab_qoe::Model;
use trimtab_steer::safety::{Harm, Verdict};
use trimtab_steer::{
    Action, ActionError, Driver, HostView, Insight, Needs, Reason, Report, Steer, Steerer,
};
use trimtab_units::{Duration, Time};

use crate::guarded::{Guarded, deviates, untouched};
use crate::plan::{Plan, Start};

/// How often a path reports that nothing steers.
const UNSTEERED: Duration = Duration::from_millis(100);

/// So many reports wait for the caller; the oldest give way.
pub(crate) const REPORTS_MAX: usize = 64;

/// The steering of a path.
#[derive(Debug)]
pub(crate) struct Steering {
    label: String,
    steerer: Option<Steerer>,
    /// The scheme that is to run from the next callback on.
    wanted: Option<Plan>,
    /// What steers once the algorithm that it begins with has taken over.
    arriving: Option<Option<Steerer>>,
    /// How often drivers that were replaced had switched, their replacements included.
    switches: u64,
    reason: Option<Reason>,
    refused: u64,
    /// What it asked for at the last report, and whether that was refused.
    acted: Option<(Action, bool)>,
    /// Boxed, since few connections have one.
    guard: Option<Box<Guarded>>,
    last: Option<Report>,
    /// Whether somebody takes reports.
    keeps: bool,
    waiting: VecDeque<Report>,
}

impl Steering {
    /// Of a path that begins with this plan, and keeps reports for the caller or not.
    pub(crate) fn new(
        plan: &Plan,
        guard: Option<Guarded>,
        keeps: bool,
        driver: &mut Driver,
    ) -> Self {
        let steering = Self {
            label: plan.label().to_owned(),
            steerer: plan.start().steerer(),
            wanted: None,
            arriving: None,
            switches: 0,
            reason: None,
            refused: 0,
            acted: None,
            guard: guard.map(Box::new),
            last: None,
            keeps,
            waiting: VecDeque::new(),
        };
        // The first report is due when the first round trip is known.
        driver.report_from(Time::ZERO, Duration::MAX, steering.needs());
        steering
    }

    fn needs(&self) -> Needs {
        self.steerer.as_ref().map_or_else(Needs::default, Steer::needs)
    }

    fn interval(&self, srtt: Duration) -> Duration {
        let asked = self.steerer.as_ref().map_or(UNSTEERED, |steerer| steerer.interval(srtt));
        self.guard.as_ref().map_or(asked, |guard| guard.interval(asked))
    }

    /// The first round trip is known: intervals begin.
    pub(crate) fn begin(&self, now: Time, srtt: Duration, driver: &mut Driver) {
        driver.report_after(now, self.interval(srtt));
    }

    /// Another scheme is to run.
    pub(crate) fn change(&mut self, plan: Plan) {
        self.wanted = Some(plan);
    }

    /// The steering, and those that are to come, follow another model.
    pub(crate) fn set_model(&mut self, model: &Model) {
        let arriving = self.arriving.as_mut().and_then(Option::as_mut);
        for steerer in self.steerer.iter_mut().chain(arriving) {
            steerer.on_model(model);
        }
        if let Some(wanted) = &mut self.wanted {
            wanted.set_model(model);
        }
        if let Some(guard) = &mut self.guard {
            guard.set_model(model);
        }
    }

    /// Whether there may be something to do.
    pub(crate) fn is_due(&self, now: Time, driver: &Driver) -> bool {
        self.wanted.is_some() || self.arriving.is_some() || driver.is_report_due(now)
    }

    /// Does what is due.
    pub(crate) fn turn(
        &mut self,
        now: Time,
        view: &HostView,
        limits: &Limits,
        driver: &mut Driver,
    ) {
        if let Some(plan) = self.wanted.take() {
            if let Some(guard) = &mut self.guard {
                guard.follow(plan.clone());
            }
            self.begin_change(&plan, change_over(now), now, view, limits, driver);
        }
        let pending = driver.switcher().is_some_and(|switcher| switcher.pending().is_some());
        if !pending && let Some(steerer) = self.arriving.take() {
            self.steerer = steerer;
            driver.report_from(now, self.interval(view.srtt), self.needs());
        }
        if let Some(report) = driver.report(now, *view) {
            self.on_report(&report, driver);
            self.watch(&report, view, limits, driver);
            driver.report_after(now, self.interval(view.srtt));
            if self.keeps {
                if self.waiting.len() == REPORTS_MAX {
                    self.waiting.pop_front();
                }
                self.waiting.push_back(report.clone());
            }
            self.last = Some(report);
        }
    }

    fn on_report(&mut self, report: &Report, driver: &mut Driver) {
        let Some(steerer) = &mut self.steerer else { return };
        let Some(action) = steerer.on_report(report) else { return };
        self.reason = steerer.reason(&action);
        let refused = driver.act(report.now, &action).is_err();
        self.refused += u64::from(refused);
        self.acted = Some((action, refused));
    }

    /// Lets the baseline take over where the path suffers from its steering, and ends its rest. In
    /// trouble the running algorithm may never converge, so the baseline does not wait for that.
    fn watch(&mut self, report: &Report, view: &HostView, limits: &Limits, driver: &mut Driver) {
        let Some(mut guard) = self.guard.take() else { return };
        let (now, interval) = (report.now, guard.interval(self.interval(view.srtt)));
        let deviates = |baseline: &Plan| deviates(driver, &self.label, baseline, limits);
        match guard.on_report(report, interval, deviates) {
            Verdict::Go => {}
            Verdict::Back(_) => {
                let baseline = guard.baseline();
                let give_way = |driver: &mut Driver, to| driver.give_way(now, to);
                self.begin_change(baseline, give_way, now, view, limits, driver);
                if let Start::Algorithm(spec, _) = baseline.start()
                    && untouched(spec, limits).apply(driver.algorithm_mut()).is_err()
                {
                    self.refused += 1;
                }
            }
            Verdict::Again | Verdict::NotOurs => {
                self.begin_change(guard.plan(), change_over(now), now, view, limits, driver);
            }
        }
        self.guard = Some(guard);
    }

    /// Another algorithm takes over. What cannot be reached so is replaced at once, and gets what is
    /// known of the path.
    fn begin_change(
        &mut self,
        plan: &Plan,
        switch: impl FnOnce(&mut Driver, Spec) -> Result<(), ActionError>,
        now: Time,
        view: &HostView,
        limits: &Limits,
        driver: &mut Driver,
    ) {
        self.label = plan.label().to_owned();
        self.steerer = None;
        self.arriving = Some(plan.start().steerer());
        self.reason = None;
        if let Start::Algorithm(spec, _) = plan.start()
            && switch(driver, *spec).is_ok()
        {
            return;
        }
        let mut next = plan.start().driver(limits);
        if driver.resume().is_some() {
            // It observes on, for a later connection.
            next = next.resuming(limits, Resumption::default());
        }
        let before = mem::replace(driver, next);
        self.switches += 1 + before.switcher().map_or(0, Switcher::switches);
        let known = before.switcher().and_then(|s| HandOver::of(before.algorithm(), s.path(), now));
        match known {
            Some(record) => driver.algorithm_mut().take_over(&record),
            None if view.srtt.is_zero() => {}
            None => driver.algorithm_mut().inherit(before.window(), view.srtt),
        }
    }

    /// The text of the scheme that runs, or is about to.
    pub(crate) fn label(&self) -> &str {
        self.wanted.as_ref().map_or(&self.label, Plan::label)
    }

    /// How often another algorithm took over.
    pub(crate) fn switches(&self, driver: &Driver) -> u64 {
        self.switches + driver.switcher().map_or(0, Switcher::switches)
    }

    /// Why the last action was asked for.
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// How many actions the algorithm refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Takes what it asked for last, and whether that was refused, if nobody took it yet.
    pub(crate) fn take_acted(&mut self) -> Option<(Action, bool)> {
        self.acted.take()
    }

    /// From what the path rests.
    pub(crate) fn resting(&self) -> Option<Harm> {
        self.guard.as_ref()?.resting()
    }

    /// How often the path went back to its baseline.
    pub(crate) fn fallbacks(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.fallbacks())
    }

    /// What the steering shows of itself.
    pub(crate) fn insight(&self) -> Insight {
        self.steerer.as_ref().map_or_else(Insight::default, Steer::insight)
    }

    /// What suits the path, by the scheme that steers it.
    pub(crate) fn suited(&self) -> Option<Spec> {
        self.steerer.as_ref().and_then(Steer::suited)
    }

    /// The last report.
    pub(crate) fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Takes the reports that wait; at the first call only the last one does. 64 reports take 72 KB,
    /// so they are kept only for a caller who takes them.
    pub(crate) fn take_reports(&mut self) -> VecDeque<Report> {
        if !mem::replace(&mut self.keeps, true) {
            self.waiting.extend(self.last.clone());
        }
        mem::take(&mut self.waiting)
    }
}

/// The way of Floo (§3.4): once the running algorithm has converged. Where only knobs differ, they
/// are turned at once, and all that it learnt of the path stays.
fn change_over(now: Time) -> impl FnOnce(&mut Driver, Spec) -> Result<(), ActionError> {
    move |driver, to| {
        if driver.turn(to) {
            return Ok(());
        }
        driver.act(now, &Action::Switch { to, how: Switch::Full })
    }
}
