//! What steers a path: reports once an interval, the actions that they lead to, and changes that
//! the caller asks for.

use std::collections::VecDeque;
use std::mem;

use trimtab_cc::Config as Limits;
use trimtab_cc::migrate::{HandOver, Migrate, Switch, Switcher};
use trimtab_cc::resume::Resumption;
use trimtab_qoe::Model;
use trimtab_steer::{Action, Driver, HostView, Insight, Needs, Reason, Report, Steer, Steerer};
use trimtab_units::{Duration, Time};

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
    last: Option<Report>,
    waiting: VecDeque<Report>,
}

impl Steering {
    /// Of a path that begins with this plan.
    pub(crate) fn new(plan: &Plan, driver: &mut Driver) -> Self {
        let steering = Self {
            label: plan.label().to_owned(),
            steerer: plan.start().steerer(),
            wanted: None,
            arriving: None,
            switches: 0,
            reason: None,
            refused: 0,
            last: None,
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
        self.steerer.as_ref().map_or(UNSTEERED, |steerer| steerer.interval(srtt))
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
        let wanted = self.wanted.as_mut().and_then(Plan::steerer_mut);
        for steerer in self.steerer.iter_mut().chain(arriving).chain(wanted) {
            steerer.on_model(model);
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
            self.begin_change(&plan, now, view, limits, driver);
        }
        let pending = driver.switcher().is_some_and(|switcher| switcher.pending().is_some());
        if !pending && let Some(steerer) = self.arriving.take() {
            self.steerer = steerer;
            driver.report_from(now, self.interval(view.srtt), self.needs());
        }
        if let Some(report) = driver.report(now, *view) {
            self.on_report(&report, driver);
            driver.report_after(now, self.interval(view.srtt));
            if self.waiting.len() == REPORTS_MAX {
                self.waiting.pop_front();
            }
            self.waiting.push_back(report.clone());
            self.last = Some(report);
        }
    }

    fn on_report(&mut self, report: &Report, driver: &mut Driver) {
        let Some(steerer) = &mut self.steerer else { return };
        let Some(action) = steerer.on_report(report) else { return };
        self.reason = steerer.reason(&action);
        if driver.act(report.now, &action).is_err() {
            self.refused += 1;
        }
    }

    /// Another algorithm takes over as Floo has it (§3.4), once the running one has converged. What
    /// cannot be reached so is replaced at once, and gets what is known of the path.
    fn begin_change(
        &mut self,
        plan: &Plan,
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
            && driver.act(now, &Action::Switch { to: *spec, how: Switch::Full }).is_ok()
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

    /// What the steering shows of itself.
    pub(crate) fn insight(&self) -> Insight {
        self.steerer.as_ref().map_or_else(Insight::default, Steer::insight)
    }

    /// The last report.
    pub(crate) fn last(&self) -> Option<&Report> {
        self.last.as_ref()
    }

    /// Takes the reports that wait.
    pub(crate) fn take_reports(&mut self) -> VecDeque<Report> {
        mem::take(&mut self.waiting)
    }
}
