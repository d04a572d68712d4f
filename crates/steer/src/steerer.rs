//! Any of the steerings, without a virtual call.

use trimtab_units::Duration;

use crate::select::Selector;
use crate::{Action, Mortise, Report, Schedule, Steer};

/// Any of the steerings.
#[derive(Clone, Debug)]
pub enum Steerer {
    /// Mortise.
    Mortise(Mortise),
    /// Algorithms in turn.
    Schedule(Schedule),
    /// The algorithm that suits best.
    Select(Box<Selector>),
    /// The algorithm that suits best, and Mortise while it is Copa.
    Both(Both),
}

/// Two steerings of one connection: one chooses the algorithm, the other turns the knobs of one of them. Each sees
/// every report and does what it does alone. A report has one answer: another algorithm goes first, and a knob
/// that was to be turned at the same time is turned when its algorithm runs next.
#[derive(Clone, Debug)]
pub struct Both {
    selector: Box<Selector>,
    tuner: Box<Mortise>,
    /// What the tuner wants and could not have yet.
    waiting: Option<Action>,
}

impl Both {
    /// `selector` chooses the algorithm, `tuner` turns Copa's knobs while that runs.
    pub fn new(selector: Selector, tuner: Mortise) -> Self {
        Self { selector: Box::new(selector), tuner: Box::new(tuner), waiting: None }
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

/// The knob that an action turns.
fn knob(action: &Action) -> Option<&'static str> {
    match action {
        Action::Set { knob, .. } => Some(knob),
        Action::Switch { .. } => None,
    }
}

impl Steer for Both {
    fn interval(&self, srtt: Duration) -> Duration {
        self.selector.interval(srtt).min(self.tuner.interval(srtt))
    }

    fn switches(&self) -> bool {
        true
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        let choice = self.selector.on_report(report);
        let turned = self.tuner.on_report(report);
        if let Some(turned) = &turned
            && self.waiting.as_ref().and_then(knob) == knob(turned)
        {
            self.waiting = None;
        }
        if choice.is_some() {
            self.waiting = turned.or(self.waiting);
            return choice;
        }
        let runs = report.algorithm == Mortise::algorithm().algorithm().name;
        turned.or_else(|| self.waiting.take_if(|_| runs))
    }
}

impl Steer for Steerer {
    fn interval(&self, srtt: Duration) -> Duration {
        match self {
            Self::Mortise(m) => m.interval(srtt),
            Self::Schedule(s) => s.interval(srtt),
            Self::Select(s) => s.interval(srtt),
            Self::Both(b) => b.interval(srtt),
        }
    }

    fn switches(&self) -> bool {
        match self {
            Self::Mortise(m) => m.switches(),
            Self::Schedule(s) => s.switches(),
            Self::Select(s) => s.switches(),
            Self::Both(b) => b.switches(),
        }
    }

    fn on_report(&mut self, report: &Report) -> Option<Action> {
        match self {
            Self::Mortise(m) => m.on_report(report),
            Self::Schedule(s) => s.on_report(report),
            Self::Select(s) => s.on_report(report),
            Self::Both(b) => b.on_report(report),
        }
    }
}
