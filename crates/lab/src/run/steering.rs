//! From a scheme to an algorithm and what steers it, the same on every datapath.

use trimtab_cc::Spec;
use trimtab_steer::Steerer;
use trimtab_steer::scheme::{Goal, Scheme, SchemeKind};

use crate::run::prepare::{Prepared, PreparedApp};

/// Whether a datapath runs an algorithm with its knobs.
pub type Runs<'a> = &'a dyn Fn(&Spec) -> bool;

impl Prepared {
    /// The algorithm with which a flow of a scheme begins, and what steers it for an application;
    /// `None` leaves it alone. The datapath runs every algorithm.
    ///
    /// # Panics
    /// The scheme governs flows in another way: Muses, a stack's own, or the omniscient sender.
    pub fn steering(&self, kind: &SchemeKind, app: &PreparedApp) -> (Spec, Option<Steerer>) {
        self.steering_among(kind, app, &|_| true)
    }

    /// The same where the datapath runs only some algorithms: no others are chosen.
    ///
    /// # Panics
    /// As [`steering`](Self::steering); or a rule chooses, and none of its candidates runs.
    pub fn steering_among(
        &self,
        kind: &SchemeKind,
        app: &PreparedApp,
        runs: Runs<'_>,
    ) -> (Spec, Option<Steerer>) {
        if let SchemeKind::Plugin(settings) = kind {
            return (self.plug(settings).spec(), None);
        }
        let learnt = |by: &_| self.learnt(by);
        kind.steering(&Goal { model: &app.model, factors: app.factors, learnt: &learnt, runs })
    }

    /// What a datapath that runs only some algorithms makes of the schemes that choose among
    /// algorithms: a sentence for each that names one which it does not run.
    pub fn left_out(&self, runs: Runs<'_>) -> Vec<String> {
        let remark = |scheme: &Scheme| {
            let SchemeKind::Select(selection) = scheme.kind().governing() else { return None };
            let remark = selection.remark(&self.learnt(&selection.by), runs)?;
            Some(format!("{}: {remark}", scheme.label()))
        };
        self.plan.scenario.schemes().filter_map(remark).collect()
    }
}
