//! From a scheme to an algorithm and what steers it, the same on every datapath.

use trimtab_cc::Spec;
use trimtab_steer::Steerer;
use trimtab_steer::scheme::{Goal, SchemeKind};

use crate::run::prepare::{Prepared, PreparedApp};

impl Prepared {
    /// The algorithm with which a flow of a scheme begins, and what steers it for an application;
    /// `None` leaves it alone.
    ///
    /// # Panics
    /// The scheme governs flows in another way: Muses, a stack's own, or the omniscient sender.
    pub fn steering(&self, kind: &SchemeKind, app: &PreparedApp) -> (Spec, Option<Steerer>) {
        let learnt = |by: &_| self.learnt(by);
        kind.steering(&Goal { model: &app.model, factors: app.factors, learnt: &learnt })
    }
}
