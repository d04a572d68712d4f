//! The guard of a path: when it goes back to its baseline, and when it is steered again.

use std::sync::Arc;

use trimtab_cc::{Config as Limits, Spec};
use trimtab_qoe::Model;
use trimtab_steer::safety::{Guard, Harm, Safety, Verdict, Window};
use trimtab_steer::{Driver, KnobValues, Report};
use trimtab_units::Duration;

use crate::plan::{Plan, Start};

/// Where a steering asks for reports more rarely than this, the guard measures at `MEASURE`, as
/// Trimtab's agent does.
const RARELY: Duration = Duration::from_secs(1);
const MEASURE: Duration = Duration::from_millis(250);
/// A report that comes so many times later than it was due tells of an idle connection.
const IDLE: u64 = 2;

/// A path with a guard.
#[derive(Debug)]
pub(crate) struct Guarded {
    safety: Safety,
    guard: Guard,
    window: Window,
    /// What it runs unless it rests.
    plan: Plan,
    baseline: Arc<Plan>,
    /// From what it rests, or rested last.
    harm: Option<Harm>,
    fallbacks: u64,
}

impl Guarded {
    pub(crate) fn new(safety: Safety, plan: Plan, baseline: Arc<Plan>) -> Self {
        let (guard, window) = (Guard::default(), Window::default());
        Self { safety, guard, window, plan, baseline, harm: None, fallbacks: 0 }
    }

    /// The caller has another scheme run.
    pub(crate) fn follow(&mut self, plan: Plan) {
        (self.guard, self.window) = (Guard::default(), Window::default());
        (self.plan, self.harm) = (plan, None);
    }

    pub(crate) fn set_model(&mut self, model: &Model) {
        self.plan.set_model(model);
        Arc::make_mut(&mut self.baseline).set_model(model);
    }

    /// How long to collect until the next report, where the steering asks for this.
    pub(crate) fn interval(&self, asked: Duration) -> Duration {
        if asked > RARELY { MEASURE } else { asked }
    }

    /// Takes a report in, which was due after `interval`.
    pub(crate) fn on_report(
        &mut self,
        report: &Report,
        interval: Duration,
        deviates: impl FnOnce(&Plan) -> bool,
    ) -> Verdict {
        // The idle time says nothing of the path.
        if report.interval > interval * IDLE + report.srtt {
            self.window = Window::default();
            return Verdict::Go;
        }
        let Some(measured) = self.window.on_report(report, false) else { return Verdict::Go };
        let verdict = self.guard.on_window(&measured, &self.safety, deviates(&self.baseline));
        if let Verdict::Back(harm) = verdict {
            self.harm = Some(harm);
            self.fallbacks += 1;
        }
        verdict
    }

    /// What runs without a rest.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What runs in a rest.
    pub(crate) fn baseline(&self) -> &Plan {
        &self.baseline
    }

    /// From what it rests; `None` while it is steered.
    pub(crate) fn resting(&self) -> Option<Harm> {
        self.harm.filter(|_| self.guard.is_resting())
    }

    /// How often it went back.
    pub(crate) fn fallbacks(&self) -> u64 {
        self.fallbacks
    }
}

/// Whether a driver runs anything else than a baseline, or is about to. `label` is the scheme's.
pub(crate) fn deviates(driver: &Driver, label: &str, baseline: &Plan, limits: &Limits) -> bool {
    let Start::Algorithm(spec, None) = baseline.start() else { return label != baseline.label() };
    let pending = driver.switcher().and_then(|switcher| switcher.pending());
    pending.is_some_and(|next| !next.is_same(spec))
        || driver.name() != spec.algorithm().name
        || KnobValues::of(driver.algorithm()) != untouched(spec, limits)
}

/// The algorithm's knobs as this begins with them.
pub(crate) fn untouched(spec: &Spec, limits: &Limits) -> KnobValues {
    KnobValues::of(&spec.build(limits))
}
