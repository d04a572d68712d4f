//! Two steerings of one connection: the choice of its algorithm, and the knobs of one of them.

use alloc::boxed::Box;

use trimtab_cc::{Config, Spec, get_knob};
use trimtab_qoe::Model;
use trimtab_units::Duration;

use crate::select::Selector;
use crate::{Action, Insight, KnobValues, Mortise, Needs, Reason, Report, Steer};

/// How far the tuner may move δ from that of the Copa that was chosen, as a factor: to the next
/// Copa and no further, since which of them suits the path is the selector's to say.
const REACH: f64 = 2.0;

/// Two steerings of one connection: one chooses the algorithm, the other turns the knobs of one of
/// them, around the values with which it was chosen. Each sees every report. A report has one
/// answer: another algorithm goes first, and a knob that was to be turned at the same time is
/// turned when its algorithm runs next.
#[derive(Clone, Debug)]
pub struct Both {
    selector: Box<Selector>,
    tuner: Box<Mortise>,
    /// The δ with which the Copa that runs, or ran last, was chosen.
    own: f64,
    /// What the tuner wants and could not have yet.
    waiting: Option<KnobValues>,
}

impl Both {
    /// `selector` chooses the algorithm, `tuner` turns Copa's knobs while that runs.
    pub fn new(selector: Selector, tuner: Mortise) -> Self {
        let own = tuner.applied_delta();
        let mut both =
            Self { selector: Box::new(selector), tuner: Box::new(tuner), own, waiting: None };
        both.begin_with(both.selector.algorithm());
        both
    }

    /// What the tuner asks for, as near as it may have it.
    fn within_reach(&mut self, wanted: KnobValues) -> KnobValues {
        let Some(delta) = wanted.get("delta") else { return wanted };
        let delta = delta.clamp(self.own / REACH, self.own * REACH);
        self.tuner.start_from(delta);
        wanted.with("delta", delta)
    }

    /// Of another Copa nothing that was to be turned of the one before is of use.
    fn tune_what_was_chosen(&mut self) {
        if let Some(delta) = delta_of(&self.selector.algorithm()) {
            self.own = delta;
            self.tuner.start_from(delta);
            // It may have run before, and then comes back as it was left.
            self.waiting = Some(KnobValues::one("delta", delta));
        }
    }

    /// What chooses the algorithm.
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// What turns Copa's knobs.
    pub fn tuner(&self) -> &Mortise {
        &self.tuner
    }
}

/// The δ of a Copa; `None` of anything else.
fn delta_of(spec: &Spec) -> Option<f64> {
    let is_copa = spec.algorithm().name == Mortise::algorithm().algorithm().name;
    is_copa.then(|| get_knob(&spec.build(&Config::default()), "delta")).flatten()
}

impl Steer for Both {
    fn interval(&self, srtt: Duration) -> Duration {
        self.selector.interval(srtt).min(self.tuner.interval(srtt))
    }

    fn needs(&self) -> Needs {
        Needs { samples: self.tuner.needs().samples, ..self.selector.needs() }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        let choice = self.selector.on_report(report);
        let turned = match self.tuner.on_report(report) {
            Some(Action::Set(wanted)) => Some(self.within_reach(wanted)),
            Some(Action::Switch { .. }) | None => None,
        };
        if let Some(turned) = &turned {
            // What is turned anew has nothing to wait for.
            let stays = |&(knob, _): &(&str, f64)| turned.get(knob).is_none();
            let waiting = self.waiting.iter().flat_map(|waiting| waiting.iter().filter(stays));
            self.waiting =
                Some(waiting.collect()).filter(|waiting: &KnobValues| !waiting.is_empty());
        }
        if choice.is_some() {
            self.waiting = turned.or(self.waiting);
            self.tune_what_was_chosen();
            return choice;
        }
        let runs = report.algorithm == Mortise::algorithm().algorithm().name;
        turned.or_else(|| self.waiting.take_if(|_| runs)).map(Action::Set)
    }

    fn reason(&self, action: &Action) -> Option<Reason> {
        match action {
            Action::Switch { .. } => self.selector.reason(action),
            Action::Set(_) => self.tuner.reason(action),
        }
    }

    fn fallback(&self) -> Option<Spec> {
        self.selector.fallback()
    }

    fn insight(&self) -> Insight {
        Insight { selections: self.selector.insight().selections, ..self.tuner.insight() }
    }

    fn on_model(&mut self, model: &Model) {
        self.tuner.on_model(model);
    }

    fn suited(&self) -> Option<Spec> {
        self.selector.suited()
    }

    fn begin_with(&mut self, spec: Spec) {
        self.selector.begin_with(spec);
        self.tune_what_was_chosen();
        self.waiting = None;
    }
}
